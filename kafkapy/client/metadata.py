"""Cluster metadata: brokers, topics, partitions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid


class Broker(NamedTuple):
    """A live broker; `str()` is Kafka's node text."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.broker_id} rack: {self.rack or 'null'})"


class PartitionMetadata(NamedTuple):
    """One partition; without a leader, `leader` is -1 and `error` has the reason."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class TopicMetadata(NamedTuple):
    """One topic. With an `error` it has no partitions."""

    name: str
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: Mapping[int, PartitionMetadata] = MappingProxyType({})
    error: ErrorCode = ErrorCode.NONE


class ClusterMetadata(NamedTuple):
    """The content of one Metadata response."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Broker]
    topics: dict[str, TopicMetadata]


def cluster_metadata(response: Any) -> ClusterMetadata:
    """Read a MetadataResponse."""
    topics = {}
    for topic in response.topics:
        partitions = {
            p.partition_index: PartitionMetadata(
                p.partition_index,
                p.leader_id,
                p.leader_epoch,
                tuple(p.replica_nodes),
                tuple(p.isr_nodes),
                tuple(p.offline_replicas),
                ErrorCode(p.error_code),
            )
            for p in sorted(topic.partitions, key=lambda p: p.partition_index)
        }
        # A broker that does not know a topic id answers without a name.
        key = topic.name or ("" if topic.topic_id.is_zero else str(topic.topic_id))
        topics[key] = TopicMetadata(
            topic.name or "",
            topic.topic_id,
            topic.is_internal,
            partitions,
            ErrorCode(topic.error_code),
        )
    return ClusterMetadata(
        response.cluster_id,
        response.controller_id,
        {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers},
        topics,
    )
