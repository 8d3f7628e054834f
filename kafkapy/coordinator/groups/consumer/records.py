"""Records of consumer groups in `__consumer_offsets`, byte for byte as Kafka 4 writes them.

A key is a version and its fields in the classic encoding, a value is version 0 in the flexible one.
Topics are written without the racks of their partitions: no assignor uses them, and Kafka 4.1 no
longer writes the record that has them. Tagged fields of later versions are skipped.
Kafka: `ConsumerGroup*Key` and `ConsumerGroup*Value`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.compact_fields import (
    NO_TAGS,
    CompactReader,
    compact_array,
    compact_bytes,
    compact_string,
    tagged_fields,
    uvarint,
)
from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    TopicIdPartition,
)
from kafkapy.coordinator.record_fields import I16, I32, I64, RecordReader, string_field


class RecordType(IntEnum):
    """Types of records: the version of their keys. Share groups have their own keys for most types:
    `share.records`."""

    GROUP_EPOCH = 3
    TOPICS = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    SHARE_STATES = 15
    REGEX = 16


class ConsumerKey(NamedTuple):
    """Key of a record; `name` is the member id, the regular expression, or "" for the group."""

    type: RecordType
    group_id: str
    name: str = ""


class TopicMetadata(NamedTuple):
    """A subscribed topic, as in the group's record."""

    topic_id: Uuid
    name: str
    num_partitions: int


class ClassicMember(NamedTuple):
    """The fields that only a member of the classic protocol has."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(name, subscription), in the member's order of preference."""


TopicSubscription: TypeAlias = tuple[tuple[str, ...], str | None]
"""Names and a regular expression."""


class MemberMetadata(NamedTuple):
    """A member's description of itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_names: tuple[str, ...]
    """Sorted, without duplicates."""
    subscribed_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMember | None = None
    """None for a member of the consumer protocol."""

    @property
    def subscription(self) -> TopicSubscription:
        """The names and the regular expression that the member is subscribed to."""
        return self.subscribed_names, self.subscribed_regex


class MemberState(IntEnum):
    """States of a member's reconciliation, as the record has them."""

    STABLE = 0
    """The member has its target, or an earlier one until its next heartbeat."""
    UNREVOKED_PARTITIONS = 1
    """The member must revoke partitions before it moves to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """The member is in the target's epoch and waits for partitions that others still have."""


class CurrentAssignment(NamedTuple):
    """A member's progress towards its target."""

    member_epoch: int = 0
    previous_epoch: int = -1
    """The epoch in the next heartbeat of a member that missed a response."""
    state: MemberState = MemberState.STABLE
    assigned: Assignment = EMPTY_ASSIGNMENT
    revoking: Assignment = EMPTY_ASSIGNMENT
    epochs: Mapping[TopicIdPartition, int] = MappingProxyType({})

    def assignment_epoch(self, partition: TopicIdPartition) -> int:
        """The epoch in which the member got a partition. Records of Kafka before 4.3 do not have
        it (KIP-1251)."""
        return self.epochs.get(partition, max(self.member_epoch, 0))


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched; `version` is that of the metadata image."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ShareStates(NamedTuple):
    """A group's share partitions, by the progress of their state in the share coordinator."""

    initializing: Assignment = EMPTY_ASSIGNMENT
    initialized: Assignment = EMPTY_ASSIGNMENT
    deleting: frozenset[Uuid] = frozenset()
    names: Mapping[Uuid, str] = MappingProxyType({})


Value: TypeAlias = (
    int | Mapping[str, TopicMetadata] | MemberMetadata | Assignment | CurrentAssignment
    | ResolvedRegex | ShareStates
)  # fmt: skip

_CLASSIC_TAG: Final = 0
_EPOCHS_TAG: Final = 0
_NOT_NULL: Final = b"\1"
_TYPES_WITH_NAME: Final = frozenset(
    {RecordType.MEMBER, RecordType.TARGET, RecordType.CURRENT, RecordType.REGEX}
)


