"""Fetches of a follower at its leader: finds partitions with changes, and waits if there are none.

Hot file. A follower fetches all its partitions repeatedly, and nearly all of them have no new
records. So the session stays watched in the purgatory under its partitions, and an unchanged
partition costs some comparisons, no read and no row. Other cases (another leader epoch, diverging
logs, an offset out of range) take the general path. Only `changes_for_follower` decides whether a
partition has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple

from kafkapy.replication.fetch_session import FetchPartition, FetchSession
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation

Pair = tuple[Partition, FetchPartition]
"""A partition, and the follower's latest request for it."""


class ChangeKind(IntEnum):
    """Kinds of changes of a partition."""

    OFFSETS = 1
    RECORDS = 2
    REFUSAL = 3  # or diverging logs: the read decides which


class PartitionChange(NamedTuple):
    """A partition with a change to report to the follower."""

    partition: Partition
    wanted: FetchPartition
    kind: ChangeKind

    def completes_wait(self) -> bool:
        """Whether this change completes a waiting fetch. Records do, unless `max_bytes` is 0: the
        minimum of these fetches is one byte.
        """
        kind = self.kind
        return kind is _REFUSAL or (kind is _RECORDS and self.wanted.max_bytes > 0)


_new = tuple.__new__  # takes half the time of `PartitionChange(...)`
_OFFSETS, _RECORDS, _REFUSAL = ChangeKind.OFFSETS, ChangeKind.RECORDS, ChangeKind.REFUSAL


def changes_for_follower(pairs: Iterable[Pair], broker_id: int) -> list[PartitionChange]:
    """The changes for the follower `broker_id`, for each partition that has any."""
    found = []
    for partition, wanted in pairs:
        log = partition.log
        offset, end = wanted.fetch_offset, log.local.log_end_offset
        if (
            (wanted.last_fetched_epoch == log.epochs.latest or wanted.last_fetched_epoch < 0)
            and wanted.current_leader_epoch == partition.leader_epoch
            and partition.is_leader
            and broker_id in partition.remote_replicas
        ):  # the usual case, without a call
            is_continued = offset == end or log.log_start_offset <= offset < end
        else:
            is_continued = partition.is_continued_by(broker_id, wanted)
        if not is_continued:
            kind = _REFUSAL
        elif offset != end:
            kind = _RECORDS
        elif (
            wanted.sent_high_watermark != log.high_watermark
            or wanted.sent_log_start_offset != log.log_start_offset
        ):
            kind = _OFFSETS
        else:
            continue
        found.append(_new(PartitionChange, (partition, wanted, kind)))
    return found


class FollowerWait(DelayedOperation):
    """The fetches of one session, one at a time. `partitions` are the session's, in order.

    Its keys are those of the partitions and, last, the follower's own, which a new leader checks.
    `answer` is called when a waiting fetch has changes to report, or its deadline has passed.
    """

    __slots__ = ("_answer", "_change_count", "broker_id", "pairs", "session")

    is_reusable: ClassVar[bool] = True

    def __init__(
        self,
        session: FetchSession,
        partitions: Sequence[Partition],
        broker_id: int,
        answer: Callable[[], None],
    ) -> None:
        super().__init__(0)
        self.completed = True  # until a fetch waits
        self.session = session
        self.broker_id = broker_id
        self.pairs = list(zip(partitions, session.partitions.values(), strict=True))
        self._change_count = session.change_count
        self._answer = answer

    def belongs_to(self, session: FetchSession) -> bool:
        """Whether this belongs to the session, with its present set of partitions."""
        return self.session is session and self._change_count == session.change_count

    def changes(self) -> list[PartitionChange]:
        """The changes at present."""
        return changes_for_follower(self.pairs, self.broker_id)

    def record_positions(self, now_ms: int) -> list[tuple[Partition, int]]:
        """Record the follower's positions. Returns the partitions whose state this may change, with
        their previous high watermark. In the others the follower is unchanged: in sync, and with
        all records.
        """
        changed = []
        broker_id = self.broker_id
        for partition, wanted in self.pairs:
            log = partition.log
            end, high_watermark = log.local.log_end_offset, log.high_watermark
            replica = partition.remote_replicas[broker_id]
            is_unchanged = (
                replica.log_end_offset == wanted.fetch_offset == end == high_watermark
                and replica.log_start_offset >= wanted.follower_log_start_offset
                and broker_id in partition.in_sync.committed
            )
            if is_unchanged:
                replica.record_caught_up(now_ms, end)
            else:
                partition.on_follower_fetch(broker_id, wanted, now_ms, end)
                changed.append((partition, high_watermark))
        return changed

    def in_session_order(self, changes: Sequence[PartitionChange]) -> list[FetchPartition]:
        """Changes in the session's order of partitions."""
        changed = {each.wanted for each in changes}
        return [wanted for wanted in self.session.partitions.values() if wanted in changed]

    def ready(self) -> bool:
        return any(each.completes_wait() for each in self.changes())

    def ready_at(self, position: int) -> bool:
        if position == len(self.pairs):
            return True
        changes = changes_for_follower(self.pairs[position : position + 1], self.broker_id)
        return bool(changes) and changes[0].completes_wait()

    def on_complete(self) -> None:
        self._answer()
