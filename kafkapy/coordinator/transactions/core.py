"""Shared state of the transaction coordinator: its transactional ids, and the append of transitions
to the log. Kafka: `TransactionStateManager`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition, partition_for_key
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.outbox import Outbox
from kafkapy.coordinator.transactions.log_records import transaction_key, transaction_value
from kafkapy.coordinator.transactions.messages import (
    EndTransaction,
    InitProducerId,
    Markers,
    TransactionEffects,
    TransactionResult,
)
from kafkapy.coordinator.transactions.state import Transaction, TransactionState, Transition
from kafkapy.record.builder import RecordData

STORE_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error for a producer whose transition could not be stored. Other codes are unchanged."""

StoreCallback = Callable[[int, ErrorCode], None]
"""Called with (now_ms, error) after the append of a transition, or its failure."""


@dataclass(slots=True)
class StatePartition:
    """One partition of `__transaction_state` that this broker leads."""

    leader_epoch: int
    loading: bool = True
    transactions: dict[str, Transaction] = field(default_factory=dict)


@dataclass(slots=True)
class PendingCompletion:
    """A decided transaction: its next state, and the partitions that still need a marker.

    `leaderless` is the number of partitions without a leader. `append_failed`: all markers are
    written, but the append of the completion failed. Both are for metrics.
    """

    decision: Markers
    completion: Transition
    remaining: set[TopicPartition]
    leaderless: set[TopicPartition] = field(default_factory=set)
    append_failed: bool = False


@dataclass(slots=True)
class Core:
    """The coordinator's state, on which the functions of its modules operate.

    `clock` is the wall clock for records. `num_partitions` is that of `__transaction_state`.
    `version` returns the cluster's transaction version. `pending_completions` is by transactional
    id. `delayed_actions` has the functions to call at a later `now_ms`, the earliest first, because
    all wait equally long. It has one for each decision that waits for a partition without a leader.
    """

    config: TransactionConfig
    clock: Clock
    log: logging.Logger
    num_partitions: int
    version: Callable[[], int]
    active: bool = True
    outbox: Outbox[TransactionResult] = field(default_factory=Outbox)
    partitions: dict[int, StatePartition] = field(default_factory=dict)
    pending_completions: dict[str, PendingCompletion] = field(default_factory=dict)
    delayed_actions: deque[tuple[int, Callable[[int], None]]] = field(default_factory=deque)
    markers: list[Markers] = field(default_factory=list)
    awaiting_producer_id: list[tuple[Token, InitProducerId | EndTransaction]] = field(
        default_factory=list
    )

    def take(self) -> TransactionEffects:
        """The effects since the last call."""
        effects = self.outbox.take()
        markers, self.markers = self.markers, []
        awaiting, self.awaiting_producer_id = self.awaiting_producer_id, []
        return TransactionEffects(effects.replies, effects.appends, markers, awaiting)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` of an id."""
        return partition_for_key(transactional_id, self.num_partitions)

    def check(self, transactional_id: str) -> ErrorCode:
        """NONE if this broker serves calls for the id now, else the error."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not self.active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self.partitions.get(self.partition_for(transactional_id))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if partition.loading else ErrorCode.NONE

    def find(self, transactional_id: str) -> Transaction | None:
        """A transactional id of a loaded partition."""
        partition = self.partitions.get(self.partition_for(transactional_id))
        if partition is None or partition.loading:
            return None
        return partition.transactions.get(transactional_id)

    def find_or_error(self, transactional_id: str) -> Transaction | ErrorCode:
        """A transactional id, or the error for a request that must name a known one."""
        error = self.check(transactional_id)
        if error is not ErrorCode.NONE:
            return error
        return self.find(transactional_id) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def leader_epoch(self, transactional_id: str) -> int:
        """The leader epoch of the id's partition, which is the coordinator's epoch."""
        return self.partitions[self.partition_for(transactional_id)].leader_epoch

    def loaded_transactions(self) -> Iterator[Transaction]:
        """Every transactional id of a loaded partition."""
        for partition in self.partitions.values():
            if not partition.loading:
                yield from partition.transactions.values()

    def store(self, transaction: Transaction, to: Transition, on_stored: StoreCallback) -> None:
        """Append a transition's record, and apply the transition after that.

        `on_stored` gets NONE if the transition was applied. On an error it was abandoned. If this
        broker no longer coordinates the id, the error is NOT_COORDINATOR.
        """

        def on_success() -> None:
            transaction.complete(to)

        # A decision that has bumped the epoch must be recognized, whatever the cluster's version.
        version = 1 if max(self.version(), to.client_version) >= 1 else 0
        self._append(transaction, to.state, transaction_value(to, version), on_success, on_stored)

    def remove_expired(self, index: int, transactions: Collection[Transaction]) -> None:
        """Remove ids of one partition after their tombstones are in the log, in one batch."""
        state_partition, time_ms = self.partitions[index], self.clock.time_ms()
        records = []
        for transaction in transactions:
            transaction.prepare_dead()
            records.append(RecordData(transaction_key(transaction.transactional_id), None, time_ms))

        def appended(_now_ms: int, error: ErrorCode, _base_offset: int) -> None:
            if self.partitions.get(index) is not state_partition:
                return  # the current coordinator has them, or their tombstones
            for transaction in transactions:
                if error is ErrorCode.NONE:
                    del state_partition.transactions[transaction.transactional_id]
                    self.log.info("Transactional id %s expired", transaction.transactional_id)
                else:
                    transaction.abandon()
            if error is not ErrorCode.NONE:
                self.log.info("%d ids could not be removed: %s", len(records), error.name)

        self.outbox.append(index, state_partition.leader_epoch, records, appended)

    def _append(
        self,
        transaction: Transaction,
        state: TransactionState,
        value: bytes,
        on_success: Callable[[], None],
        on_stored: StoreCallback,
    ) -> None:
        name = transaction.transactional_id
        epoch = self.leader_epoch(name)

        def appended(now_ms: int, error: ErrorCode, _base_offset: int) -> None:
            error = STORE_ERRORS.get(error, error)
            if not self._is_current(transaction, epoch):
                # The current coordinator has the state in the log, with this transition or without.
                on_stored(now_ms, ErrorCode.NOT_COORDINATOR)
                return
            if error is ErrorCode.NONE:
                on_success()
            else:
                self.log.info("%s: %s could not be stored: %s", name, state.text, error.name)
                transaction.abandon()
            on_stored(now_ms, error)

        record = RecordData(transaction_key(name), value, self.clock.time_ms())
        self.outbox.append(self.partition_for(name), epoch, [record], appended)

    def _is_current(self, transaction: Transaction, leader_epoch: int) -> bool:
        """Whether this object, loaded at this leader epoch, is still the current one of its id."""
        partition = self.partitions.get(self.partition_for(transaction.transactional_id))
        return (
            partition is not None
            and partition.leader_epoch == leader_epoch
            and partition.transactions.get(transaction.transactional_id) is transaction
        )
