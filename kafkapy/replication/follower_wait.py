"""A follower's fetch session at its leader, fetch after fetch: what each has to tell, and the wait.

Hot file. A follower asks for the next records of all that it follows again and again, and of nearly
all of it there are none. So the session stays watched in the purgatory under its partitions, and a
partition of which there is nothing new costs some comparisons, no read and no row. What is not as
plain as this (another leader epoch, logs that part, an offset out of range) is the long way's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from kafkapy.replication.fetch_session import FetchPartition, FetchSession
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation


class FollowerWait(DelayedOperation):
    """The fetches of one session, one at a time. `partitions`: its, in order.

    Its keys are those of the partitions and, last, the follower: its leader calls it. `answer` is
    called when a parked fetch has something to tell, or its time is over.
    """

    __slots__ = ("_answer", "_changes", "broker_id", "pairs", "session")

    stands: ClassVar[bool] = True

    def __init__(
        self,
        session: FetchSession,
        partitions: Sequence[Partition],
        broker_id: int,
        answer: Callable[[], None],
    ) -> None:
        super().__init__(0)
        self.completed = True  # until it is parked
        self.session = session
        self.broker_id = broker_id
        self.pairs = list(zip(partitions, session.partitions.values(), strict=True))
        self._changes = session.changes
        self._answer = answer

    def is_of(self, session: FetchSession) -> bool:
        """Whether this is of that session, with the partitions that it has now."""
        return self.session is session and self._changes == session.changes

    def finds_records(self) -> bool | None:
        """Whether there are records for a fetch that has just come; None if it, for any partition,
        is none of a follower that goes on in the leader's present epoch."""
        found = False
        broker_id = self.broker_id
        for partition, wanted in self.pairs:
            log = partition.log
            has_all = (
                wanted.fetch_offset == log.local.log_end_offset
                and wanted.last_fetched_epoch == log.epochs.latest
                and wanted.current_leader_epoch == partition.leader_epoch
                and partition.is_leader
                and broker_id in partition.remote_replicas
            )
            if has_all:  # and so goes on: nearly always
                continue
            if not partition.is_continued_by(broker_id, wanted):
                return None
            found = found or wanted.fetch_offset != log.local.log_end_offset
        return found

    def note(self, now_ms: int) -> list[tuple[Partition, int]]:
        """Where the follower is. Returns the partitions for which that may change anything, with
        the high watermark of before; in the others it is where it was, in sync, and has all."""
        changed = []
        broker_id = self.broker_id
        for partition, wanted in self.pairs:
            log = partition.log
            end, high_watermark = log.local.log_end_offset, log.high_watermark
            replica = partition.remote_replicas[broker_id]
            is_as_before = (
                replica.log_end_offset == wanted.fetch_offset == end == high_watermark
                and replica.log_start_offset >= wanted.follower_log_start_offset
                and broker_id in partition.in_sync.committed
            )
            if is_as_before:
                replica.caught_up(now_ms, end)
            else:
                partition.on_follower_fetch(broker_id, wanted, now_ms, end)
                changed.append((partition, high_watermark))
        return changed

    def news(self) -> list[tuple[Partition, FetchPartition]]:
        """Of which partitions there is something to tell: records, offsets, or a refusal. The
        follower has asked for the end of each, or `finds_records` found more."""
        found = []
        for pair in self.pairs:
            partition, wanted = pair
            log = partition.log
            if (
                wanted.fetch_offset != log.local.log_end_offset
                or wanted.sent_high_watermark != log.high_watermark
                or wanted.sent_log_start_offset != log.log_start_offset
                or wanted.current_leader_epoch != partition.leader_epoch
                or not partition.is_leader
            ):
                found.append(pair)
        return found

    def in_turn(self, news: Sequence[tuple[Partition, FetchPartition]]) -> list[FetchPartition]:
        """News in the order in which it is the partitions' turn."""
        told = {wanted for _, wanted in news}
        return [wanted for wanted in self.session.partitions.values() if wanted in told]

    def ready(self) -> bool:
        return any(self.ready_at(position) for position in range(len(self.pairs)))

    def ready_at(self, position: int) -> bool:
        if position == len(self.pairs):
            return True
        partition, wanted = self.pairs[position]
        return (
            wanted.fetch_offset != partition.log.local.log_end_offset
            or wanted.current_leader_epoch != partition.leader_epoch
            or not partition.is_leader
        )

    def on_complete(self, expired: bool) -> None:
        self._answer()
