"""Writes formats that kafkapy only reads: v0/v1 messages, sets and compressed wrappers."""

from __future__ import annotations

import struct
from zlib import crc32

from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress


def message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = -1,
    attributes: int = 0,
) -> bytes:
    """One message; `timestamp` is used in v1 only."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for field in (key, value):
        body += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    return struct.pack(">qiI", offset, 4 + len(body), crc32(body)) + body


def message_set(magic: int, offsets: list[int], key: bytes | None = b"k") -> bytes:
    """Messages `value 0`, `value 1` ... with the timestamps 1000, 1001 ..."""
    return b"".join(
        message(magic, offset, key, b"value %d" % i, timestamp=1000 + i)
        for i, offset in enumerate(offsets)
    )


def wrapper(
    magic: int,
    codec: Codec,
    inner: bytes,
    *,
    offset: int = 0,
    timestamp: int = 1000,
    log_append_time: bool = False,
) -> bytes:
    """`inner` as the value of one compressed message, in v0 with the lz4 header bug of its time."""
    value = compress(codec, inner)
    if codec is Codec.LZ4 and magic == 0:
        value = old_lz4(value)
    attributes = codec | (8 if log_append_time else 0)
    return message(magic, offset, None, value, timestamp=timestamp, attributes=attributes)


def old_lz4(frame: bytes) -> bytes:
    """An LZ4 frame whose header checksum is over its magic too, as clients of 0.8 wrote it."""
    assert frame[:6].hex() == "04224d186040", frame[:6]
    return frame[:6] + b"\x1a" + frame[7:]
