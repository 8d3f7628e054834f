"""Keys and values of `__consumer_offsets`, byte for byte.

Written: offset commit key v1 with value v3 (v1 when the commit has its own expiry), group metadata
key v2 with value v3. Read: every older version too. Classic encodings only: big-endian, strings
with an i16 length. Kafka: OffsetCommitKey/Value, GroupMetadataKey/Value, `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")

_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
_VALUE_VERSION: Final = 3
_EXPIRING_VALUE_VERSION: Final = 1
_STRING_BYTES_MAX: Final = 2**15 - 1


class OffsetAndMetadata(NamedTuple):
    """One committed offset; without a retention of its own, `expire_timestamp_ms` is None."""

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


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Key bytes of an offset commit (v1)."""
    return b"".join(
        (
            _I16.pack(_OFFSET_KEY_VERSION),
            _string(group_id),
            _string(partition.topic),
            _I32.pack(partition.partition),
        )
    )


def offset_value(commit: OffsetAndMetadata) -> bytes:
    """Value bytes of an offset commit: v3, or v1 for one with an expiry, which v3 cannot say."""
    metadata = _string(commit.metadata)
    timestamp = _I64.pack(commit.commit_timestamp_ms)
    if commit.expire_timestamp_ms is not None:
        expiry = _I64.pack(commit.expire_timestamp_ms)
        version = _I16.pack(_EXPIRING_VALUE_VERSION)
        return version + _I64.pack(commit.offset) + metadata + timestamp + expiry
    head = _I16.pack(_VALUE_VERSION) + _I64.pack(commit.offset) + _I32.pack(commit.leader_epoch)
    return head + metadata + timestamp


def group_key(group_id: str) -> bytes:
    """Key bytes of a group's metadata (v2)."""
    return _I16.pack(_GROUP_KEY_VERSION) + _string(group_id)


def group_value(value: GroupValue) -> bytes:
    """Value bytes of a group's metadata (v3)."""
    timestamp = -1 if value.state_timestamp_ms is None else value.state_timestamp_ms
    parts = [
        _I16.pack(_VALUE_VERSION),
        _string(value.protocol_type),
        _I32.pack(value.generation_id),
        _string(value.protocol_name),
        _string(value.leader_id),
        _I64.pack(timestamp),
        _I32.pack(len(value.members)),
    ]
    for member in value.members:
        parts += (
            _string(member.member_id),
            _string(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _I32.pack(member.rebalance_timeout_ms),
            _I32.pack(member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    return b"".join(parts)


def read_key(data: bytes | memoryview) -> OffsetKey | GroupKey | None:
    """The key, or None if its version is of a later Kafka (the new group protocol starts at 3).

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    reader = _Reader(data)
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
    reader = _Reader(data)
    version = reader.value_version()
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
    reader = _Reader(data)
    version = reader.value_version()
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


def _read_member(reader: _Reader, version: int) -> MemberValue:
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


def _string(text: str | None) -> bytes:
    if text is None:
        return _I16.pack(-1)
    data = text.encode()
    return _I16.pack(len(data)) + data


def _bytes(data: bytes) -> bytes:
    return _I32.pack(len(data)) + data


class _Reader:
    """Walks a buffer; running out of it is CORRUPT_MESSAGE."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = bytes(data)
        self._position = 0

    def i16(self) -> int:
        return self._int(_I16)

    def i32(self) -> int:
        return self._int(_I32)

    def i64(self) -> int:
        return self._int(_I64)

    def value_version(self) -> int:
        version = self.i16()
        if not 0 <= version <= _VALUE_VERSION:
            raise _corrupt(f"value version {version} is not known")
        return version

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise _corrupt("a string is null")
        return text

    def nullable_string(self) -> str | None:
        size = self.i16()
        if size == -1:
            return None
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise _corrupt("a string is not UTF-8") from error

    def bytes_(self) -> bytes:
        return self._take(self.i32())

    def _int(self, form: Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._position)
        except StructError as error:
            raise _corrupt("it ends too early") from error
        self._position += form.size
        return int(value)

    def _take(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if size < 0 or self._position > len(self._data):
            raise _corrupt(f"a length of {size} does not fit")
        return self._data[start : self._position]


def _corrupt(problem: str) -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, f"Malformed __consumer_offsets record: {problem}")
