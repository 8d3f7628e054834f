"""Topic descriptions for `topics --describe`, and the partitions that each report selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.admin.configs import ConfigEntry, Resource, describe_configs_partly
from kafkapy.admin.planning.eligible_leaders import PAGE_SIZE, EligibleLeaders, eligible_leaders
from kafkapy.admin.reassignments import Reassignment, list_reassignments
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import PartitionMetadata, TopicMetadata
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition

_NO_REASSIGNMENT = Reassignment((), ())


class PartitionDescription(NamedTuple):
    """One partition, for the reports. `eligible` is None if the cluster has no eligible leaders."""

    topic: str
    metadata: PartitionMetadata
    reassignment: Reassignment
    leader_is_live: bool
    min_insync_replicas: int
    eligible: EligibleLeaders | None = None

    @property
    def replication_factor(self) -> int:
        """The number of replicas without those that a running reassignment adds."""
        moving = {*self.reassignment.adding, *self.reassignment.removing}
        if moving.intersection(self.metadata.replicas):
            # Not those of the metadata, which may be older than the reassignment.
            return len(self.reassignment.replicas) - len(self.reassignment.adding)
        return len(self.metadata.replicas)

    @property
    def has_leader(self) -> bool:
        return self.metadata.leader >= 0

    @property
    def under_replicated(self) -> bool:
        return self.replication_factor > len(self.metadata.isr)

    @property
    def unavailable(self) -> bool:
        return not self.has_leader or not self.leader_is_live

    @property
    def under_min_isr(self) -> bool:
        return not self.has_leader or len(self.metadata.isr) < self.min_insync_replicas

    @property
    def at_min_isr(self) -> bool:
        """Whether the ISR has the minimum size. Leaderless partitions count too, as in Kafka."""
        return len(self.metadata.isr) == self.min_insync_replicas


class TopicDescription(NamedTuple):
    """One topic with its partitions and every effective config."""

    metadata: TopicMetadata
    configs: tuple[ConfigEntry, ...]
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return self.partitions[0].replication_factor if self.partitions else 0

    @property
    def overrides(self) -> dict[str, str | None]:
        """Configs other than Kafka's defaults: the topic's own, and those of server.properties."""
        return {entry.name: entry.value for entry in self.configs if not entry.is_default}


def describe_topics(
    cluster: Cluster, topics: Iterable[TopicMetadata], page_size: int = PAGE_SIZE
) -> tuple[list[TopicDescription], ApiError | None]:
    """Describe topics from Metadata, in the same order. Topics whose configs are refused, because
    they were deleted meanwhile for example, are left out; the first refusal is returned.

    Raises:
        ApiError: a broker refused another request.
    """
    topics = list(topics)
    if not topics:
        return [], None
    live = cluster.metadata([]).brokers.keys()
    resources = [Resource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs, refusal = describe_configs_partly(cluster, resources)
    moves = list_reassignments(cluster)
    eligible = eligible_leaders(cluster, [topic.name for topic in topics], page_size)
    described = [
        _describe(topic, configs[resource], moves, eligible, frozenset(live))
        for topic, resource in zip(topics, resources, strict=True)
        if resource in configs
    ]
    return described, refusal


def _describe(
    topic: TopicMetadata,
    configs: list[ConfigEntry],
    moves: Mapping[TopicPartition, Reassignment],
    eligible: Mapping[TopicPartition, EligibleLeaders],
    live: frozenset[int],
) -> TopicDescription:
    effective = {entry.name: entry.value for entry in configs}
    min_insync_replicas = int(effective.get("min.insync.replicas") or 1)
    partitions = tuple(
        PartitionDescription(
            topic.name,
            partition,
            moves.get(TopicPartition(topic.name, index), _NO_REASSIGNMENT),
            partition.leader in live,
            min_insync_replicas,
            eligible.get(TopicPartition(topic.name, index)),
        )
        for index, partition in topic.partitions.items()
    )
    return TopicDescription(topic, tuple(configs), partitions)
