"""Keys and values of `__consumer_offsets`, byte for byte.

Written: offset commit key v1 with value v3 (v1 when the commit has its own expiry), group metadata
key v2 with value v3. Read: every older version too. Classic encodings only: big-endian, strings
with an i16 length. Kafka: OffsetCommitKey/Value, GroupMetadataKey/Value, `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.record_fields import (
    I16,
    I32,
    I64,
    RecordReader,
    bytes_field,
    string_field,
)

_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
_VALUE_VERSION: Final = 3
_EXPIRING_VALUE_VERSION: Final = 1
_STRING_BYTES_MAX: Final = 2**15 - 1
_NAMES_BYTES_MAX: Final = 2**20


class OffsetAndMetadata(NamedTuple):
    """One committed offset; `expire_timestamp_ms` is None if it has no own retention."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


class OffsetKey(NamedTuple):
    """Key of an offset commit."""

    group_id: str
    topic_partition: TopicPartition


class GroupKey(NamedTuple):
    """Key of a group's metadata."""

    group_id: str


class MemberValue(NamedTuple):
    """One member in a group's metadata."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    """A group's metadata; a `state_timestamp_ms` of None is from records before Kafka 2.1."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int | None
    members: Sequence[MemberValue]


def fits_record(*texts: str | None) -> bool:
    """Whether each text can be written as a string with a 16-bit length."""
    return all(t is None or len(t.encode()) <= _STRING_BYTES_MAX for t in texts)


def names_fit_record(names: Collection[str] | None) -> bool:
    """Whether a record with these names fits into a batch of the default `max.message.bytes`. Each
    name has a byte for its length, or more."""
    return names is None or len(names) + sum(map(len, names)) <= _NAMES_BYTES_MAX


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Key bytes of an offset commit (v1)."""
    return b"".join(
        (
            I16.pack(_OFFSET_KEY_VERSION),
            string_field(group_id),
            string_field(partition.topic),
            I32.pack(partition.partition),
        )
    )


def offset_value(commit: OffsetAndMetadata) -> bytes:
    """Value bytes of an offset commit: v3, or v1 if it has an expiry, which v3 cannot hold."""
    metadata = string_field(commit.metadata)
    timestamp = I64.pack(commit.commit_timestamp_ms)
    if commit.expire_timestamp_ms is not None:
        expiry = I64.pack(commit.expire_timestamp_ms)
        version = I16.pack(_EXPIRING_VALUE_VERSION)
        return version + I64.pack(commit.offset) + metadata + timestamp + expiry
    head = I16.pack(_VALUE_VERSION) + I64.pack(commit.offset) + I32.pack(commit.leader_epoch)
    return head + metadata + timestamp


def group_key(group_id: str) -> bytes:
    """Key bytes of a group's metadata (v2)."""
    return I16.pack(_GROUP_KEY_VERSION) + string_field(group_id)


def group_value(value: GroupValue) -> bytes:
    """Value bytes of a group's metadata (v3)."""
    timestamp = -1 if value.state_timestamp_ms is None else value.state_timestamp_ms
    parts = [
        I16.pack(_VALUE_VERSION),
        string_field(value.protocol_type),
        I32.pack(value.generation_id),
        string_field(value.protocol_name),
        string_field(value.leader_id),
        I64.pack(timestamp),
        I32.pack(len(value.members)),
    ]
    for member in value.members:
        parts += (
            string_field(member.member_id),
            string_field(member.group_instance_id),
            string_field(member.client_id),
            string_field(member.client_host),
            I32.pack(member.rebalance_timeout_ms),
            I32.pack(member.session_timeout_ms),
            bytes_field(member.subscription),
            bytes_field(member.assignment),
        )
    return b"".join(parts)


def read_key(data: bytes | memoryview) -> OffsetKey | GroupKey | None:
    """The key, or None if it is of another kind of record: see `consumer.records`.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = RecordReader(data, GROUP_METADATA_TOPIC)
    version = reader.i16()
    if 0 <= version <= _OFFSET_KEY_VERSION:
        return OffsetKey(reader.string(), TopicPartition(reader.string(), reader.i32()))
    if version == _GROUP_KEY_VERSION:
        return GroupKey(reader.string())
    return None


def read_offset_value(data: bytes | memoryview) -> OffsetAndMetadata:
    """Read value v0 to v3.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = RecordReader(data, GROUP_METADATA_TOPIC)
    version = reader.version(_VALUE_VERSION)
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else -1
    metadata = reader.string()
    timestamp = reader.i64()
    expiry = reader.i64() if version == 1 else -1
    return OffsetAndMetadata(
        offset, leader_epoch, metadata, timestamp, None if expiry == -1 else expiry
    )


def read_group_value(data: bytes | memoryview) -> GroupValue:
    """Read value v0 to v3.

    Raises:
        ApiError: CORRUPT_MESSAGE, also for a version of a later Kafka.
    """
    reader = RecordReader(data, GROUP_METADATA_TOPIC)
    version = reader.version(_VALUE_VERSION)
    protocol_type = reader.nullable_string() or ""
    generation_id = reader.i32()
    protocol_name = reader.nullable_string()
    leader_id = reader.nullable_string()
    timestamp = reader.i64() if version >= 2 else -1
    members = [_read_member(reader, version) for _ in range(reader.i32())]
    return GroupValue(
        protocol_type,
        generation_id,
        protocol_name,
        leader_id,
        None if timestamp == -1 else timestamp,
        members,
    )


def _read_member(reader: RecordReader, version: int) -> MemberValue:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.i32() if version >= 1 else -1
    session_timeout_ms = reader.i32()
    if version == 0:
        rebalance_timeout_ms = session_timeout_ms
    return MemberValue(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        reader.bytes_(),
        reader.bytes_(),
    )
