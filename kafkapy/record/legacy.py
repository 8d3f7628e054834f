"""Reads message sets of formats v0 and v1 (before Kafka 0.11). `down_conversion` writes them.

    offset i64, size i32, crc32 u32 (from the magic on), magic i8, attributes i8,
    [timestamp i64: v1 only], key length i32, key, value length i32, value

A compressed wrapper has the inner set as its value, and its offset is that of its last inner
message. Inner offsets are absolute in v0 and 0..n-1 in v1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import (
    CODEC_MASK,
    LEGACY,
    LEGACY_SIZE_MIN,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    BatchHeader,
    Buffer,
    TimestampType,
    read_header,
    whole_batch_size,
)
from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX, Codec
from kafkapy.record.compression import decompress_view

_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_TIMESTAMP_OFFSET: Final = 18
_FIELDS_OFFSET: Final = {0: 18, 1: 26}  # where the key's length is


class Message(NamedTuple):
    """One v0/v1 message, its offset absolute. `timestamp` in ms, -1 in v0; `crc` as stored."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    crc: int


def read_messages(
    buf: Buffer, header: BatchHeader, position: int = 0, max_bytes: int | None = None
) -> Iterator[Message]:
    """The v0/v1 message at `position` or, if it is a compressed wrapper, its inner messages.

    Raises:
        ApiError: CORRUPT_MESSAGE (wrong CRC, or does not decompress), INVALID_RECORD (malformed).
    """
    view = memoryview(buf)[position : position + header.size]
    key, value = _key_and_value(view, _FIELDS_OFFSET[header.magic], len(view))
    codec = header.codec
    if codec is Codec.NONE:
        yield Message(
            header.base_offset,
            header.max_timestamp,
            header.timestamp_type,
            key,
            value,
            header.crc,
        )
        return
    if value is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "A compressed message has a null value")
    if codec is Codec.ZSTD:
        raise ApiError(ErrorCode.INVALID_RECORD, f"Message format v{header.magic} has no zstd")
    if codec is Codec.LZ4 and header.magic == 0:
        value = with_standard_lz4_checksum(value)
    limit = DECOMPRESSED_BYTES_MAX if max_bytes is None else max_bytes
    yield from _inner_messages(decompress_view(codec, value, limit), header)


def _inner_messages(data: Buffer, wrapper: BatchHeader) -> Iterator[Message]:
    """The messages of a wrapper. Builds no headers: 1 MB may have hundreds of thousands."""
    last_offset: int = _INT64.unpack_from(data, _last_position(data))[0]
    magic, fields_at = wrapper.magic, _FIELDS_OFFSET[wrapper.magic]
    # In v1 the wrapper has the absolute offset of its last message; old producers sent 0.
    relative = magic == 1 and wrapper.base_offset != 0
    base = wrapper.base_offset - last_offset if relative else 0
    timestamp, timestamp_type = wrapper.max_timestamp, wrapper.timestamp_type
    has_own_time = magic == 1 and not wrapper.is_log_append_time
    view, end, position = memoryview(data), len(data), 0
    while position < end:
        start = position
        offset, size, crc, own_magic, attributes = LEGACY.unpack_from(data, start)
        position += LOG_OVERHEAD + size
        if (
            own_magic != magic
            or attributes & CODEC_MASK
            or position - start < LEGACY_SIZE_MIN[magic]
            or crc32(view[start + MAGIC_OFFSET : position]) != crc
        ):
            raise _inner_message_error(data, start, wrapper)
        if has_own_time:
            timestamp = _INT64.unpack_from(data, start + _TIMESTAMP_OFFSET)[0]
        key, value = _key_and_value(data, start + fields_at, position)
        yield Message(base + offset, timestamp, timestamp_type, key, value, crc)


def _last_position(data: Buffer) -> int:
    """The position of the last message of a set.

    Raises:
        ApiError: INVALID_RECORD (the set is empty or cut off), CORRUPT_MESSAGE.
    """
    last, position, end = -1, 0, len(data)
    while (size := whole_batch_size(data, position, end)) is not None:
        last = position
        position += size
    if position != end or last < 0:
        raise ApiError(ErrorCode.INVALID_RECORD, "A compressed message set is empty or cut off")
    return last


def _inner_message_error(data: Buffer, position: int, wrapper: BatchHeader) -> ApiError:
    """The error for an invalid message in a wrapper. Raises it if the header or the CRC is bad."""
    header = read_header(data, position)
    if header.magic == wrapper.magic and header.codec is Codec.NONE:
        validate_message_crc(data, header, position)
    return ApiError(
        ErrorCode.INVALID_RECORD,
        f"A compressed v{wrapper.magic} message holds a v{header.magic} message "
        f"with codec {header.codec.label}",
    )


def _key_and_value(buf: Buffer, at: int, end: int) -> tuple[bytes | None, bytes | None]:
    key, at = _nullable_bytes(buf, at, end)
    value, at = _nullable_bytes(buf, at, end)
    if at != end:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{end - at} bytes follow a message's value")
    return key, value


def _nullable_bytes(buf: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    if at + 4 > end:
        raise ApiError(ErrorCode.INVALID_RECORD, "A message ends inside a length")
    length: int = _INT32.unpack_from(buf, at)[0]
    at += 4
    if length == -1:
        return None, at
    if not 0 <= length <= end - at:
        raise ApiError(ErrorCode.INVALID_RECORD, f"A message's field length {length} is wrong")
    return bytes(buf[at : at + length]), at + length


def validate_message_crc(buf: Buffer, header: BatchHeader, position: int = 0) -> None:
    """Check the CRC-32 of the v0/v1 message at `position`. Raises ApiError CORRUPT_MESSAGE."""
    computed = crc32(memoryview(buf)[position + MAGIC_OFFSET : position + header.size])
    if computed != header.crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Message is corrupt (stored crc = {header.crc}, computed crc = {computed})",
        )


_LZ4_MAGIC: Final = 0x184D2204
_CONTENT_SIZE_FLAG: Final = 0x08


def with_standard_lz4_checksum(frame: bytes) -> bytes:
    """An LZ4 frame from a v0 message with the header checksum that the LZ4 format requires.

    Clients of that time included the frame's magic in the checksum (KAFKA-3160): v0 allows both.
    """
    return _with_lz4_checksum(frame, 4)


def with_v0_lz4_checksum(frame: bytes) -> bytes:
    """An LZ4 frame for a v0 message: with the header checksum of KAFKA-3160."""
    return _with_lz4_checksum(frame, 0)


def _with_lz4_checksum(frame: bytes, start: int) -> bytes:
    """The frame with its header checksum computed from `start` on. Other bytes do not change."""
    if len(frame) < 7 or int.from_bytes(frame[:4], "little") != _LZ4_MAGIC:
        return frame
    end = 14 if frame[4] & _CONTENT_SIZE_FLAG else 6
    checksum = _xxh32_short(frame[start:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes: an LZ4 frame descriptor is not longer."""
    mask, prime1, prime2, prime3 = 0xFFFFFFFF, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
    prime4, prime5 = 0x27D4EB2F, 0x165667B1
    assert len(data) < 16, len(data)
    value = prime5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * prime3 & mask
        value = (value << 17 | value >> 15) * prime4 & mask
    for byte in data[whole:]:
        value = value + byte * prime5 & mask
        value = (value << 11 | value >> 21) * prime1 & mask
    value = (value ^ value >> 15) * prime2 & mask
    value = (value ^ value >> 13) * prime3 & mask
    return value ^ value >> 16
