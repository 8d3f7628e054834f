"""Log directories of brokers: their content, and moves between them (KIP-113)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkapy.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)


class Replica(NamedTuple):
    """One replica of a partition; `str()` is Kafka's `topic-partition-broker`."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class ReplicaLog(NamedTuple):
    """A replica's log in a directory. With `is_future` it will replace the current one.

    `offset_lag` is its lag behind the high watermark, or behind the current log.
    """

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    """One directory. If it is offline, it has an error and no logs."""

    path: str
    error: ErrorCode
    logs: Mapping[tuple[TopicPartition, bool], ReplicaLog]
    """Logs by partition, and whether they are future logs."""
    total_bytes: int = -1
    usable_bytes: int = -1


class ReplicaPlace(NamedTuple):
    """The directories of a replica; None for one that it does not have."""

    current: str | None = None
    future: str | None = None


def describe_log_dirs(
    cluster: Cluster, broker_id: int, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDir]:
    """The directories of a broker with the logs of all, or the named, partitions.

    Raises:
        ApiError: the broker cannot be reached, or refused.
    """
    topics = None
    if partitions is not None:
        topics = [
            DescribableLogDirTopic(topic=name, partitions=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    response = cluster.request(DescribeLogDirsRequest(topics=topics), broker_id=broker_id)
    check(response.error_code)
    if not response.results:
        # Before version 3 (Kafka 3.2) a refusal has no error code. A broker always has a directory.
        raise api_error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return [
        LogDir(
            row.log_dir,
            ErrorCode(row.error_code),
            {
                (TopicPartition(topic.name, p.partition_index), p.is_future_key): ReplicaLog(
                    p.partition_size, p.offset_lag, p.is_future_key
                )
                for topic in row.topics
                for p in topic.partitions
            },
            row.total_bytes,
            row.usable_bytes,
        )
        for row in response.results
    ]


def places(dirs: Iterable[LogDir]) -> dict[TopicPartition, ReplicaPlace]:
    """The present and future directories of one broker's replicas."""
    found: dict[TopicPartition, ReplicaPlace] = {}
    for directory in dirs:
        for tp, is_future in directory.logs:
            place = found.get(tp, ReplicaPlace())
            found[tp] = (
                place._replace(future=directory.path)
                if is_future
                else place._replace(current=directory.path)
            )
    return found


def alter_replica_log_dirs(
    cluster: Cluster, broker_id: int, moves: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ApiError]:
    """Move replicas of one broker to the given directories. Returns the refusals.

    A replica that does not exist yet is refused with REPLICA_NOT_AVAILABLE, but the broker will
    create it in that directory.

    Raises:
        ApiError: the broker cannot be reached, or does not support this.
    """
    by_path: dict[str, list[TopicPartition]] = {}
    for tp, path in moves.items():
        by_path.setdefault(path, []).append(tp)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )
    response = cluster.request(request, broker_id=broker_id)
    return {
        TopicPartition(topic.topic_name, p.partition_index): api_error(p.error_code)
        for topic in response.results
        for p in topic.partitions
        if p.error_code != ErrorCode.NONE
    }
