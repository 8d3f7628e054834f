"""Converts Arrow record batches from Spark to columns for `record.row_batches`, without copies.

Spark's binary and string columns have the same layout; with
`spark.sql.execution.arrow.useLargeVarTypes` their offsets have 64 bits, and are converted here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkapy.record.binary_columns import BinaryColumn, HeaderColumns
from kafkapy.record.row_batches import RowColumns, null_column

_EMPTY: Final = np.empty(0, np.uint8)


def row_columns(batch: Any) -> RowColumns:
    """Key, value and headers of a `pyarrow.RecordBatch`. A missing column is all null."""
    headers = column(batch, "headers")
    return RowColumns(
        _binary_or_null(column(batch, "key"), batch.num_rows),
        _binary_or_null(column(batch, "value"), batch.num_rows),
        None if headers is None or headers.null_count == len(headers) else _headers(headers),
    )


def column(batch: Any, name: str) -> Any:
    """The array of a column, or None."""
    index = batch.schema.get_field_index(name)
    return batch.column(index) if index >= 0 else None


def int32s(array: Any, null: int) -> NDArray[np.int32]:
    """A writable array of 32-bit integers, with `null` for nulls."""
    values = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array)].copy()
    if array.null_count:
        values[np.unpackbits(_validity(array), count=len(array), bitorder="little") == 0] = null
    return values


def _binary_or_null(array: Any, rows: int) -> BinaryColumn:
    return null_column(rows) if array is None else _binary(array)


def _binary(array: Any) -> BinaryColumn:
    if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        array = array.cast(pa.binary())
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int32)[array.offset :][: len(array) + 1]
    return BinaryColumn(offsets, _bytes(data), _validity(array))


def _headers(array: Any) -> HeaderColumns:
    """Headers by record. A null list is treated like an empty one; both take no space in Arrow."""
    if pa.types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    pairs = array.values
    names, contents = (pairs.field(index) for index in (0, 1))
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
    return HeaderColumns(offsets, _binary(names), _binary(contents))


def _validity(array: Any) -> NDArray[np.uint8]:
    """The bitmap from the array's first row on; empty when there are no nulls."""
    bitmap = array.buffers()[0]
    if bitmap is None or not array.null_count:
        return _EMPTY
    bits = np.frombuffer(bitmap, np.uint8)
    if not array.offset:
        return bits
    flags = np.unpackbits(bits, bitorder="little")[array.offset :][: len(array)]
    return np.packbits(flags, bitorder="little")


def _bytes(buffer: Any) -> NDArray[np.uint8]:
    return _EMPTY if buffer is None else np.frombuffer(buffer, np.uint8)
