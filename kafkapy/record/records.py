"""Decodes the records of batches, for tools, coordinators and the cleaner.

Not on the produce or fetch path. A malformed record raises ApiError INVALID_RECORD, a failed
decompression CORRUPT_MESSAGE. No input raises anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import (
    CODEC_MASK,
    HEADER_SIZE,
    INT64_MAX,
    INT64_MIN,
    MAGIC,
    NO_SEQUENCE,
    BatchHeader,
    Buffer,
    TimestampType,
    add_to_sequence,
    iter_headers,
)
from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX
from kafkapy.record.compression import decompress_view
from kafkapy.record.varint import read_varint

_COPIED_BYTES_MAX: Final = 1 << 20


class Record(NamedTuple):
    """A record with its offset. `timestamp` in ms; `sequence` -1 without an idempotent producer."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    sequence: int


def iter_records(buf: Buffer, *, include_control: bool = False) -> Iterator[Record]:
    """The records of all whole batches in `buf`, of any format; markers only on request.

    Raises:
        ApiError: CORRUPT_MESSAGE or INVALID_RECORD on reaching a bad batch. No CRC is checked.
    """
    for position, header in iter_headers(buf):
        if include_control or not header.is_control:
            yield from batch_records(buf, header, position)


def batch_records(
    buf: Buffer,
    header: BatchHeader,
    position: int = 0,
    max_bytes: int | None = None,
    *,
    skipped: Callable[[ApiError], None] | None = None,
) -> Iterator[Record]:
    """The records of the batch at `position`, whose header is `header`, one at a time.

    With `skipped`, a malformed record of format v2 does not end the iteration: `skipped` gets the
    reason, and the next record is read, if the malformed one has a possible length.

    Raises:
        ApiError: CORRUPT_MESSAGE (does not decompress within `max_bytes`), INVALID_RECORD (a record
            is malformed; the records before it were yielded).
    """
    if header.magic != MAGIC:
        # Old formats are rare. Imported here, so that tools start sooner.
        from kafkapy.record.legacy import read_messages

        for m in read_messages(buf, header, position, max_bytes):
            yield Record(m.offset, m.timestamp, m.timestamp_type, m.key, m.value, [], NO_SEQUENCE)
        return
    data = records_view(buf, header, position, max_bytes)
    timestamp_type = header.timestamp_type
    at = 0
    for index in range(header.record_count):
        start = at
        try:
            offset_delta, timestamp_delta, key, value, headers, at = _read_record(data, at)
            _check_deltas(offset_delta, timestamp_delta, header)
        except (IndexError, ValueError) as error:
            refusal = malformed(header, index, str(error))
            if skipped is None:
                raise refusal from None
            skipped(refusal)
            at = _end_of_record(data, start)
            if at < 0:
                return
            continue
        timestamp = header.base_timestamp + timestamp_delta
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp = header.max_timestamp
        sequence = header.base_sequence
        sequence = add_to_sequence(sequence, offset_delta) if sequence >= 0 else NO_SEQUENCE
        offset = header.base_offset + offset_delta
        yield Record(offset, timestamp, timestamp_type, key, value, headers, sequence)
    if at != len(data):
        reason = f"{len(data) - at} bytes follow the records"
        refusal = malformed(header, header.record_count, reason)
        if skipped is None:
            raise refusal
        skipped(refusal)


def _end_of_record(data: bytes, at: int) -> int:
    """The end of the record at `at` by its length; -1 if the length is impossible."""
    try:
        length, at = read_varint(data, at)
    except (IndexError, ValueError):
        return -1
    end = at + length
    return end if at < end <= len(data) else -1


def records_payload(
    buf: Buffer, header: BatchHeader, position: int = 0, max_bytes: int | None = None
) -> bytes:
    """The records section of the v2 batch at `position`, decompressed.

    Raises:
        ApiError: CORRUPT_MESSAGE when it does not decompress within `max_bytes`.
    """
    return bytes(records_view(buf, header, position, max_bytes))


def records_view(
    buf: Buffer, header: BatchHeader, position: int = 0, max_bytes: int | None = None
) -> bytes:
    """As `records_payload`. Large data is returned as a view, which can be read like bytes."""
    payload: Any = memoryview(buf)[position + HEADER_SIZE : position + header.size]
    if header.attributes & CODEC_MASK:
        limit = DECOMPRESSED_BYTES_MAX if max_bytes is None else max_bytes
        payload = decompress_view(header.codec, payload, limit)
    return payload if len(payload) > _COPIED_BYTES_MAX else bytes(payload)


def malformed(header: BatchHeader, index: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_RECORD,
        f"Record {index} of the batch at offset {header.base_offset} is malformed: {reason}",
    )


def _check_deltas(offset_delta: int, timestamp_delta: int, header: BatchHeader) -> None:
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise ValueError(f"offset delta {offset_delta} is not one of the batch's")
    if not INT64_MIN <= header.base_timestamp + timestamp_delta <= INT64_MAX:
        raise ValueError(f"timestamp delta {timestamp_delta} is out of bounds")


def _read_record(
    data: bytes, at: int
) -> tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]], int]:
    """(offset delta, timestamp delta, key, value, headers, position after it).

    Raises IndexError or ValueError for bytes that are not a record.
    """
    length, at = read_varint(data, at)
    end = at + length
    if not at < end <= len(data):
        raise ValueError(f"length {length} is out of bounds")
    timestamp_delta, at = read_varint(data, at + 1)  # the attributes byte is not in use
    offset_delta, at = read_varint(data, at)
    key, at = _read_bytes(data, at, end)
    value, at = _read_bytes(data, at, end)
    count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise ValueError(f"header count {count} is out of bounds")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _read_bytes(data, at, end)
        if name is None:
            raise ValueError("a header key is null")
        content, at = _read_bytes(data, at, end)
        headers.append((name.decode(errors="replace"), content))
    if at != end:
        raise ValueError(f"its length says {end - at} more bytes than its fields")
    return offset_delta, timestamp_delta, key, value, headers, end


def _read_bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    if length == -1:
        return None, at
    stop = at + length
    if length < 0 or stop > end:
        raise ValueError(f"field length {length} is out of bounds")
    return bytes(data[at:stop]), stop
