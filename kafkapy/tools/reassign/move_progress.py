"""Progress of running moves in bytes, measured at the brokers and summed by partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkapy.admin.log_dirs import Replica, describe_log_dirs
from kafkapy.admin.reassignments import Reassignment
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition

WINDOW: Final = 10
"""The number of measurements for a rate."""


class MoveProgress(NamedTuple):
    """One partition: the bytes that its new replicas have, and those that they need."""

    partition: TopicPartition
    done_bytes: int
    total_bytes: int


class Pace(NamedTuple):
    """The rate, and the remaining time; None while unknown."""

    bytes_per_s: float | None
    seconds_left: float | None


class PaceMeter:
    """Computes rate and remaining time from the last measurements."""

    def __init__(self) -> None:
        self._measurements: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    def add(self, now_s: float, done_bytes: int, total_bytes: int) -> Pace:
        """Add a measurement."""
        self._measurements.append((now_s, done_bytes))
        first_s, first_bytes = self._measurements[0]
        if now_s <= first_s:
            return Pace(None, None)
        rate = max(0, done_bytes - first_bytes) / (now_s - first_s)
        remaining_bytes = max(0, total_bytes - done_bytes)
        return Pace(rate, remaining_bytes / rate if rate else None)


def measure_moves(
    cluster: Cluster,
    running: Mapping[TopicPartition, Reassignment],
    log_dirs: Mapping[Replica, str],
) -> list[MoveProgress]:
    """Bytes of the moves between brokers (`running`) and between log directories, sorted.

    A broker that does not respond counts as having copied nothing. Sizes are the current sizes of
    the logs, which may grow during a move.
    """
    wanted: dict[int, set[TopicPartition]] = {}
    for tp, move in running.items():
        for broker_id in move.replicas:
            wanted.setdefault(broker_id, set()).add(tp)
    for replica in log_dirs:
        wanted.setdefault(replica.broker_id, set()).add(replica.topic_partition)
    current: dict[Replica, int] = {}
    future: dict[Replica, int] = {}
    for broker_id, partitions in wanted.items():
        try:
            dirs = describe_log_dirs(cluster, broker_id, sorted(partitions))
        except ApiError:
            continue
        for directory in dirs:
            for (tp, is_future), log in directory.logs.items():
                (future if is_future else current)[Replica(*tp, broker_id)] = log.size_bytes
    found: dict[TopicPartition, tuple[int, int]] = {}
    for tp, move in running.items():
        sizes = {b: current.get(Replica(*tp, b), 0) for b in move.replicas}
        size_bytes = max((sizes[b] for b in move.replicas if b not in move.adding), default=0)
        _add(
            found,
            tp,
            sum(min(size_bytes, sizes[b]) for b in move.adding),
            size_bytes * len(move.adding),
        )
    for replica in log_dirs:
        if replica in future:
            size_bytes = current.get(replica, 0)
            _add(found, replica.topic_partition, min(size_bytes, future[replica]), size_bytes)
    return [MoveProgress(tp, *found[tp]) for tp in sorted(found)]


def _add(
    found: dict[TopicPartition, tuple[int, int]], tp: TopicPartition, done: int, total: int
) -> None:
    before = found.get(tp, (0, 0))
    found[tp] = before[0] + done, before[1] + total
