"""Decodes whole batches to columns, with no Python object per record.

Python walks the batch headers and decompresses; a compiled kernel does the rest and writes Arrow's
own layout (int32 offsets, contiguous bytes, validity bitmap), so that Arrow arrays need no copy.

Groups of batches are small enough for a processor's cache: a record's bytes are read from memory
once. Compressed batches are decompressed into one buffer, which each group uses again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    Buffer,
    iter_headers,
)
from kafkapy.record.batch_rules import RECORD_BYTES_MIN
from kafkapy.record.binary_columns import BinaryColumn, HeaderColumns
from kafkapy.record.builder import append_record
from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX
from kafkapy.record.codec_frames import anonymous_map
from kafkapy.record.column_kernels import decode_headers, decode_rows
from kafkapy.record.compression import decompress_into
from kafkapy.record.legacy import read_messages

GROUP_BYTES: Final = 1 << 20
"""Payload bytes that are decoded at once, unless a single batch holds more."""


class Columns(NamedTuple):
    """Records of one partition in the order of the log, one or more.

    `timestamps` in ms; `timestamp_types` -1 NoTimestampType (v0), 0 CreateTime, 1 LogAppendTime.
    Keys, values and headers are None if they were not wanted.
    """

    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    timestamp_types: NDArray[np.int32]
    keys: BinaryColumn | None
    values: BinaryColumn | None
    headers: HeaderColumns | None


class ColumnSelection(NamedTuple):
    """The costly columns to decode. The other columns are always decoded."""

    keys: bool = True
    values: bool = True
    headers: bool = False


DEFAULT_SELECTION: Final = ColumnSelection()


class _Batch(NamedTuple):
    """A batch as the kernel needs it: the place of its records, and the bases of their deltas."""

    start: int
    size: int
    record_count: int
    base_offset: int
    last_offset_delta: int
    base_timestamp: int  # the timestamp itself for LogAppendTime
    timestamp_type: int


def decode_columns(
    buffer: Buffer,
    start_offset: int,
    end_offset: int,
    *,
    selection: ColumnSelection = DEFAULT_SELECTION,
    aborted: Sequence[tuple[int, int]] = (),
    group_bytes: int = GROUP_BYTES,
) -> Iterator[Columns]:
    """Decode the records of `buffer` (whole batches) with start_offset <= offset < end_offset.

    Control batches are left out, and so are batches of the `aborted` transactions: the (producer
    id, first offset) pairs of a read_committed Fetch response.

    Raises:
        ApiError: CORRUPT_MESSAGE for a bad CRC, compressed block, record count or record.
    """
    view = memoryview(buffer)
    # The compressed batches of a group are decompressed here, one after the other.
    scratch = memoryview(anonymous_map(group_bytes + DECOMPRESSED_BYTES_MAX))
    source: Buffer = view  # of the group
    group: list[_Batch] = []
    size = 0
    for position, header in _visible_batches(view, start_offset, end_offset, aborted):
        if size >= group_bytes:
            yield from _decode(source, group, start_offset, end_offset, selection)
            group, size = [], 0
        used = size if source is scratch else 0
        batch_source, batch = _read_batch(view, position, header, scratch, used)
        if batch_source is not source:
            yield from _decode(source, group, start_offset, end_offset, selection)
            source, group, size = batch_source, [], 0
        group.append(batch)
        size += batch.size
    yield from _decode(source, group, start_offset, end_offset, selection)


def _visible_batches(
    view: memoryview, start_offset: int, end_offset: int, aborted: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers of the batches with data that a consumer of the range may see."""
    to_abort = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    aborting: set[int] = set()
    for position, header in iter_headers(view):
        while to_abort and to_abort[-1][1] <= header.last_offset:
            aborting.add(to_abort.pop()[0])
        if header.is_control:  # its producer's transaction ends here
            aborting.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in aborting:
            continue
        # A legacy wrapper has only its last offset, so its first offset is not known here.
        begins_before = header.base_offset < end_offset or header.magic != MAGIC
        if begins_before and header.last_offset >= start_offset and header.record_count != 0:
            yield position, header


