"""A fetch that waits for `min_bytes` or its deadline (`kafka.server.DelayedFetch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kafkapy.common.errors import LogDirFailure
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import CONSUMER, Partition
from kafkapy.replication.purgatory import DelayedOperation
from kafkapy.storage.log_offset import LogOffsetMetadata

READS_FOLLOWERS_VERSION: Final = 11


class FetchParams(NamedTuple):
    """What a fetch request says of all its partitions; times in ms, sizes in bytes."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    version: int
    rack: str = ""
    listener: str = ""

    @property
    def is_from_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def leader_only(self) -> bool:
        """Whether no follower may answer: KIP-392 lets newer consumers and debuggers read one."""
        return self.replica_id >= 0 or (
            self.replica_id == CONSUMER and self.version < READS_FOLLOWERS_VERSION
        )


class FetchWait(NamedTuple):
    """One partition that had too little: what was wanted and where in the files that stood."""

    partition: Partition
    wanted: FetchPartition
    position: LogOffsetMetadata


class DelayedFetch(DelayedOperation):
    """Parked until enough bytes can be read, or something changed that the client must learn.

    `is_held_back(partition)` tells of a follower that a replication quota keeps waiting.
    """

    __slots__ = ("_answer", "_epochs", "_is_held_back", "_params", "_waits")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waits: list[FetchWait],
        answer: Callable[[], None],
        is_held_back: Callable[[Partition], bool] = lambda partition: False,
    ) -> None:
        super().__init__(deadline_ms)
        self._params = params
        self._is_held_back = is_held_back
        self._waits = waits
        self._epochs = [wait.partition.leader_epoch for wait in waits]
        self._answer = answer

    def ready(self) -> bool:
        params = self._params
        leader_only = params.leader_only
        available = 0
        for wait, epoch in zip(self._waits, self._epochs, strict=True):
            partition = wait.partition
            if partition.leader_epoch != epoch or not partition.is_served:
                return True
            if leader_only and not partition.is_leader:
                return True
            try:
                end = partition.upper_bound_metadata(params.replica_id, params.isolation)
            except LogDirFailure:
                return True  # reading for the answer meets it again, and deals with it
            start = wait.position
            if end.offset == start.offset:
                continue
            if end.offset < start.offset:  # truncated below the fetch offset
                return True
            if self._is_held_back(partition):
                continue
            if end.segment_base_offset != start.segment_base_offset:  # rolled
                return True
            available += min(end.position - start.position, wait.wanted.max_bytes)
            if available >= params.min_bytes:
                return True
        return False

    def on_complete(self, expired: bool) -> None:
        self._answer()
