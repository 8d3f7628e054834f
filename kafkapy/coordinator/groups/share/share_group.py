"""The state of one share group, derived from its records.

    Empty   No members.
    Stable  Has members. Each gets its target at once, so no member waits for another.
    Dead    Deleted or unloaded: no call finds it.

Kafka: `ShareGroup`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import (
    TopicIdPartition,
    assignment_of,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    RecordType,
    ShareStates,
    TopicMetadata,
    Value,
)
from kafkapy.coordinator.groups.share.messages import SHARE_GROUP_TYPE, SHARE_PROTOCOL_TYPE
from kafkapy.coordinator.groups.share.records import (
    ShareEpoch,
    encode_key,
    encode_value,
    topics_hash,
)


class ShareGroup(ConsumerGroup):
    """The state of one share group. `requested_epochs` has the epoch of each share partition that
    the share coordinator is initializing, `deleting_topics` the topics whose states it is deleting.
    """

    __slots__ = ("_has_unassigned", "deleting_topics", "requested_epochs", "states", "topics_hash")

    group_type = SHARE_GROUP_TYPE
    protocol_type = SHARE_PROTOCOL_TYPE
    holds_offsets = False

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.states = ShareStates()
        self.topics_hash = 0
        self.requested_epochs: dict[TopicIdPartition, int] = {}
        self.deleting_topics: set[Uuid] = set()
        self._has_unassigned: bool | None = None  # until the next record

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group."""
        return ConsumerGroupState.STABLE if self.members else ConsumerGroupState.EMPTY

    @property
    def is_blank(self) -> bool:
        """Whether the group has no records."""
        return super().is_blank and self.states == ShareStates()

    @property
    def has_states(self) -> bool:
        """Whether the share coordinator may have state of the group."""
        return any(self.states[:3])

    @property
    def has_unassigned(self) -> bool:
        """Whether initialized share partitions of subscribed topics are missing in the target."""
        if self._has_unassigned is None:
            self._has_unassigned = self._compute_has_unassigned()
        return self._has_unassigned

    def _compute_has_unassigned(self) -> bool:
        target = {each for assigned in self.target.values() for each in partitions_of(assigned)}
        subscribed = {topic.topic_id for topic in self.topics.values()}
        return any(
            partition.topic_id in subscribed and partition not in target
            for partition in partitions_of(self.states.initialized)
        )

    def uninitialized(self) -> set[TopicIdPartition]:
        """The partitions of its topics whose state is not initialized."""
        initialized = self.states.initialized
        if all(
            len(initialized.get(t.topic_id, ())) >= t.num_partitions for t in self.topics.values()
        ):
            return set()  # the usual case, and each heartbeat calls this
        known = set(partitions_of(self.states.initialized))
        return {
            partition
            for topic in self.topics.values()
            if topic.topic_id not in self.deleting_topics
            for index in range(topic.num_partitions)
            if (partition := TopicIdPartition(topic.topic_id, index)) not in known
        }

    def is_free(self, member_id: str, partition: TopicIdPartition) -> bool:
        """Always True: members share partitions."""
        return True

    def has_topics(self, topics: Mapping[str, TopicMetadata]) -> bool:
        """Whether `topics` are the topics of the current epoch. After a replay, only their hash is
        known."""
        if self.topics or not self.topics_hash:
            return super().has_topics(topics)
        is_same = topics_hash(topics) == self.topics_hash
        self.topics_hash = 0
        if is_same:
            self.topics, self._has_unassigned = topics, None
        return is_same

    def encode_key(self, key: ConsumerKey) -> bytes | None:
        """Key bytes of a record; None if it is not stored."""
        return encode_key(key)

    def encode_value(self, key: ConsumerKey, value: Value) -> bytes:
        """Value bytes of a record."""
        if key.type is RecordType.GROUP_EPOCH:
            assert isinstance(value, int), "an epoch is a number"
            return encode_value(ShareEpoch(value, topics_hash(self.topics)))
        return encode_value(value)

    def all_keys(self) -> list[ConsumerKey]:
        """The keys of the group's records."""
        return [*super().all_keys(), ConsumerKey(RecordType.SHARE_STATES, self.group_id)]

    def replay(self, key: ConsumerKey, value: Value | ShareEpoch | None) -> None:
        """Apply a record of the log."""
        if isinstance(value, ShareEpoch):
            self.topics_hash = value.topics_hash
            value = value.epoch
        self.apply(key, value)

    def apply(self, key: ConsumerKey, value: Value | None) -> None:
        """Apply one record; None is a tombstone."""
        self._has_unassigned = None
        if key.type is RecordType.SHARE_STATES:
            assert value is None or isinstance(value, ShareStates), "a record of share partitions"
            self.states = value or ShareStates()
        else:
            super().apply(key, value)

    def value(self, key: ConsumerKey) -> Value | None:
        """The current value of a record."""
        return self.states if key.type is RecordType.SHARE_STATES else super().value(key)


def without_topics(states: ShareStates, topic_ids: frozenset[bytes]) -> ShareStates:
    """The states without those of some topics."""
    kept = states._replace(
        initializing={t: p for t, p in states.initializing.items() if t not in topic_ids},
        initialized={t: p for t, p in states.initialized.items() if t not in topic_ids},
        deleting=states.deleting - topic_ids,
    )
    return with_used_names(kept)


def with_used_names(states: ShareStates) -> ShareStates:
    """The states with the names of their topics only."""
    used = {*states.initializing, *states.initialized, *states.deleting}
    return states._replace(names={t: name for t, name in states.names.items() if t in used})


def with_initialized(states: ShareStates, partitions: set[TopicIdPartition]) -> ShareStates:
    """The states after the share coordinator has initialized `partitions`."""
    initializing = set(partitions_of(states.initializing)) - partitions
    initialized = set(partitions_of(states.initialized)) | partitions
    return states._replace(
        initializing=assignment_of(initializing), initialized=assignment_of(initialized)
    )
