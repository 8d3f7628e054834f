"""Builds v2 batches from records, for tools, coordinators and paths that rewrite a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.record.batch_header import (
    ATTRIBUTES_OFFSET,
    BATCH_LENGTH_OFFSET,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_OFFSET,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    INT64_MAX,
    INT64_MIN,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
)
from kafkapy.record.checksum import crc32c
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.varint import append_varint

if TYPE_CHECKING:
    from kafkapy.record.records import Record
    from kafkapy.record.row_index import RowIndex


_I32: Final = Struct(">i")
_U32: Final = Struct(">I")


class RecordData(NamedTuple):
    """A record before it has an offset. `timestamp` in ms, -1 for none."""

    key: bytes | None
    value: bytes | None
    timestamp: int = NO_TIMESTAMP
    headers: Sequence[tuple[str, bytes | None]] = ()


def build_batch(
    records: Iterable[RecordData],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    log_append_time: int | None = None,
) -> bytes:
    """One v2 batch of at least one record, at consecutive offsets from `base_offset`.

    If `log_append_time` (ms) is set, it replaces the timestamps of all records.
    """
    count = base_timestamp = max_timestamp = 0
    body = bytearray()
    for row in records:
        timestamp = row.timestamp
        if count == 0:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        append_record(body, count, timestamp - base_timestamp, row.key, row.value, row.headers)
        count += 1
    assert count, "a batch has at least one record; only rebuild_batch leaves an empty one"
    attributes = (TRANSACTIONAL_BIT if is_transactional else 0) | (CONTROL_BIT if is_control else 0)
    if log_append_time is not None:
        max_timestamp = log_append_time
        attributes |= LOG_APPEND_TIME_BIT
    header = BatchHeader(
        base_offset, 0, leader_epoch, MAGIC, 0, attributes | codec, count - 1,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    return assemble(header, compress(codec, body, level))


def rebuild_batch(
    header: BatchHeader,
    retained: Sequence[Record],
    *,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """The v2 batch `header` with only its `retained` records, as the log cleaner writes it.

    Offsets, sequences and producer fields stay, so there may be gaps, or no records at all.
    `delete_horizon_ms` sets the horizon, unless it is too far from a record's timestamp; None keeps
    the batch's present horizon, if any (`MemoryRecords.filterTo`, KIP-534).
    """
    if not retained:
        attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
        empty = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0)
        return assemble(empty, b"")
    attributes, max_timestamp = header.attributes, header.max_timestamp
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    elif header.has_delete_horizon:
        base_timestamp = header.base_timestamp
    else:
        base_timestamp = retained[0].timestamp
    deltas = [row.timestamp - base_timestamp for row in retained]
    if min(deltas) < INT64_MIN or max(deltas) > INT64_MAX:
        # Extreme timestamps: only the present base timestamp is known to keep all deltas in range.
        attributes, base_timestamp = header.attributes, header.base_timestamp
    if not header.is_log_append_time:
        max_timestamp = max(row.timestamp for row in retained)
    body = bytearray()
    for row in retained:
        offset_delta = row.offset - header.base_offset
        timestamp_delta = row.timestamp - base_timestamp
        append_record(body, offset_delta, timestamp_delta, row.key, row.value, row.headers)
    rebuilt = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(retained),
    )
    return assemble(rebuilt, compress(header.codec, body, level))


def keep_rows(header: BatchHeader, index: RowIndex, kept: Sequence[int]) -> bytes:
    """The v2 batch `header`, whose rows are `index`, with only the rows at the positions `kept`:
    at least one, ascending. The rows' bytes and the base timestamp do not change."""
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        deltas = index.timestamp_deltas
        max_timestamp = header.base_timestamp + max([deltas[i] for i in kept])
    filtered = header._replace(max_timestamp=max_timestamp, record_count=len(kept))
    return assemble(filtered, compress(header.codec, index.slices(kept)))


def assemble(header: BatchHeader, payload: Buffer) -> bytes:
    """A batch of `header` and `payload` (compressed already), with its length and CRC set."""
    batch = bytearray(HEADER_SIZE + len(payload))
    batch[HEADER_SIZE:] = payload
    _pack_header(batch, header)
    return bytes(batch)


def write_header(batch: bytearray | memoryview, header: BatchHeader) -> BatchHeader:
    """Write `header` at the start of a whole batch, with the batch's present length and CRC."""
    length, crc = _pack_header(batch, header)
    return header._replace(batch_length=length, crc=crc)


def _pack_header(batch: bytearray | memoryview, header: BatchHeader) -> tuple[int, int]:
    """As `write_header`. Returns the length and the CRC."""
    length = len(batch) - LOG_OVERHEAD
    HEADER.pack_into(batch, 0, *header)
    _I32.pack_into(batch, BATCH_LENGTH_OFFSET, length)
    crc = crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:])
    _U32.pack_into(batch, CRC_OFFSET, crc)
    return length, crc


def append_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> None:
    """Append one v2 record, its length first."""
    body = bytearray(1)  # the record's attributes, which are not in use
    append_varint(body, timestamp_delta)
    append_varint(body, offset_delta)
    _append_bytes(body, key)
    _append_bytes(body, value)
    headers = list(headers)
    append_varint(body, len(headers))
    for name, content in headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, content)
    append_varint(out, len(body))
    out += body


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(data))
        out += data
