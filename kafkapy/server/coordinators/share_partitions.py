"""The share partitions of the partitions that this broker leads: their loading, locks and changes.

Kafka: `SharePartitionManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.share_state import (
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    combine_batches,
)
from kafkapy.coordinator.shares.messages import ReadState, StateResult, WriteState
from kafkapy.replication.partition import Partition
from kafkapy.replication.shares.share_partition import Acknowledgement, Change, SharePartition
from kafkapy.server.coordinators.share_configs import ShareConfigs
from kafkapy.server.coordinators.share_persister import SharePersister
from kafkapy.server.requests.turns import SliceScheduler, Work

if TYPE_CHECKING:
    from kafkapy.server.coordinators.coordinator_log import CallLater
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.server.share.SharePartitionManager")

_ERRORS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The error codes for members, by code of the share coordinator. Other codes are unchanged."""

_STALE: Final = frozenset(
    {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.INVALID_REQUEST}
)
"""The write errors after which a share partition is loaded again: it has another leader, or its
state was initialized again or deleted."""

_CLIENT_ERRORS: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
     ErrorCode.KAFKA_STORAGE_ERROR}
)  # fmt: skip
"""The load errors that members receive. They receive UNKNOWN_SERVER_ERROR for others, except
COORDINATOR_NOT_AVAILABLE, after which the next fetch loads again."""

_RELOAD_DELAY_S: Final = 1.0

OnAnswer = Callable[[ErrorCode], None]


