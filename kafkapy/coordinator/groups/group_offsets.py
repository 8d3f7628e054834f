"""The offsets of one group: committed, on their way into the log, and pending in transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata

NO_PRODUCER_ID: Final = -1
UNKNOWN_LOG_OFFSET: Final = -1


class Commit(NamedTuple):
    """A commit and its offset in the log. Of two commits, the later one in the log counts."""

    value: OffsetAndMetadata
    log_offset: int


class GroupOffsets:
    """Committed offsets of a group. Kafka: the offsets half of `GroupMetadata`."""

    __slots__ = ("committed", "in_flight", "transactional", "unreplicated")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Commit] = {}
        self.in_flight: dict[TopicPartition, list[OffsetAndMetadata]] = {}
        """Commits whose append has not completed. No list is empty."""
        self.transactional: dict[int, dict[TopicPartition, Commit]] = {}
        """Commits by producer id. They are in the log, and invisible until the producer's COMMIT
        marker."""
        self.unreplicated: dict[TopicPartition, OffsetAndMetadata] = {}
        """Commits that were not replicated in time, and do not count. The log has them unless a new
        leader lacks them, so the next coordinator may load them."""

    @property
    def any(self) -> bool:
        """Whether there are commits in any state; they keep an empty group from deletion."""
        return bool(self.committed or self.in_flight or self.transactional or self.unreplicated)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether the partition has a pending commit (KIP-447 RequireStable)."""
        return partition in self.in_flight or any(
            partition in pending for pending in self.transactional.values()
        )

    def begin(self, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Add commits that are being appended."""
        for partition, commit in commits.items():
            self.in_flight.setdefault(partition, []).append(commit)

    def succeed(
        self,
        commits: Mapping[TopicPartition, OffsetAndMetadata],
        log_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Record that commits are in the log, in a batch at `log_offset`. Commits that were removed
        meanwhile stay removed. Commits of a producer's transaction wait for its marker."""
        for partition, commit in commits.items():
            if commit not in self.in_flight.get(partition, ()):
                continue
            if producer_id == NO_PRODUCER_ID:
                self._put(partition, Commit(commit, log_offset))
            else:
                self.replay(partition, commit, log_offset, producer_id)
        self.fail(commits)

    def fail(
        self, commits: Mapping[TopicPartition, OffsetAndMetadata], *, is_in_log: bool = False
    ) -> None:
        """Remove commits from those in flight. `is_in_log`: they were appended."""
        for partition, commit in commits.items():
            in_flight = self.in_flight.get(partition, [])
            if commit in in_flight:
                in_flight.remove(commit)
                if is_in_log:
                    self.unreplicated[partition] = commit
                if not in_flight:
                    del self.in_flight[partition]

    def replay(
        self,
        partition: TopicPartition,
        value: OffsetAndMetadata | None,
        log_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Apply one record of the log. A value of None is a tombstone, which also removes pending
        commits before it."""
        if producer_id == NO_PRODUCER_ID:
            if value is None:
                self.committed.pop(partition, None)
                self._drop_pending(partition)
            else:
                self.committed[partition] = Commit(value, log_offset)
            return
        pending = self.transactional.setdefault(producer_id, {})
        if value is None:
            pending.pop(partition, None)
        else:
            pending[partition] = Commit(value, log_offset)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker of the producer: commit or drop its pending offsets."""
        pending = self.transactional.pop(producer_id, {})
        if committed:
            for partition, commit in pending.items():
                self._put(partition, commit)

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions with a commit in any state."""
        known = dict.fromkeys([*self.committed, *self.in_flight, *self.unreplicated])
        for pending in self.transactional.values():
            known.update(dict.fromkeys(pending))
        return list(known)

    def with_possible_commits(
        self, partitions: Mapping[TopicPartition, None]
    ) -> Collection[TopicPartition]:
        """The given partitions that may have commits, or all of them if they are few. A deleted
        topic may have thousands of partitions, and thousands of groups may never have used it."""
        if len(partitions) <= len(self.committed):
            return partitions.keys()
        return [partition for partition in self.partitions if partition in partitions]

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Remove all commits of partitions. Returns partitions that have a record, or will have
        one."""
        removed = []
        for partition in partitions:
            in_flight = self.in_flight.pop(partition, None)
            was_pending = self._drop_pending(partition)
            was_unreplicated = self.unreplicated.pop(partition, None) is not None
            if self.committed.pop(partition, None) or in_flight or was_pending or was_unreplicated:
                removed.append(partition)
        return removed

    def _drop_pending(self, partition: TopicPartition) -> bool:
        """Remove pending transactional commits of a partition. Returns whether there were any."""
        found = False
        for producer_id, pending in list(self.transactional.items()):
            found |= pending.pop(partition, None) is not None
            if not pending:
                del self.transactional[producer_id]
        return found

    def may_expire(self) -> list[TopicPartition]:
        """Partitions with a commit whose retention runs."""
        return list({**self.unreplicated, **self.committed})

    def expired(
        self,
        partitions: Iterable[TopicPartition],
        time_ms: int,
        retention_ms: int,
        used_until_ms: Callable[[OffsetAndMetadata], int],
        subscribed: frozenset[str] = frozenset(),
    ) -> list[TopicPartition]:
        """Those of `partitions` whose commits have expired. A commit's own expiry overrides the
        retention (KIP-211). Partitions with a pending commit do not expire: it would be removed
        too."""
        due = []
        for partition in partitions:
            stored = self.committed.get(partition)
            commit = self.unreplicated.get(partition) if stored is None else stored.value
            if commit is None or partition.topic in subscribed or self.is_unstable(partition):
                continue
            expiry_ms = commit.expire_timestamp_ms
            if expiry_ms is None:
                expiry_ms = used_until_ms(commit) + retention_ms
            if time_ms >= expiry_ms:
                due.append(partition)
        return due

    def _put(self, partition: TopicPartition, commit: Commit) -> None:
        self.unreplicated.pop(partition, None)
        previous = self.committed.get(partition)
        unknown = commit.log_offset == UNKNOWN_LOG_OFFSET
        if previous is None or unknown or previous.log_offset < commit.log_offset:
            self.committed[partition] = commit
