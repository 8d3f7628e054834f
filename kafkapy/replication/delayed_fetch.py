"""A fetch that waits for `min_bytes` or its deadline (`kafka.server.DelayedFetch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import CONSUMER, Partition
from kafkapy.replication.purgatory import DelayedOperation
from kafkapy.storage.log_offset import LogOffsetMetadata

FETCH_FROM_FOLLOWER_VERSION: Final = 11
_MIN_ONE_BATCH_VERSION: Final = 3  # KIP-74


class FetchParams:
    """Parameters of a fetch request for all its partitions; times in ms, sizes in bytes.

    `leader_only`: a follower must not answer. With KIP-392, consumers may read from followers.
    `replica_epoch`: the follower's broker epoch, -1 before version 15.
    `min_one_batch`: the first batch is returned even if it is larger than the limits.
    """

    __slots__ = ("is_from_follower", "isolation", "leader_only", "listener", "max_bytes",
                 "max_wait_ms", "min_bytes", "min_one_batch", "rack", "replica_epoch",
                 "replica_id", "version")  # fmt: skip

    def __init__(
        self,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation: int,
        version: int,
        rack: str = "",
        listener: str = "",
        replica_epoch: int = -1,
    ) -> None:
        # A debugging consumer has the same upper bound as others (`FetchIsolation`).
        self.replica_id = replica_id if replica_id >= 0 else CONSUMER
        self.replica_epoch = replica_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.version = version
        self.rack = rack
        self.listener = listener
        self.is_from_follower = replica_id >= 0
        self.min_one_batch = version >= _MIN_ONE_BATCH_VERSION
        self.leader_only = replica_id >= 0 or (
            replica_id == CONSUMER and version < FETCH_FROM_FOLLOWER_VERSION
        )


class FetchWait(NamedTuple):
    """One partition with too few bytes: the fetch, and its position in the log's files."""

    partition: Partition
    wanted: FetchPartition
    position: LogOffsetMetadata


class DelayedFetch(DelayedOperation):
    """Waits until enough bytes can be read, or a change must be reported to the client.

    `is_throttled(partition)`: a replication quota makes the follower wait.
    """

    __slots__ = ("_answer", "_epochs", "_is_throttled", "_params", "_waits")

    def __init__(
        self,
        deadline_ms: int,
        params: FetchParams,
        waits: list[FetchWait],
        answer: Callable[[], None],
        is_throttled: Callable[[Partition], bool] = lambda partition: False,
    ) -> None:
        super().__init__(deadline_ms)
        self._params = params
        self._is_throttled = is_throttled
        self._waits = waits
        self._epochs = [wait.partition.leader_epoch for wait in waits]
        self._answer = answer

    def ready(self) -> bool:
        available = 0
        for position in range(len(self._waits)):
            found = self._available(position)
            if found is None:
                return True
            available += found
            if available >= self._params.min_bytes:
                return True
        return False

    def ready_at(self, position: int) -> bool:
        """Checks the changed partition first. The others were checked when they changed, but a few
        bytes of each may add up to enough. The last key of a follower's fetch is the follower
        itself.
        """
        if position == len(self._waits):
            return True
        found = self._available(position)
        if found is None or found >= self._params.min_bytes:
            return True
        return found > 0 and self.ready()

    def _available(self, position: int) -> int | None:
        """The available bytes of one partition; None if the response must be sent now."""
        params, wait = self._params, self._waits[position]
        partition = wait.partition
        if partition.leader_epoch != self._epochs[position] or not partition.is_served:
            return None
        if params.leader_only and not partition.is_leader:
            return None
        try:
            end = partition.upper_bound_metadata(params.replica_id, params.isolation)
        except (ApiError, LogDirFailure):
            return None  # the read for the response raises it again, and handles it
        start = wait.position
        if end.offset == start.offset:
            return 0
        if end.offset < start.offset:  # truncated below the fetch offset
            return None
        if self._is_throttled(partition):
            return 0
        if end.segment_base_offset != start.segment_base_offset:  # rolled
            return None
        return min(end.position - start.position, wait.wanted.max_bytes)

    def on_complete(self) -> None:
        self._answer()
