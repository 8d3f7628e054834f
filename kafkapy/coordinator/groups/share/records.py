"""Records of share groups in `__consumer_offsets`, byte for byte as Kafka 4 writes them.

Keys 10 to 15. Targets have the format of consumer groups; the other records have their own formats.
The hash of the group's topics is not Kafka's: a coordinator that computes another hash starts a new
epoch. Kafka: `ShareGroup*Key` and `ShareGroup*Value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.compact_fields import (
    NO_TAGS,
    CompactReader,
    compact_array,
    compact_string,
)
from kafkapy.coordinator.groups.consumer.assignment import EMPTY_ASSIGNMENT, Assignment
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
    ShareStates,
    TopicMetadata,
    Value,
    assignment_field,
    read_assignment,
)
from kafkapy.coordinator.record_fields import I16, I32, I64, RecordReader, string_field

_KEY_VERSIONS: Final[Mapping[RecordType, int]] = {
    RecordType.MEMBER: 10,
    RecordType.GROUP_EPOCH: 11,
    RecordType.TARGET_EPOCH: 12,
    RecordType.TARGET: 13,
    RecordType.CURRENT: 14,
    RecordType.SHARE_STATES: 15,
}
_TYPES: Final = {version: kind for kind, version in _KEY_VERSIONS.items()}
_TYPES_WITH_NAME: Final = frozenset({RecordType.MEMBER, RecordType.TARGET, RecordType.CURRENT})


class ShareEpoch(NamedTuple):
    """A group's epoch, and the hash of its topics in that epoch."""

    epoch: int
    topics_hash: int


def topics_hash(topics: Mapping[str, TopicMetadata]) -> int:
    """A signed 64-bit hash of the topics' ids and numbers of partitions."""
    rows = b"".join(topic.topic_id + I32.pack(topic.num_partitions) for topic in topics.values())
    return int.from_bytes(blake2b(rows, digest_size=8).digest(), signed=True) if rows else 0


def encode_key(key: ConsumerKey) -> bytes | None:
    """Key bytes; None for a record that share groups do not have."""
    version = _KEY_VERSIONS.get(key.type)
    if version is None:
        return None
    head = I16.pack(version) + string_field(key.group_id)
    return head + string_field(key.name) if key.type in _TYPES_WITH_NAME else head


def read_share_key(data: bytes) -> ConsumerKey | None:
    """The key, or None if it is of another kind of record.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = RecordReader(data, GROUP_METADATA_TOPIC)
    kind = _TYPES.get(reader.i16())
    if kind is None:
        return None
    group_id = reader.string()
    return ConsumerKey(kind, group_id, reader.string() if kind in _TYPES_WITH_NAME else "")


def encode_value(value: Value | ShareEpoch) -> bytes:
    """Value bytes (v0)."""
    if isinstance(value, ShareEpoch):
        body = I32.pack(value.epoch) + I64.pack(value.topics_hash)
    elif isinstance(value, int):
        body = I32.pack(value)
    elif isinstance(value, MemberMetadata):
        body = b"".join(
            (
                compact_string(value.rack_id),
                compact_string(value.client_id),
                compact_string(value.client_host),
                compact_array(map(compact_string, value.subscribed_names)),
            )
        )
    elif isinstance(value, CurrentAssignment):
        head = I32.pack(value.member_epoch) + I32.pack(value.previous_epoch)
        body = head + bytes([value.state]) + assignment_field(value.assigned)
    elif isinstance(value, ShareStates):
        body = _states(value)
    else:
        assert not isinstance(value, tuple), "share groups have no regular expressions"
        body = assignment_field(value)  # type: ignore[arg-type]
    return I16.pack(0) + body + NO_TAGS


def read_share_value(key: ConsumerKey, data: bytes) -> Value | ShareEpoch:
    """Read value v0.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = CompactReader(data, GROUP_METADATA_TOPIC)
    reader.version(0)
    if key.type is RecordType.GROUP_EPOCH:
        return ShareEpoch(reader.i32(), reader.i64())
    if key.type is RecordType.TARGET_EPOCH:
        return reader.i32()
    if key.type is RecordType.MEMBER:
        rack_id = reader.nullable_compact_string()
        client_id, host = reader.compact_string(), reader.compact_string()
        names = tuple(reader.compact_array(reader.compact_string))
        return MemberMetadata(None, rack_id, client_id, host, names, None, -1, None)
    if key.type is RecordType.CURRENT:
        member_epoch, previous_epoch, state = reader.i32(), reader.i32(), reader.i8()
        if state not in MemberState.__members__.values():
            raise reader.corrupt(f"member state {state} is not known")
        assigned = read_assignment(reader)
        return CurrentAssignment(member_epoch, previous_epoch, MemberState(state), assigned)
    if key.type is RecordType.SHARE_STATES:
        return _read_states(reader)
    return read_assignment(reader)


def _states(states: ShareStates) -> bytes:
    def topics(assignment: Assignment) -> bytes:
        return compact_array(
            topic_id
            + compact_string(states.names.get(topic_id, ""))
            + compact_array(map(I32.pack, sorted(indexes)))
            + NO_TAGS
            for topic_id, indexes in sorted(assignment.items())
        )

    deleting = compact_array(
        topic_id + compact_string(states.names.get(topic_id, "")) + NO_TAGS
        for topic_id in sorted(states.deleting)
    )
    return topics(states.initializing) + topics(states.initialized) + deleting


def _read_states(reader: CompactReader) -> ShareStates:
    names: dict[Uuid, str] = {}

    def topic_id() -> Uuid:
        found = reader.uuid()
        names[found] = reader.compact_string()
        return found

    def topic() -> tuple[Uuid, frozenset[int]]:
        found = topic_id(), frozenset(reader.compact_array(reader.i32))
        reader.skip_tags()
        return found

    def deleted() -> Uuid:
        found = topic_id()
        reader.skip_tags()
        return found

    initializing, initialized = dict(reader.compact_array(topic)), dict(reader.compact_array(topic))
    deleting = frozenset(reader.compact_array(deleted))
    return ShareStates(
        initializing or EMPTY_ASSIGNMENT, initialized or EMPTY_ASSIGNMENT, deleting, names
    )
