"""Finds offsets by time: ListOffsets to each partition's leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from kafkapy.client.metadata import ClusterMetadata
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkapy.protocol.schema import Message

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5

# The version in which each special timestamp appeared (KIP-734, KIP-405, KIP-1005).
_MIN_VERSION: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}
_CONSUMER: Final = -1


class OffsetResult(NamedTuple):
    """A leader's result for one partition. Offset -1 means that no record matches."""

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE
    message: str = ""

    @property
    def reason(self) -> str:
        """The error as a text."""
        return self.message or self.error.name


class RequestSender(Protocol):
    """The part of a cluster that this module needs."""

    def request(
        self, message: Message, *, broker_id: int | None = None, min_version: int | None = None
    ) -> Any:
        """Send a request to one broker."""

    def metadata(
        self, topics: Sequence[str] | None = None, refresh: bool = False
    ) -> ClusterMetadata:
        """Topics and the leaders of their partitions."""

    def attempts(self) -> Iterable[int]:
        """Numbers of attempts, a back-off apart, until the API timeout has passed."""

    def is_transient_error(self, code: int) -> bool:
        """Whether a later read may succeed, at the same broker or at another one."""


def list_offsets(
    cluster: RequestSender, timestamps: Mapping[TopicPartition, int], isolation_level: int
) -> dict[TopicPartition, OffsetResult]:
    """Request offsets from the leaders. Partitions whose leader moved, hangs, or does not have them
    yet, are retried until the API timeout.
    """
    results: dict[TopicPartition, OffsetResult] = {}
    pending = dict(timestamps)
    for attempt in cluster.attempts():
        for leader, partitions in _by_leader(cluster, pending, results, attempt > 0).items():
            results |= _list_at_leader(cluster, leader, partitions, isolation_level)
        pending = {tp: timestamps[tp] for tp in pending if _may_pass(cluster, results[tp])}
        if not pending:
            break
    return results


def _may_pass(cluster: RequestSender, result: OffsetResult) -> bool:
    """Whether a later request may succeed. The leader of a new partition may learn of it after the
    broker that sent the metadata; its own error has no text.
    """
    is_new = result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not result.message
    return is_new or cluster.is_transient_error(result.error)


def _by_leader(
    cluster: RequestSender,
    timestamps: Mapping[TopicPartition, int],
    results: dict[TopicPartition, OffsetResult],
    refresh: bool,
) -> dict[int, dict[TopicPartition, int]]:
    """Group partitions by leader. Those without a leader get an error in `results`."""
    names = sorted({tp.topic for tp in timestamps})
    topics = cluster.metadata(names, refresh=refresh).topics if names else {}
    groups: dict[int, dict[TopicPartition, int]] = {}
    for tp, timestamp in timestamps.items():
        topic = topics[tp.topic]
        partition = topic.partitions.get(tp.partition)
        if partition is None:
            code = topic.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results[tp] = OffsetResult(error=code, message=f"Partition {tp} does not exist")
        elif partition.leader < 0:
            code = partition.error or ErrorCode.LEADER_NOT_AVAILABLE
            results[tp] = OffsetResult(error=code, message=f"Partition {tp} has no leader")
        else:
            groups.setdefault(partition.leader, {})[tp] = timestamp
    return groups


def _list_at_leader(
    cluster: RequestSender,
    leader: int,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: int,
) -> dict[TopicPartition, OffsetResult]:
    topics: dict[str, ListOffsetsTopic] = {}
    for (name, index), timestamp in timestamps.items():
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    request = ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=isolation_level, topics=list(topics.values())
    )
    # Version 0 returns lists of segment base offsets instead.
    low = max(_MIN_VERSION.get(timestamp, 1) for timestamp in timestamps.values())
    try:
        response = cluster.request(request, broker_id=leader, min_version=low)
    except ApiError as error:
        return {tp: OffsetResult(error=error.code, message=error.message) for tp in timestamps}
    return {
        TopicPartition(topic.name, p.partition_index): OffsetResult(
            p.offset, p.timestamp, p.leader_epoch, ErrorCode(p.error_code)
        )
        for topic in response.topics
        for p in topic.partitions
    }
