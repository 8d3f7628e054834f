"""Converts columns to Arrow record batches, with exactly the types that Spark's planner expects.

Spark refuses `large_binary`, millisecond timestamps and other names of UTC, so the types are fixed
here. Arrays are built from buffers, because `pa.array` and `pa.scalar` import pandas if it is
installed, which takes as long as all other imports of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkapy.common.errors import KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.binary_columns import BinaryColumn, HeaderColumns
from kafkapy.record.columns import Columns, ColumnSelection
from kafkapy.spark.source.pushdown import ANY, Interval
from kafkapy.spark.source.source_columns import HEADERS

_CONSTANT_COLUMNS: Final = ("topic", "partition")  # in every row of a partition
BATCH_ROWS_MAX: Final = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch
_TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1000
BATCH_BYTES_MAX: Final = 64 << 20  # spark.sql.execution.arrow.maxBytesPerBatch

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_HEADERS: Final = pa.list_(pa.field("element", _HEADER))
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_FIELDS: Final = {
    "key": pa.field("key", pa.binary()),
    "value": pa.field("value", pa.binary()),
    "topic": pa.field("topic", pa.string()),
    "partition": pa.field("partition", pa.int32()),
    "offset": pa.field("offset", pa.int64()),
    "timestamp": pa.field("timestamp", _TIMESTAMP),
    "timestampType": pa.field("timestampType", pa.int32()),
    HEADERS: pa.field(HEADERS, _HEADERS),
}


def arrow_schema(names: Sequence[str]) -> Any:
    """The columns of Spark's own Kafka source, as a `pyarrow.Schema`."""
    return pa.schema([_FIELDS[name] for name in names])


def fields_to_decode(names: Sequence[str]) -> ColumnSelection:
    """The parts to decode for these columns."""
    return ColumnSelection("key" in names, "value" in names, HEADERS in names)


def record_batches(
    columns: Columns,
    topic_partition: TopicPartition,
    names: Sequence[str],
    timestamp_us: Interval = ANY,
) -> Iterator[Any]:
    """The columns `names` as record batches of at most BATCH_ROWS_MAX rows and about
    BATCH_BYTES_MAX bytes.

    Rows with timestamps outside `timestamp_us` are left out; without that bound, the arrays share
    the memory of `columns`. The headers of a record without headers are null, not an empty list.

    Raises:
        KafkapyError: a timestamp that is needed is outside Spark's range.
    """
    schema = arrow_schema(names)
    arrays = [_array(name, columns, topic_partition) for name in names]
    times = None if timestamp_us == ANY else _microseconds(columns, topic_partition)
    for begin, end in _batch_spans(columns):
        rows = end - begin
        slices = [
            array.slice(0 if name in _CONSTANT_COLUMNS else begin, rows)
            for name, array in zip(names, arrays, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(slices, schema=schema)
        if times is not None:
            batch_times = times[begin:end]
            in_bounds = (timestamp_us.low <= batch_times) & (batch_times <= timestamp_us.high)
            batch = batch.filter(_flags(in_bounds))
        if batch.num_rows:
            yield batch


def _array(name: str, columns: Columns, topic_partition: TopicPartition) -> Any:
    """A column; for a constant one, enough values for the largest batch."""
    match name:
        case "key" if columns.keys is not None:
            return _binary(pa.binary(), columns.keys)
        case "value" if columns.values is not None:
            return _binary(pa.binary(), columns.values)
        case "offset":
            return _numbers(pa.int64(), columns.offsets)
        case "timestamp":
            return _numbers(_TIMESTAMP, _microseconds(columns, topic_partition))
        case "timestampType":
            return _numbers(pa.int32(), columns.timestamp_types)
        case "headers" if columns.headers is not None:
            return _headers(columns.headers)
    return _constants(topic_partition)[_CONSTANT_COLUMNS.index(name)]


def _microseconds(columns: Columns, topic_partition: TopicPartition) -> NDArray[np.int64]:
    """The timestamps in Spark's unit.

    Raises:
        KafkapyError: a timestamp is out of range. Spark's own source fails with "long overflow".
    """
    times = columns.timestamps
    if int(times.max()) > _TIMESTAMP_MS_MAX or int(times.min()) < -_TIMESTAMP_MS_MAX:
        out_of_range = (times > _TIMESTAMP_MS_MAX) | (times < -_TIMESTAMP_MS_MAX)
        row = int(np.flatnonzero(out_of_range)[0])
        raise KafkapyError(
            f"The record at offset {columns.offsets[row]} of {topic_partition} has the timestamp "
            f"{times[row]} ms, which Spark cannot hold; name the columns to read, without it"
        )
    return times * 1000


@lru_cache(maxsize=16)
def _constants(topic_partition: TopicPartition) -> tuple[Any, Any]:
    """The constant columns of a partition, for the largest batch."""
    topic = np.frombuffer(topic_partition.topic.encode(), np.uint8)
    ends = np.arange(BATCH_ROWS_MAX + 1, dtype=np.int32) * np.int32(len(topic))
    texts = [None, pa.py_buffer(ends), pa.py_buffer(np.tile(topic, BATCH_ROWS_MAX))]
    return (
        pa.Array.from_buffers(pa.string(), BATCH_ROWS_MAX, texts),
        _numbers(pa.int32(), np.full(BATCH_ROWS_MAX, topic_partition.partition, np.int32)),
    )


def _batch_spans(columns: Columns) -> Iterator[tuple[int, int]]:
    """Spans of rows within the limits, with at least one row each."""
    rows = len(columns.offsets)
    byte_offsets = np.zeros(rows + 1, np.int64)
    for column in (columns.keys, columns.values):
        if column is not None:
            byte_offsets += column.offsets
    begin = 0
    while begin < rows:
        end = min(rows, begin + BATCH_ROWS_MAX)
        byte_limit_end = (
            int(np.searchsorted(byte_offsets, byte_offsets[begin] + BATCH_BYTES_MAX, "right")) - 1
        )
        end = max(begin + 1, min(end, byte_limit_end))
        yield begin, end
        begin = end


def _numbers(kind: Any, values: NDArray[Any]) -> Any:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _flags(flags: NDArray[np.bool_]) -> Any:
    bits = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, bits])


def _binary(kind: Any, column: BinaryColumn) -> Any:
    buffers = [column.validity, column.offsets, column.data]
    rows = len(column.offsets) - 1
    return pa.Array.from_buffers(kind, rows, [pa.py_buffer(buffer) for buffer in buffers])


def _text(column: BinaryColumn) -> Any:
    """A column of strings. Bytes that are not UTF-8 become U+FFFD, as in Java's clients."""
    texts = _binary(pa.string(), column)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = _binary(pa.binary(), column).to_pylist()
        texts = pa.array([value.decode(errors="replace") for value in raw], pa.string())
    return texts


def _headers(headers: HeaderColumns) -> Any:
    keys = _text(headers.keys)
    pairs = pa.Array.from_buffers(
        _HEADER, len(keys), [None], children=[keys, _binary(pa.binary(), headers.values)]
    )
    validity = np.packbits(np.diff(headers.offsets) > 0, bitorder="little")
    return pa.Array.from_buffers(
        _HEADERS,
        len(headers.offsets) - 1,
        [pa.py_buffer(validity), pa.py_buffer(headers.offsets)],
        children=[pairs],
    )
