"""Down-conversion: batches of format v2 as message sets of v1 or v0, for consumers before 0.11.

Headers, producer ids and transaction markers have no place in those formats and are dropped. The
records of aborted transactions stay: these consumers read uncommitted. Compressed batches stay
compressed, each as one wrapper (`legacy` has the layout).
(`org.apache.kafka.common.record.RecordsUtil.downConvert`, `LazyDownConversionRecords`.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import Final
from zlib import crc32

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Pause, no_pause
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import (
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    iter_headers,
)
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.legacy import with_v0_lz4_checksum
from kafkapy.record.records import Record, batch_records

OVERFLOW: Final = struct.pack(">qi", -1, 61)
"""The beginning of a message whose rest is never sent. It replaces batches without a message for
the consumer, so that the consumer reports a message that it cannot read, and does not fetch
forever."""

_HEAD: Final = struct.Struct(">qiI")  # offset, size, CRC
_FIELDS: Final = (struct.Struct(">bb"), struct.Struct(">bbq"))  # magic, attributes, timestamp
_INT32: Final = struct.Struct(">i")
_NULL: Final = _INT32.pack(-1)


def down_convert(
    batches: Buffer, magic: int, first_offset: int, max_bytes: int, pause: Pause = no_pause
) -> bytes:
    """The whole batches of `batches` as a message set of format `magic`, cut at `max_bytes`.

    The first batch with records to return is never cut. Uncompressed records before
    `first_offset` are left out. `pause` is called for each batch.

    Raises:
        ApiError: that first batch cannot be converted: UNSUPPORTED_COMPRESSION_TYPE (zstd),
            CORRUPT_MESSAGE, INVALID_RECORD. If a later one cannot, the set ends before it.
    """
    out = bytearray()
    is_empty = True
    try:
        for position, header in iter_headers(batches):
            is_empty = False
            pause()
            if header.is_control:
                continue
            converted = _convert(batches, position, header, magic, first_offset)
            if not converted:  # compaction has removed all its records
                continue
            if not out:
                max_bytes = max(max_bytes, len(converted))
            out += converted
            if len(out) >= max_bytes:
                break
    except ApiError:
        if not out:
            raise
    if out:
        return bytes(memoryview(out)[:max_bytes])
    return b"" if is_empty else OVERFLOW


def _convert(
    batches: Buffer, position: int, header: BatchHeader, magic: int, first_offset: int
) -> bytes:
    codec = header.codec
    if codec is Codec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "Down-conversion of zstandard-compressed batches is not supported",
        )
    if header.magic <= magic:
        return bytes(memoryview(batches)[position : position + header.size])
    # Damage must not get a valid CRC. (Kafka does not validate it.)
    validate_crc(batches, position, header)
    attributes = LOG_APPEND_TIME_BIT if magic and header.is_log_append_time else 0
    records = batch_records(batches, header, position)
    if codec is not Codec.NONE:
        return _wrapper(records, header, magic, attributes)
    out = bytearray()
    for r in records:
        if r.offset >= first_offset:
            out += _message(r.offset, magic, attributes, r.timestamp, r.key, r.value)
    return bytes(out)


def _wrapper(records: Iterator[Record], header: BatchHeader, magic: int, attributes: int) -> bytes:
    """One compressed message with `records` as its value: inner offsets count from the first
    record in v1 and are absolute in v0; its own offset is that of the last record. The
    records are not collected in a list: a batch of 1 MB may have a million of them."""
    first = next(records, None)
    if first is None:  # compaction has left the batch empty
        return b""
    base_offset = first.offset if magic else 0
    inner, timestamp = bytearray(), NO_TIMESTAMP
    for r in chain((first,), records):
        timestamp = max(timestamp, r.timestamp)
        inner += _message(r.offset - base_offset, magic, attributes, r.timestamp, r.key, r.value)
    codec = header.codec
    value = compress(codec, inner)
    if codec is Codec.LZ4 and magic == 0:
        value = with_v0_lz4_checksum(value)
    if header.is_log_append_time:
        timestamp = header.max_timestamp
    return _message(r.offset, magic, attributes | codec, timestamp, None, value)


def _message(
    offset: int,
    magic: int,
    attributes: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    fields = (magic, attributes, timestamp) if magic else (magic, attributes)
    body = b"".join([_FIELDS[magic].pack(*fields), *_with_length(key), *_with_length(value)])
    return _HEAD.pack(offset, len(body) + 4, crc32(body)) + body


def _with_length(data: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if data is None else (_INT32.pack(len(data)), data)