def encode_key(key: ConsumerKey) -> bytes:
    """Key bytes."""
    head = I16.pack(key.type) + string_field(key.group_id)
    return head + string_field(key.name) if key.type in _TYPES_WITH_NAME else head


def read_consumer_key(data: bytes | memoryview) -> ConsumerKey | None:
    """The key, or None if it is of another kind of record.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = RecordReader(data, GROUP_METADATA_TOPIC)
    version = reader.i16()
    if version not in _CODECS:
        return None
    kind = RecordType(version)
    group_id = reader.string()
    return ConsumerKey(kind, group_id, reader.string() if kind in _TYPES_WITH_NAME else "")


def encode_value(key: ConsumerKey, value: Value) -> bytes:
    """Value bytes (v0)."""
    tags = _member_tags(value) if isinstance(value, MemberMetadata) else NO_TAGS
    return I16.pack(0) + _CODECS[key.type].encode(value) + tags


def read_value(key: ConsumerKey, data: bytes | memoryview) -> Value:
    """Read value v0.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = CompactReader(data, GROUP_METADATA_TOPIC)
    reader.version(0)
    value: Value = _CODECS[key.type].read(reader)
    return value


def _epoch(value: int) -> bytes:
    return I32.pack(value)


def _read_epoch(reader: CompactReader) -> int:
    return reader.i32()


def _topics(topics: Mapping[str, TopicMetadata]) -> bytes:
    return compact_array(
        b"".join(
            (
                topic.topic_id,
                compact_string(topic.name),
                I32.pack(topic.num_partitions),
                compact_array(()),
                NO_TAGS,
            )
        )
        for topic in topics.values()
    )


def _read_topics(reader: CompactReader) -> dict[str, TopicMetadata]:
    def racks() -> None:
        reader.i32()
        reader.compact_array(reader.compact_string)
        reader.skip_tags()

    def topic() -> TopicMetadata:
        found = TopicMetadata(reader.uuid(), reader.compact_string(), reader.i32())
        reader.compact_array(racks)
        reader.skip_tags()
        return found

    return {found.name: found for found in reader.compact_array(topic)}


def _member(member: MemberMetadata) -> bytes:
    return b"".join(
        (
            compact_string(member.instance_id),
            compact_string(member.rack_id),
            compact_string(member.client_id),
            compact_string(member.client_host),
            compact_array(map(compact_string, member.subscribed_names)),
            compact_string(member.subscribed_regex),
            I32.pack(member.rebalance_timeout_ms),
            compact_string(member.server_assignor),
        )
    )


def _member_tags(member: MemberMetadata) -> bytes:
    """The one tagged field, a structure that may be null."""
    classic = member.classic
    if classic is None:
        return NO_TAGS
    protocols = compact_array(
        compact_string(name) + compact_bytes(metadata) + NO_TAGS
        for name, metadata in classic.protocols
    )
    value = _NOT_NULL + I32.pack(classic.session_timeout_ms) + protocols + NO_TAGS
    return uvarint(1) + uvarint(_CLASSIC_TAG) + uvarint(len(value)) + value


def _read_member(reader: CompactReader) -> MemberMetadata:
    return MemberMetadata(
        reader.nullable_compact_string(),
        reader.nullable_compact_string(),
        reader.compact_string(),
        reader.compact_string(),
        tuple(reader.compact_array(reader.compact_string)),
        reader.nullable_compact_string(),
        reader.i32(),
        reader.nullable_compact_string(),
        _read_classic(reader.tags().get(_CLASSIC_TAG)),
    )


def _read_classic(data: bytes | None) -> ClassicMember | None:
    value = CompactReader(data or b"\0", GROUP_METADATA_TOPIC)
    if not value.i8():
        return None

    def protocol() -> tuple[str, bytes]:
        found = value.compact_string(), value.compact_bytes()
        value.skip_tags()
        return found

    return ClassicMember(value.i32(), tuple(value.compact_array(protocol)))


def assignment_field(assignment: Assignment) -> bytes:
    """Partitions by topic."""
    return compact_array(
        topic_id + compact_array(map(I32.pack, sorted(indexes))) + NO_TAGS
        for topic_id, indexes in sorted(assignment.items())
    )


