"""An immutable image of the cluster, as this broker received it from the controller.

UpdateMetadata creates a new image and readers keep theirs, so one answer never mixes two states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkapy.common.cluster_state import (
    LEADER_DURING_DELETE,
    BrokerInfo,
    Endpoint,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid


class PartitionImage(NamedTuple):
    """One partition: its leader, ISR and replicas."""

    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    partition_epoch: int


class TopicImage(NamedTuple):
    """One topic with its partitions by index, ascending."""

    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster. `version` grows with each image of one cache; `controller_id` -1 is unknown."""

    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names_by_id: Mapping[Uuid, str] = field(default_factory=dict)
    controller_id: int = -1
    version: int = 0

    def topic(self, name: str) -> TopicImage | None:
        """A topic by name."""
        return self.topics.get(name)

    def topic_name(self, name: str | None, topic_id: Uuid) -> str | None:
        """The name of the topic in a request's row: by its id, or by name if it has no id.

        Resolve and then authorize it with each request: an id may become known at any time.
        """
        return name if topic_id.is_zero else self.topic_names_by_id.get(topic_id)

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """The endpoint of a live broker's listener."""
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.endpoint(listener)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """One partition."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)


def apply_update(
    image: MetadataImage, command: UpdateMetadataCommand
) -> tuple[MetadataImage, list[TopicPartition]]:
    """The image after an UpdateMetadata command, and the partitions that it removed.

    The live brokers replace the old ones as a whole; partitions are merged; a leader of -2 removes
    a partition, and its topic with the last one (`ZkMetadataCache.updateMetadata`).
    """
    by_topic: dict[str, list[UpdateMetadataPartition]] = {}
    for row in command.partitions:
        by_topic.setdefault(row.topic, []).append(row)
    topics = dict(image.topics)
    names = dict(image.topic_names_by_id)
    deleted: list[TopicPartition] = []
    for name, rows in by_topic.items():
        before = image.topics.get(name)
        after = _update_topic(name, before, rows, deleted)
        if before is not None:
            names.pop(before.topic_id, None)
        if after.partitions:
            topics[name] = after
            if not after.topic_id.is_zero:
                names[after.topic_id] = name
        else:
            topics.pop(name, None)
    brokers = {broker.broker_id: broker for broker in command.live_brokers}
    updated = MetadataImage(brokers, topics, names, command.controller_id, image.version + 1)
    return updated, deleted


def _update_topic(
    name: str,
    before: TopicImage | None,
    rows: list[UpdateMetadataPartition],
    deleted: list[TopicPartition],
) -> TopicImage:
    topic_id = rows[-1].topic_id
    partitions: dict[int, PartitionImage] = {}
    if before is not None:
        if topic_id.is_zero:
            topic_id = before.topic_id
        # Another id is another topic of that name: no state of the old topic applies to it.
        if before.topic_id in (topic_id, ZERO_UUID):
            partitions.update(before.partitions)
    for row in rows:
        if row.state.leader == LEADER_DURING_DELETE:
            if partitions.pop(row.partition, None) is not None:
                deleted.append(TopicPartition(name, row.partition))
            continue
        state = row.state
        partitions[row.partition] = PartitionImage(
            row.partition,
            state.leader,
            state.leader_epoch,
            state.isr,
            row.replicas,
            row.offline_replicas,
            state.partition_epoch,
        )
    return TopicImage(name, topic_id, dict(sorted(partitions.items())))