def _read_batch(
    view: memoryview, position: int, header: BatchHeader, scratch: memoryview, used: int
) -> tuple[Buffer, _Batch]:
    """Check the CRC of a batch, decompress it behind the `used` bytes of `scratch`, and check its
    record count. Returns the buffer that has its records, and the batch for the kernel."""
    validate_crc(view, position, header)
    if header.magic != MAGIC:
        return _read_legacy(view, position, header)
    source, begin, end = view, position + HEADER_SIZE, position + header.size
    if header.attributes & CODEC_MASK:
        end_used = used + DECOMPRESSED_BYTES_MAX
        size = decompress_into(header.codec, view[begin:end], scratch[used:end_used])
        source, begin, end = scratch, used, used + size
    if not 0 < header.record_count * RECORD_BYTES_MIN <= end - begin:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"The batch at offset {header.base_offset} claims {header.record_count} records "
            f"in {end - begin} bytes",
        )
    append_time = header.is_log_append_time
    return source, _Batch(
        begin,
        end - begin,
        header.record_count,
        header.base_offset,
        header.last_offset_delta,
        header.max_timestamp if append_time else header.base_timestamp,
        int(append_time),
    )


def _read_legacy(view: memoryview, position: int, header: BatchHeader) -> tuple[Buffer, _Batch]:
    """A v0/v1 message, or a compressed set of them, rewritten as v2 records."""
    messages = list(read_messages(view, header, position))
    base, timestamp = messages[0].offset, messages[0].timestamp
    body = bytearray()
    for m in messages:
        append_record(body, m.offset - base, m.timestamp - timestamp, m.key, m.value, ())
    last_delta = messages[-1].offset - base
    return body, _Batch(
        0, len(body), len(messages), base, last_delta, timestamp, header.timestamp_type
    )


def _decode(
    source: Buffer,
    group: list[_Batch],
    start_offset: int,
    end_offset: int,
    selection: ColumnSelection,
) -> Iterator[Columns]:
    """Run the kernels over the batches; nothing is yielded if no record is in range."""
    if not group:
        return
    data = np.frombuffer(source, np.uint8)
    capacity = sum(batch.record_count for batch in group)
    data_bytes = sum(batch.size for batch in group)
    offsets, timestamps = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    timestamp_types = np.empty(capacity, np.int32)
    keys = _new_column(capacity, data_bytes) if selection.keys else _new_column(0, 0)
    values = _new_column(capacity, data_bytes) if selection.values else _new_column(0, 0)
    headers = np.empty((capacity if selection.headers else 0, 2), np.int64)
    rows, bad = decode_rows(
        data, np.array(group, np.int64), start_offset, end_offset,
        offsets, timestamps, timestamp_types, *keys, *values, headers,
    )  # fmt: skip
    if bad >= 0:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"A record of the batch at offset {group[bad].base_offset} is malformed",
        )
    if rows:
        yield Columns(
            offsets[:rows],
            timestamps[:rows],
            timestamp_types[:rows],
            _first_rows(keys, rows) if selection.keys else None,
            _first_rows(values, rows) if selection.values else None,
            _headers(data, headers[:rows], data_bytes) if selection.headers else None,
        )


def _headers(
    source: NDArray[np.uint8], headers: NDArray[np.int64], data_bytes: int
) -> HeaderColumns:
    offsets = np.zeros(len(headers) + 1, np.int32)
    np.cumsum(headers[:, 1], out=offsets[1:])
    count = int(offsets[-1])
    keys, values = _new_column(count, data_bytes), _new_column(count, data_bytes)
    decode_headers(source, headers, *keys, *values)
    return HeaderColumns(offsets, _first_rows(keys, count), _first_rows(values, count))


def _new_column(rows: int, data_bytes: int) -> BinaryColumn:
    """A column to be filled. Only the bytes that are written use memory."""
    offsets = np.empty(rows + 1, np.int32)
    offsets[0] = 0
    return BinaryColumn(offsets, np.empty(data_bytes, np.uint8), np.zeros(-(-rows // 8), np.uint8))


def _first_rows(column: BinaryColumn, rows: int) -> BinaryColumn:
    """The first `rows` rows, which were filled."""
    offsets, data, validity = column
    return BinaryColumn(offsets[: rows + 1], data[: offsets[rows]], validity[: -(-rows // 8)])