def read_assignment(reader: CompactReader) -> Assignment:
    """Read partitions by topic."""

    def topic() -> tuple[Uuid, frozenset[int]]:
        found = reader.uuid(), frozenset(reader.compact_array(reader.i32))
        reader.skip_tags()
        return found

    return {topic_id: indexes for topic_id, indexes in reader.compact_array(topic) if indexes}


def _current(current: CurrentAssignment) -> bytes:
    return b"".join(
        (
            I32.pack(current.member_epoch),
            I32.pack(current.previous_epoch),
            bytes([current.state]),
            _partitions_with_epochs(current, current.assigned),
            _partitions_with_epochs(current, current.revoking),
        )
    )


def _partitions_with_epochs(current: CurrentAssignment, assignment: Assignment) -> bytes:
    """Partitions by topic, each topic with their assignment epochs."""

    def topic(topic_id: Uuid, indexes: list[int]) -> bytes:
        values = (current.assignment_epoch(TopicIdPartition(topic_id, i)) for i in indexes)
        epochs = compact_array(map(I32.pack, values))
        tags = tagged_fields({_EPOCHS_TAG: epochs})
        return topic_id + compact_array(map(I32.pack, indexes)) + tags

    rows = sorted(assignment.items())
    return compact_array(topic(topic_id, sorted(indexes)) for topic_id, indexes in rows)


def _read_partitions_with_epochs(
    reader: CompactReader, epochs: dict[TopicIdPartition, int]
) -> Assignment:
    """Read partitions by topic, and put their assignment epochs into `epochs`."""

    def topic() -> tuple[Uuid, frozenset[int]]:
        topic_id, indexes = reader.uuid(), reader.compact_array(reader.i32)
        tag = CompactReader(reader.tags().get(_EPOCHS_TAG, b"\0"), GROUP_METADATA_TOPIC)
        partitions = (TopicIdPartition(topic_id, index) for index in indexes)
        epochs.update(zip(partitions, tag.compact_array(tag.i32), strict=False))
        return topic_id, frozenset(indexes)

    return {topic_id: indexes for topic_id, indexes in reader.compact_array(topic) if indexes}


def _read_current(reader: CompactReader) -> CurrentAssignment:
    member_epoch, previous_epoch, state = reader.i32(), reader.i32(), reader.i8()
    if state not in MemberState.__members__.values():
        raise reader.corrupt(f"member state {state} is not known")
    epochs: dict[TopicIdPartition, int] = {}
    assigned, revoking = (
        _read_partitions_with_epochs(reader, epochs),
        _read_partitions_with_epochs(reader, epochs),
    )
    return CurrentAssignment(
        member_epoch, previous_epoch, MemberState(state), assigned, revoking, epochs
    )


def _regex(regex: ResolvedRegex) -> bytes:
    topics = compact_array(map(compact_string, sorted(regex.topics)))
    return topics + I64.pack(regex.version) + I64.pack(regex.timestamp_ms)


def _read_regex(reader: CompactReader) -> ResolvedRegex:
    topics = frozenset(reader.compact_array(reader.compact_string))
    return ResolvedRegex(topics, reader.i64(), reader.i64())


class _Codec(NamedTuple):
    encode: Callable[[Any], bytes]  # type: ignore[explicit-any]
    read: Callable[[CompactReader], Any]  # type: ignore[explicit-any]


_CODECS: Final[Mapping[RecordType, _Codec]] = {  # type: ignore[explicit-any]
    RecordType.GROUP_EPOCH: _Codec(_epoch, _read_epoch),
    RecordType.TOPICS: _Codec(_topics, _read_topics),
    RecordType.MEMBER: _Codec(_member, _read_member),
    RecordType.TARGET_EPOCH: _Codec(_epoch, _read_epoch),
    RecordType.TARGET: _Codec(assignment_field, read_assignment),
    RecordType.CURRENT: _Codec(_current, _read_current),
    RecordType.REGEX: _Codec(_regex, _read_regex),
}
