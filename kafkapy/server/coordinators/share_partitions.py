"""The share partitions of the partitions that this broker leads: their loading, locks and changes.

Kafka: `SharePartitionManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.share_state import UNINITIALIZED_START_OFFSET, SharePartitionKey, merged
from kafkapy.coordinator.shares.messages import ReadState, StateResult, WriteState
from kafkapy.replication.partition import Partition
from kafkapy.replication.shares.share_partition import Acknowledgement, Change, SharePartition
from kafkapy.server.coordinators.share_configs import ShareConfigs
from kafkapy.server.coordinators.share_persister import SharePersister

if TYPE_CHECKING:
    from kafkapy.server.coordinators.coordinator_log import CallLater
    from kafkapy.server.replicas.replica_manager import ReplicaManager

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

_TOLD: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
     ErrorCode.KAFKA_STORAGE_ERROR}
)  # fmt: skip
"""The load errors that members receive. They receive UNKNOWN_SERVER_ERROR for others, except
COORDINATOR_NOT_AVAILABLE, after which the next fetch loads again."""

Answered = Callable[[ErrorCode], None]


class LedShare:
    """One share partition in one leader epoch. `shares` is None until it is loaded.

    `error` is the reason why it cannot be loaded. `is_unused` is True if no member of the group has
    a session.

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
        self.unsent: list[tuple[Change, Answered]] = []


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
    ) -> None:
        self._replicas = replicas
        self._persister = persister
        self._configs = configs
        self._clock = clock
        self._call_later = call_later
        self._led: dict[SharePartitionKey, LedShare] = {}
        self._due: dict[SharePartitionKey, None] = {}
        self._is_checking = False
        self._is_closed = False

    def find(self, key: SharePartitionKey, partition: Partition) -> LedShare:
        """The share partition of a partition that this broker leads. A new one starts to load.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER, the broker stops.
        """
        if self._is_closed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        led = self._led.get(key)
        if led is None or led.leader_epoch != partition.leader_epoch:
            led = self._led[key] = LedShare(key, partition)
            read = ReadState(key, partition.leader_epoch)
            self._persister.send(read, partial(self._loaded, led))
        elif led.shares is not None:
            led.shares.limits = self._configs.limits(key.group_id)
            led.shares.advance_start(partition.log.log_start_offset)
        led.is_unused = False
        return led

    def known(self, key: SharePartitionKey) -> LedShare | None:
        """The share partition, if it is loaded."""
        led = self._led.get(key)
        return None if led is None or led.shares is None else led

    def _loaded(self, led: LedShare, result: StateResult) -> None:
        if self._led.get(led.key) is not led:
            return
        error = result.error
        if error is ErrorCode.NONE:
            try:
                if result.start_offset == UNINITIALIZED_START_OFFSET:
                    self._begin(led, result)
                    return
                led.shares = SharePartition(self._configs.limits(led.key.group_id))
                led.shares.restore(result.start_offset, result.state_epoch, result.batches)
                led.shares.advance_start(led.partition.log.log_start_offset)
            except ApiError as refusal:
                error = refusal.code
        if error is not ErrorCode.NONE:
            logger.warning("Cannot load the share partition %s: %s", led.key, error.name)
            error = _ERRORS.get(error, error)
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                del self._led[led.key]  # the next fetch loads it
            elif error in _TOLD:
                led.error = error
            else:
                led.error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._changed(led)

    def _begin(self, led: LedShare, read: StateResult) -> None:
        """Store the start offset of a new share partition before records are delivered. Otherwise
        the next leader would start at its own latest offset, and skip unacknowledged records.

        Raises:
            ApiError: the partition's log cannot be read.
        """
        start_offset = self._configs.start_offset(led.key.group_id, led.partition.log)
        write = WriteState(led.key, read.state_epoch, led.leader_epoch, start_offset, 0)

        def stored(result: StateResult) -> None:
            is_stored = result.error is ErrorCode.NONE
            self._loaded(led, replace(read, start_offset=start_offset) if is_stored else result)

        self._persister.send(write, stored)

    def on_leadership(self, partition: Partition) -> None:
        """Drop the share partitions of another leader epoch."""
        if not self._led:
            return
        for key, led in list(self._led.items()):
            if led.partition.topic_partition == partition.topic_partition:
                self._drop(key)

    def forget(self, led: LedShare) -> None:
        """Drop a share partition: the next fetch loads it again."""
        if self._led.get(led.key) is led:
            self._drop(led.key)

    def unuse(self, group_id: str) -> None:
        """Mark the share partitions of a group without sessions on this broker as unused. Each is
        dropped when its changes are stored, because its state may be altered."""
        for led in [led for key, led in self._led.items() if key.group_id == group_id]:
            led.is_unused = True
            self._forget_unused(led)

    def _forget_unused(self, led: LedShare) -> None:
        is_idle = led.shares is None or (led.shares.is_idle and not led.is_storing)
        if led.is_unused and is_idle:
            self.forget(led)

    def _drop(self, key: SharePartitionKey) -> None:
        led = self._led.pop(key)
        if led.timer is not None:
            led.timer.cancel()
        self._changed(led)

    # Acknowledgement.

    def acknowledge(
        self,
        led: LedShare,
        member_id: str,
        batches: Sequence[Acknowledgement],
        answered: Callable[[ErrorCode, str | None], None],
    ) -> None:
        """Apply a member's acknowledgements; `answered` is called when they are stored."""
        assert led.shares is not None, "it is loaded"
        try:
            change = led.shares.acknowledge(self._clock.monotonic_ms(), member_id, batches)
        except ApiError as refusal:
            answered(refusal.code, refusal.message)
            return
        self.arm(led)
        self._store(led, change, lambda error: answered(error, None))

    def release(self, member_id: str, group_id: str) -> None:
        """Release the records that a member has acquired here, after the end of its session."""
        for key, led in list(self._led.items()):
            if key.group_id == group_id and led.shares is not None:
                self._store(led, led.shares.release(member_id), lambda error: None)

    def _store(self, led: LedShare, change: Change | None, answered: Answered) -> None:
        if change is None:
            self._changed(led)
            answered(ErrorCode.NONE)
            return
        led.unsent.append((change, answered))
        if not led.is_storing:
            self._send(led)

    def _send(self, led: LedShare) -> None:
        """Store all changes since the last write in one write."""
        shares = led.shares
        assert shares is not None, "it is loaded"
        changes, led.unsent = led.unsent, []
        led.is_storing = True
        write = WriteState(
            led.key,
            shares.state_epoch,
            led.leader_epoch,
            shares.start_offset,
            shares.delivery_complete_count,
            merged((), (b for change, _ in changes for b in change.batches), shares.start_offset),
        )
        self._persister.send(write, partial(self._stored, led, changes))

    def _stored(
        self, led: LedShare, changes: list[tuple[Change, Answered]], result: StateResult
    ) -> None:
        shares, error = led.shares, result.error
        assert shares is not None, "it is loaded"
        led.is_storing = False
        for change, _ in changes:
            if error is ErrorCode.NONE:
                shares.stored(change)
            else:
                shares.not_stored(change)
        if error is not ErrorCode.NONE:
            logger.warning("Cannot store a change of %s: %s", led.key, error.name)
            if error in _STALE:
                self.forget(led)
        if led.unsent:
            self._send(led)
        self.arm(led)
        self._changed(led)
        self._forget_unused(led)
        for _, answered in changes:
            answered(_ERRORS.get(error, error))

    # Locks.

    def arm(self, led: LedShare) -> None:
        """Set the timer that releases records when their locks expire."""
        due_ms = None if led.shares is None else led.shares.next_deadline_ms()
        if due_ms is None or (led.timer is not None and led.timer_due_ms <= due_ms):
            return
        if led.timer is not None:
            led.timer.cancel()
        delay_ms = max(0, due_ms - self._clock.monotonic_ms())
        led.timer_due_ms = due_ms
        led.timer = self._call_later(delay_ms / 1000, partial(self._expire, led))

    def _expire(self, led: LedShare) -> None:
        led.timer = None
        if self._led.get(led.key) is led and led.shares is not None:
            change = led.shares.expire(self._clock.monotonic_ms())
            self._store(led, change, lambda error: None)
            self.arm(led)

    def _changed(self, led: LedShare) -> None:
        """Check the fetches that wait for a share partition. A fetch that fails may drop the share
        partition, which causes another check. That check runs after the current one, not within
        it."""
        self._due[led.key] = None
        if self._is_checking or self._is_closed:
            return
        self._is_checking = True
        try:
            while self._due:
                key = next(iter(self._due))
                del self._due[key]
                self._replicas.fetch_purgatory.check(key)
        finally:
            self._is_checking = False

    def close(self) -> None:
        """Drop all share partitions and cancel their timers. Later loads are refused."""
        self._is_closed = True
        for key in list(self._led):
            self._drop(key)
