"""A transaction coordinator with a fake shell: its clock, its log, its markers, its replies."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.effects import Append, Producer
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    DescribedTransaction,
    DescribeTransactions,
    EndTransaction,
    InitProducerId,
    InitProducerIdResult,
    Markers,
    TransactionEffects,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.cores.ports import ManualClock

WALL_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
ID = "payments"
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


class TransactionShell:
    """Completes every append at once, unless `held`; keeps markers until `mark`, and each reply."""

    def __init__(self, config: TransactionConfig | None = None, *, load: bool = True) -> None:
        self.clock = ManualClock(0, WALL_MS)
        self.config = config or TransactionConfig(transaction_state_log_num_partitions=1)
        self.log: list[RecordData] = []
        self.held: list[Append] | None = None
        self.append_error = ErrorCode.NONE
        self.markers: list[Markers] = []
        self.replies: dict[int, Any] = {}
        self.next_producer_id = 4000
        self.version = 0
        self._tokens = 0
        self.coordinator = self.new_coordinator()
        if load:
            self.lead(1)

    def new_coordinator(self) -> TransactionCoordinator:
        logger = logging.getLogger("tests.transaction_shell")
        return TransactionCoordinator(
            self.config, self.clock, version=lambda: self.version, logger=logger
        )

    @property
    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

    def lead(
        self, epoch: int, records: list[RecordData] | None = None, *, replicated: bool = True
    ) -> None:
        """Lead the one partition, whose log holds `records` (default: the appended ones)."""
        assert self.coordinator.start_loading(0, epoch)
        for record in self.log if records is None else records:
            self.coordinator.replay_batches(0, build_batch([record]))
        self.perform(self.coordinator.finish_loading(0, self.now_ms))
        if replicated:
            self.perform(self.coordinator.loaded_is_replicated(self.now_ms, 0, epoch))

    def restart(self, epoch: int = 2, *, replicated: bool = True) -> None:
        """Another broker takes over, and loads the log."""
        self.held = None
        self.markers.clear()
        self.coordinator = self.new_coordinator()
        self.lead(epoch, replicated=replicated)

    def perform(self, effects: TransactionEffects) -> None:
        for token, result in effects.replies:
            assert token not in self.replies, "answered twice"
            self.replies[token] = result  # type: ignore[index]
        for append in effects.appends:
            if self.held is None:
                self.finish(append)
            else:
                self.held.append(append)
        self.markers.extend(effects.markers)
        for token, request in effects.awaiting_producer_id:
            self.next_producer_id += 1
            again = replace(request, new_producer_id=self.next_producer_id)
            self.perform(self.coordinator.repeat_with_producer_id(self.now_ms, token, again))

    def finish(self, append: Append, error: ErrorCode | None = None) -> None:
        """Complete an append, or fail it."""
        error = self.append_error if error is None else error
        if error is ErrorCode.NONE:
            self.log.extend(append.records)
        self.perform(
            self.coordinator.append_completed(self.now_ms, append.append_id, error, len(self.log))
        )

    def release(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Complete the held appends, or fail them with `error`; later appends are not held."""
        held, self.held = self.held or [], None
        for append in held:
            self.finish(append, error)

    def mark(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer all markers that were sent, in the place of the leaders."""
        sent, self.markers = self.markers, []
        for decision in sent:
            errors = dict.fromkeys(decision.partitions, error)
            self.perform(self.coordinator.markers_written(self.now_ms, decision, errors))

    def pass_time(self, ms: int) -> None:
        self.clock.now_ms += ms
        self.perform(self.coordinator.on_time(self.now_ms))

    # requests: the reply, or None if there is none yet

    def ask(self, method: Any, request: Any) -> Any:
        self._tokens += 1
        self.perform(method(self.now_ms, self._tokens, request))
        return self.replies.get(self._tokens)

    def init(self, name: str = ID, expected: Producer | None = None) -> Any:
        request = InitProducerId(name, TIMEOUT_MS, expected)
        return self.ask(self.coordinator.init_producer_id, request)

    def begin(self, name: str = ID) -> Producer:
        """Initialize the producer of a transactional id, which must succeed."""
        result = self.init(name)
        assert isinstance(result, InitProducerIdResult)
        assert result.error is ErrorCode.NONE
        return Producer(result.producer_id, result.producer_epoch)

    def add(
        self, producer: Producer, *partitions: TopicPartition, name: str = ID, version: int = 0
    ) -> Any:
        request = AddPartitions(name, producer, partitions, version)
        result = self.ask(self.coordinator.add_partitions, request)
        return None if result is None else result.error

    def verify(self, producer: Producer, *partitions: TopicPartition, name: str = ID) -> Any:
        request = VerifyPartitions(name, producer, partitions)
        return self.ask(self.coordinator.verify_partitions, request)

    def end(self, producer: Producer, commit: bool = True, name: str = ID) -> Any:
        request = EndTransaction(name, producer, commit)
        result = self.ask(self.coordinator.end_transaction, request)
        return None if result is None else result.error

    def describe(self, name: str = ID) -> DescribedTransaction:
        result = self.ask(self.coordinator.describe_transactions, DescribeTransactions([name]))
        described: DescribedTransaction = result.transactions[0]
        return described

    @property
    def state(self) -> str:
        return self.describe().state