class LeaderSharePartition:
    """One share partition in one leader epoch. `shares` is None until it is loaded.

    `error` is the reason why it cannot be loaded, until a fetch takes it. `is_unused` is True if no
    member of the group has a session.

    One write is in flight to the share coordinator at a time. If a later write overtook an earlier
    one, the earlier one would undo it. `unsent` has the changes of the next write.
    """

    __slots__ = (
        *("error", "is_storing", "is_unused", "key", "leader_epoch", "partition", "shares"),
        *("timer", "timer_due_ms", "unsent"),
    )

    def __init__(self, key: SharePartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.shares: SharePartition | None = None
        self.error = ErrorCode.NONE
        self.timer: asyncio.TimerHandle | None = None
        self.timer_due_ms = 0
        self.is_storing = False
        self.is_unused = False
        self.unsent: list[tuple[Change, OnAnswer]] = []


class SharePartitions:
    """The share partitions of one broker. Fetches that wait for a share partition are checked
    whenever its records may have become available."""

    def __init__(
        self,
        replicas: ReplicaManager,
        persister: SharePersister,
        configs: ShareConfigs,
        clock: Clock,
        call_later: CallLater,
        slices: SliceScheduler,
    ) -> None:
        self._replicas = replicas
        self._persister = persister
        self._configs = configs
        self._clock = clock
        self._call_later = call_later
        self._slices = slices
        self._leader_shares: dict[SharePartitionKey, LeaderSharePartition] = {}
        self._keys_by_group: defaultdict[str, dict[SharePartitionKey, None]] = defaultdict(dict)
        self._keys_to_check: dict[SharePartitionKey, None] = {}
        self._is_checking = False
        self._is_closed = False

    def find(self, key: SharePartitionKey, partition: Partition) -> LeaderSharePartition:
        """The share partition of a partition that this broker leads. A new one starts to load.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER, the broker stops.
        """
        if self._is_closed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        leader_share = self._leader_shares.get(key)
        if leader_share is None or leader_share.leader_epoch != partition.leader_epoch:
            leader_share = self._leader_shares[key] = LeaderSharePartition(key, partition)
            self._keys_by_group[key.group_id][key] = None
            read = ReadState(key, partition.leader_epoch)
            self._persister.send(read, partial(self._on_state_read, leader_share))
        elif leader_share.shares is not None:
            leader_share.shares.limits = self._configs.limits(key.group_id)
            leader_share.shares.advance_start(partition.log.log_start_offset)
        leader_share.is_unused = False
        return leader_share

    def get_loaded(self, key: SharePartitionKey) -> LeaderSharePartition | None:
        """The share partition, if it is loaded."""
        leader_share = self._leader_shares.get(key)
        return None if leader_share is None or leader_share.shares is None else leader_share

    def _on_state_read(self, leader_share: LeaderSharePartition, result: StateResult) -> None:
        if self._leader_shares.get(leader_share.key) is not leader_share:
            return
        error = result.error
        if error is ErrorCode.NONE:
            if result.start_offset == UNINITIALIZED_START_OFFSET:
                self._slices.queue(self._initialize(leader_share, result))
                return
            leader_share.shares = SharePartition(self._configs.limits(leader_share.key.group_id))
            leader_share.shares.restore(result.start_offset, result.state_epoch, result.batches)
            leader_share.shares.advance_start(leader_share.partition.log.log_start_offset)
        else:
            logger.warning("Cannot load the share partition %s: %s", leader_share.key, error.name)
            error = _ERRORS.get(error, error)
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._remove(leader_share.key)  # the next fetch loads it
            elif error in _CLIENT_ERRORS:
                leader_share.error = error
            else:
                leader_share.error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._check_fetches(leader_share)

    def _initialize(self, leader_share: LeaderSharePartition, read: StateResult) -> Work[None]:
        """Store the start offset of a new share partition before records are delivered. Otherwise
        the next leader would start at its own latest offset, and skip unacknowledged records."""

        def find_log() -> UnifiedLog:
            if self._leader_shares.get(leader_share.key) is not leader_share:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return leader_share.partition.log

        try:
            start_offset = yield from self._configs.start_offset(
                leader_share.key.group_id, find_log
            )
        except ApiError as refusal:
            self._on_state_read(leader_share, StateResult(refusal.code))
            return
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            self._on_state_read(leader_share, StateResult(ErrorCode.KAFKA_STORAGE_ERROR))
            return
        write = WriteState(
            leader_share.key, read.state_epoch, leader_share.leader_epoch, start_offset, 0
        )

        def stored(result: StateResult) -> None:
            is_stored = result.error is ErrorCode.NONE
            self._on_state_read(
                leader_share, replace(read, start_offset=start_offset) if is_stored else result
            )

        self._persister.send(write, stored)

    def on_leadership(self, partition: Partition) -> None:
        """Drop the share partitions of another leader epoch."""
        if not self._leader_shares:
            return
        for key, leader_share in list(self._leader_shares.items()):
            if leader_share.partition.topic_partition == partition.topic_partition:
                self._drop(key)

    def take_error(self, leader_share: LeaderSharePartition) -> ErrorCode:
        """Return to one fetch why a share partition cannot be loaded. Other fetches wait until it
        is loaded again, after `_RELOAD_DELAY_S`. librdkafka sends its next fetch at once: thousands
        a second failed."""
        error, leader_share.error = leader_share.error, ErrorCode.NONE
        self._call_later(_RELOAD_DELAY_S, lambda: self.unload(leader_share))
        return error

    def unload(self, leader_share: LeaderSharePartition) -> None:
        """Drop a share partition: the next fetch loads it again."""
        if self._leader_shares.get(leader_share.key) is leader_share:
            self._drop(leader_share.key)

    def mark_unused(self, group_id: str) -> None:
        """Mark the share partitions of a group without sessions on this broker as unused. Each is
        dropped when its changes are stored, because its state may be altered."""
        for leader_share in self._of_group(group_id):
            leader_share.is_unused = True
            self._unload_if_unused(leader_share)

    def _of_group(self, group_id: str) -> list[LeaderSharePartition]:
        return [self._leader_shares[key] for key in self._keys_by_group.get(group_id, ())]

    def _unload_if_unused(self, leader_share: LeaderSharePartition) -> None:
        is_idle = leader_share.shares is None or (
            leader_share.shares.is_idle and not leader_share.is_storing
        )
        if leader_share.is_unused and is_idle:
            self.unload(leader_share)

    def _remove(self, key: SharePartitionKey) -> LeaderSharePartition:
        keys = self._keys_by_group[key.group_id]
        del keys[key]
        if not keys:
            del self._keys_by_group[key.group_id]
        return self._leader_shares.pop(key)

    def _drop(self, key: SharePartitionKey) -> None:
        leader_share = self._remove(key)
        if leader_share.timer is not None:
            leader_share.timer.cancel()
        self._check_fetches(leader_share)

    # Acknowledgement.

    def acknowledge(
        self,
        leader_share: LeaderSharePartition,
        member_id: str,
        batches: Sequence[Acknowledgement],
        on_answer: Callable[[ErrorCode, str | None], None],
    ) -> None:
        """Apply a member's acknowledgements; `on_answer` is called when they are stored."""
        assert leader_share.shares is not None, "it is loaded"
        try:
            change = leader_share.shares.acknowledge(self._clock.monotonic_ms(), member_id, batches)
        except ApiError as refusal:
            on_answer(refusal.code, refusal.message)
            return
        self.set_timer(leader_share)
        self._store(leader_share, change, lambda error: on_answer(error, None))

    def release(self, member_id: str, group_id: str) -> None:
        """Release the records that a member has acquired here, after the end of its session."""
        for leader_share in self._of_group(group_id):
            if leader_share.shares is not None:
                self._store(
                    leader_share, leader_share.shares.release(member_id), lambda error: None
                )

    def _store(
        self, leader_share: LeaderSharePartition, change: Change | None, on_answer: OnAnswer
    ) -> None:
        if change is None:
            self._check_fetches(leader_share)
            self._unload_if_unused(leader_share)
            on_answer(ErrorCode.NONE)
            return
        leader_share.unsent.append((change, on_answer))
        if not leader_share.is_storing:
            self._send(leader_share)

    def _send(self, leader_share: LeaderSharePartition) -> None:
        """Store all changes since the last write in one write."""
        shares = leader_share.shares
        assert shares is not None, "it is loaded"
        changes, leader_share.unsent = leader_share.unsent, []
        leader_share.is_storing = True
        write = WriteState(
            leader_share.key,
            shares.state_epoch,
            leader_share.leader_epoch,
            shares.start_offset,
            shares.delivery_complete_count,
            combine_batches(
                (), (b for change, _ in changes for b in change.batches), shares.start_offset
            ),
        )
        self._persister.send(write, partial(self._on_state_written, leader_share, changes))

    def _on_state_written(
        self,
        leader_share: LeaderSharePartition,
        changes: list[tuple[Change, OnAnswer]],
        result: StateResult,
    ) -> None:
        shares, error = leader_share.shares, result.error
        assert shares is not None, "it is loaded"
        leader_share.is_storing = False
        for change, _ in changes:
            if error is ErrorCode.NONE:
                shares.complete_change(change)
            else:
                shares.roll_back_change(change)
        if error is not ErrorCode.NONE:
            logger.warning("Cannot store a change of %s: %s", leader_share.key, error.name)
            if error in _STALE:
                self.unload(leader_share)
        if leader_share.unsent:
            self._send(leader_share)
        self.set_timer(leader_share)
        self._check_fetches(leader_share)
        self._unload_if_unused(leader_share)
        for _, on_answer in changes:
            on_answer(_ERRORS.get(error, error))

    # Locks.

    def set_timer(self, leader_share: LeaderSharePartition) -> None:
        """Set the timer that releases records when their locks expire."""
        due_ms = None if leader_share.shares is None else leader_share.shares.next_deadline_ms()
        if due_ms is None or (
            leader_share.timer is not None and leader_share.timer_due_ms <= due_ms
        ):
            return
        if leader_share.timer is not None:
            leader_share.timer.cancel()
        delay_ms = max(0, due_ms - self._clock.monotonic_ms())
        leader_share.timer_due_ms = due_ms
        leader_share.timer = self._call_later(delay_ms / 1000, partial(self._expire, leader_share))

    def _expire(self, leader_share: LeaderSharePartition) -> None:
        leader_share.timer = None
        if (
            self._leader_shares.get(leader_share.key) is leader_share
            and leader_share.shares is not None
        ):
            change = leader_share.shares.expire(self._clock.monotonic_ms())
            self._store(leader_share, change, lambda error: None)
            self.set_timer(leader_share)

    def _check_fetches(self, leader_share: LeaderSharePartition) -> None:
        """Check the fetches that wait for a share partition. A fetch that fails may drop the share
        partition, which causes another check. That check runs after the current one, not within
        it."""
        self._keys_to_check[leader_share.key] = None
        if self._is_checking or self._is_closed:
            return
        self._is_checking = True
        try:
            while self._keys_to_check:
                key = next(iter(self._keys_to_check))
                del self._keys_to_check[key]
                self._replicas.fetch_purgatory.check(key)
        finally:
            self._is_checking = False

    def close(self) -> None:
        """Drop all share partitions and cancel their timers. Later loads are refused."""
        self._is_closed = True
        for key in list(self._leader_shares):
            self._drop(key)
