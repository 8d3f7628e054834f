"""Message sets of the formats v0 and v1 (before Kafka 0.11), read. `down_conversion` writes them.

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
    MAGIC_OFFSET,
    BatchHeader,
    Buffer,
    TimestampType,
    iter_headers,
)
from kafkapy.record.codec import Codec
from kafkapy.record.compression import decompress

_INT32: Final = struct.Struct(">i")
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
    """The messages that the v0/v1 message at `position` is or, as a compressed wrapper, holds.

    Raises:
        ApiError: CORRUPT_MESSAGE (a CRC, or it does not decompress), INVALID_RECORD (malformed).
    """
    view = memoryview(buf)[position : position + header.size]
    key, value = _key_and_value(view, header)
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
        value = mend_lz4_header(value)
    yield from _inner_messages(decompress(codec, value, max_bytes), header)


def _inner_messages(data: bytes, wrapper: BatchHeader) -> Iterator[Message]:
    end, last_offset = 0, -1
    for position, header in iter_headers(data):
        end, last_offset = position + header.size, header.base_offset
    if end == 0 or end != len(data):
        raise ApiError(ErrorCode.INVALID_RECORD, "A compressed message set is empty or cut off")
    # In v1 the wrapper names the absolute offset of its last message; old producers sent 0.
    relative = wrapper.magic == 1 and wrapper.base_offset != 0
    base = wrapper.base_offset - last_offset if relative else 0
    for position, header in iter_headers(data):
        if header.magic != wrapper.magic or header.codec is not Codec.NONE:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"A compressed v{wrapper.magic} message holds a v{header.magic} message "
                f"with codec {header.codec.label}",
            )
        validate_message_crc(data, header, position)
        key, value = _key_and_value(memoryview(data)[position : position + header.size], header)
        timestamp, timestamp_type = header.max_timestamp, wrapper.timestamp_type
        if wrapper.is_log_append_time:
            timestamp = wrapper.max_timestamp
        offset = base + header.base_offset
        yield Message(offset, timestamp, timestamp_type, key, value, header.crc)


def _key_and_value(view: memoryview, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    key, at = _nullable_bytes(view, _FIELDS_OFFSET[header.magic])
    value, at = _nullable_bytes(view, at)
    if at != len(view):
        raise ApiError(ErrorCode.INVALID_RECORD, f"{len(view) - at} bytes follow a message's value")
    return key, value


def _nullable_bytes(view: memoryview, at: int) -> tuple[bytes | None, int]:
    if at + 4 > len(view):
        raise ApiError(ErrorCode.INVALID_RECORD, "A message ends inside a length")
    length: int = _INT32.unpack_from(view, at)[0]
    at += 4
    if length == -1:
        return None, at
    if not 0 <= length <= len(view) - at:
        raise ApiError(ErrorCode.INVALID_RECORD, f"A message's field length {length} is wrong")
    return bytes(view[at : at + length]), at + length


def validate_message_crc(buf: Buffer, header: BatchHeader, position: int = 0) -> None:
    """Raises ApiError CORRUPT_MESSAGE unless the v0/v1 message at `position` has its CRC-32."""
    computed = crc32(memoryview(buf)[position + MAGIC_OFFSET : position + header.size])
    if computed != header.crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Message is corrupt (stored crc = {header.crc}, computed crc = {computed})",
        )


_LZ4_MAGIC: Final = 0x184D2204
_CONTENT_SIZE_FLAG: Final = 0x08


def mend_lz4_header(frame: bytes) -> bytes:
    """An LZ4 frame from a v0 message with the header checksum that the LZ4 format wants.

    Clients of that time took the checksum over the frame's magic too (KAFKA-3160): v0 allows both.
    """
    return _with_checksum_from(frame, 4)


def spoil_lz4_header(frame: bytes) -> bytes:
    """An LZ4 frame for a v0 message: with the header checksum of KAFKA-3160."""
    return _with_checksum_from(frame, 0)


def _with_checksum_from(frame: bytes, start: int) -> bytes:
    """The frame with its header's checksum taken from `start` on; other bytes as they are."""
    if len(frame) < 7 or int.from_bytes(frame[:4], "little") != _LZ4_MAGIC:
        return frame
    end = 14 if frame[4] & _CONTENT_SIZE_FLAG else 6
    checksum = _xxh32_short(frame[start:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes: all that an LZ4 frame descriptor can be."""
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
