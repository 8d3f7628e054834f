"""arrow_rows: every layout that Arrow may give a column, read as the rows that it shows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkapy.record.binary_columns import BinaryColumn
from kafkapy.spark.source.arrow_rows import int32s, row_columns

HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])


def values_of(column: BinaryColumn) -> list[bytes | None]:
    offsets, data, validity = column
    return [
        bytes(data[offsets[i] : offsets[i + 1]])
        if not len(validity) or validity[i >> 3] >> (i & 7) & 1
        else None
        for i in range(len(offsets) - 1)
    ]


def batch_of(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
@pytest.mark.parametrize("start", [0, 1, 9])
def test_a_column_of_each_type_whole_and_sliced(kind: Any, start: int) -> None:
    texts = [None if i % 3 == 0 else f"text {i}" for i in range(20)]
    batch = batch_of(value=pa.array(texts, kind)).slice(start)
    columns = row_columns(batch)
    expected = [None if text is None else text.encode() for text in texts[start:]]
    assert values_of(columns.values) == expected
    assert values_of(columns.keys) == [None] * len(expected)
    assert columns.headers is None


def test_a_column_without_nulls_or_without_bytes() -> None:
    assert values_of(row_columns(batch_of(value=pa.array([b"a", b""]))).values) == [b"a", b""]
    empty = batch_of(value=pa.array([b"", b""]), key=pa.array([None, None], pa.binary()))
    assert values_of(row_columns(empty).values) == [b"", b""]
    assert values_of(row_columns(empty).keys) == [None, None]


@pytest.mark.parametrize("start", [0, 1, 3])
def test_headers(start: int) -> None:
    rows = [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        None,
        [],
        [{"key": "c", "value": b""}],
    ]
    given = pa.array(rows, pa.list_(HEADER))
    headers = row_columns(batch_of(value=pa.array([b"v"] * 4), headers=given).slice(start)).headers
    assert headers is not None
    names, contents = values_of(headers.keys), values_of(headers.values)
    found = [
        list(zip(names[begin:end], contents[begin:end], strict=True))
        for begin, end in zip(headers.offsets, headers.offsets[1:], strict=False)
    ]
    assert found == [[(b"a", b"1"), (b"b", None)], [], [], [(b"c", b"")]][start:]


def test_headers_that_are_all_null_are_none() -> None:
    given = pa.array([None, None], pa.list_(HEADER))
    assert row_columns(batch_of(value=pa.array([b"v"] * 2), headers=given)).headers is None


def test_numbers_with_nulls_can_be_written_to() -> None:
    array = pa.array([7, None, 3, None], pa.int32())
    assert int32s(array, null=-1).tolist() == [7, -1, 3, -1]
    numbers = int32s(array.slice(1), null=-2)
    numbers[0] = 9
    assert numbers.tolist() == [9, 3, -2]
    assert array.to_pylist() == [7, None, 3, None]
