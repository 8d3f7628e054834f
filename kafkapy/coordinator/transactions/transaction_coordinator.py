"""The transaction coordinator of one broker: its calls return effects and never wait.

Every call returns `TransactionEffects`: replies (token, result), batches to append to
`__transaction_state`, decisions whose markers must be written, and requests that need an unused
producer id. Each token gets one reply, in the effects of this call or of a later one. The
caller (`TransactionService`)
    1. sends the replies and makes the appends, and reports each append with `append_completed`;
    2. sends markers to the partitions' leaders, and reports with `markers_written`;
    3. repeats a request that needs a producer id, with one (`repeat_with_producer_id`);
    4. calls `on_time` when `next_deadline_ms` has come, and `abort_timed_out` and `expire_ids` at
       their configured intervals;
    5. for a partition that it leads calls `start_loading`, `replay_batches` over the whole log,
       `finish_loading`, and `loaded_is_replicated` when the high watermark has reached the end of
       the loaded log; and `unload` when it no longer leads it.

`now_ms` is monotonic milliseconds; `clock` is wall-clock time, as in records.
Kafka: `kafka.coordinator.transaction.TransactionCoordinator`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.transactions import ends, listing, loading, markers, requests
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    DescribeTransactions,
    EndTransaction,
    InitProducerId,
    ListTransactions,
    Markers,
    TransactionEffects,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.state import TransactionState
from kafkapy.record.batch_header import Buffer


class TransactionCoordinator:
    """All transactional ids whose partition of `__transaction_state` this broker leads."""

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        *,
        version: Callable[[], int] = lambda: 0,
        logger: logging.Logger | None = None,
    ) -> None:
        """`version` returns the cluster's transaction version."""
        log = logging.getLogger(__name__) if logger is None else logger
        self._core = Core(config, clock, log, config.transaction_state_log_num_partitions, version)

    # Requests.

    def init_producer_id(
        self, _now_ms: int, token: Token, request: InitProducerId
    ) -> TransactionEffects:
        """The reply waits for the log."""
        requests.init_producer_id(self._core, token, request)
        return self._core.take()

    def add_partitions(
        self, _now_ms: int, token: Token, request: AddPartitions
    ) -> TransactionEffects:
        """The reply waits for the log."""
        requests.add_partitions(self._core, token, request)
        return self._core.take()

    def verify_partitions(
        self, _now_ms: int, token: Token, request: VerifyPartitions
    ) -> TransactionEffects:
        """Replied at once."""
        requests.verify_partitions(self._core, token, request)
        return self._core.take()

    def end_transaction(
        self, _now_ms: int, token: Token, request: EndTransaction
    ) -> TransactionEffects:
        """The reply waits until the decision is in the log, not for the markers."""
        ends.end_transaction(self._core, token, request)
        return self._core.take()

    def repeat_with_producer_id(
        self, now_ms: int, token: Token, request: InitProducerId | EndTransaction
    ) -> TransactionEffects:
        """Repeat a request that needed a producer id, with one."""
        if isinstance(request, EndTransaction):
            return self.end_transaction(now_ms, token, request)
        return self.init_producer_id(now_ms, token, request)

    def describe_transactions(
        self, _now_ms: int, token: Token, request: DescribeTransactions
    ) -> TransactionEffects:
        """Replied at once."""
        listing.describe_transactions(self._core, token, request)
        return self._core.take()

    def list_transactions(
        self, _now_ms: int, token: Token, request: ListTransactions
    ) -> TransactionEffects:
        """Replied at once."""
        listing.list_transactions(self._core, token, request)
        return self._core.take()

    def drop_token(self, token: Token) -> None:
        """Drop the token of a closed connection. Its request continues."""
        self._core.outbox.drop_token(token)

    # The log, the markers and the clock.

    def append_completed(
        self, now_ms: int, append_id: int, error: ErrorCode, base_offset: int
    ) -> TransactionEffects:
        """Report that an append was acknowledged, or failed with `error`."""
        self._core.outbox.append_completed(now_ms, append_id, error, base_offset)
        return self._core.take()

    def markers_written(
        self, now_ms: int, decision: Markers, errors: Mapping[TopicPartition, ErrorCode]
    ) -> TransactionEffects:
        """Report outcomes of some of a decision's markers. NONE is also the outcome for a deleted
        partition. Markers with any other error, except the final ones in `markers`, are sent again.
        """
        markers.handle_outcomes(self._core, now_ms, decision, errors)
        return self._core.take()

    def next_deadline_ms(self) -> int | None:
        """The time at which `on_time` is due. Any call may change it."""
        delayed_actions = self._core.delayed_actions
        return delayed_actions[0][0] if delayed_actions else None

    def on_time(self, now_ms: int) -> TransactionEffects:
        """Call all functions that are due."""
        delayed_actions = self._core.delayed_actions
        while delayed_actions and delayed_actions[0][0] <= now_ms:
            _, action = delayed_actions.popleft()
            action(now_ms)
        return self._core.take()

    def abort_timed_out(self, _now_ms: int) -> TransactionEffects:
        """Abort the transactions that are open for longer than their producers allowed."""
        ends.abort_timed_out(self._core)
        return self._core.take()

    def expire_ids(self, _now_ms: int) -> TransactionEffects:
        """Remove the ids that were not used for `transactional.id.expiration.ms`."""
        requests.expire_ids(self._core)
        return self._core.take()

    # Leading partitions of `__transaction_state`.

    def set_num_partitions(self, num_partitions: int) -> None:
        """Set the number of partitions of `__transaction_state`, before this broker leads one."""
        same = num_partitions == self._core.num_partitions
        assert same or not self._core.partitions, "ids would move while partitions are led"
        self._core.num_partitions = num_partitions

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` whose leader coordinates the id."""
        return self._core.partition_for(transactional_id)

    def start_loading(self, partition: int, leader_epoch: int) -> bool:
        """Begin to lead a partition. Returns whether its log must be replayed now."""
        return loading.start_loading(self._core, partition, leader_epoch)

    def replay_batches(self, partition: int, records: Buffer) -> None:
        """Apply every record in whole raw batches.

        Unreadable records are logged and skipped.

        Raises:
            ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
        """
        loading.replay_batches(self._core, partition, records)

    def finish_loading(self, partition: int, _now_ms: int) -> TransactionEffects:
        """Start to serve a partition's ids, after its whole log was replayed."""
        loading.finish_loading(self._core, partition)
        return self._core.take()

    def loaded_is_replicated(
        self, _now_ms: int, partition: int, leader_epoch: int
    ) -> TransactionEffects:
        """Complete the decided transactions of a partition, after its loaded log was replicated."""
        markers.resume(self._core, partition, leader_epoch)
        return self._core.take()

    def unload(self, partition: int, leader_epoch: int | None = None) -> TransactionEffects:
        """Stop leading a partition. An old epoch is ignored."""
        loading.unload(self._core, partition, leader_epoch)
        return self._core.take()

    def shutdown(self) -> TransactionEffects:
        """Unload all partitions. Later calls are answered COORDINATOR_NOT_AVAILABLE."""
        for partition in list(self._core.partitions):
            loading.unload(self._core, partition, None)
        self._core.active = False
        return self._core.take()

    # For metrics.

    def ids_by_state(self) -> Counter[TransactionState]:
        """Numbers of loaded transactional ids by state."""
        return Counter(transaction.state for transaction in self._core.loaded_transactions())

    def num_leaderless(self) -> int:
        """The number of decided transactions that wait for the leader of a partition."""
        return sum(bool(pending.leaderless) for pending in self._core.pending_completions.values())

    def num_append_retries(self) -> int:
        """The number of completions whose append failed and was not repeated yet."""
        return sum(pending.append_failed for pending in self._core.pending_completions.values())
