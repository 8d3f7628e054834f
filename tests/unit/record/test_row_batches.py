"""row_batches, row_kernels: the bytes are those that `builder` writes for the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.record.batch_header import read_header
from kafkapy.record.binary_columns import BinaryColumn, HeaderColumns
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.ready_batch import ReadyBatch, set_producer_state
from kafkapy.record.records import iter_records
from kafkapy.record.row_batches import (
    INITIAL_BUFFER_BYTES,
    OpenBatch,
    RowColumns,
    RowTooLarge,
    null_column,
)

Headers = list[tuple[str, bytes | None]]
Row = tuple[bytes | None, bytes | None, Headers]

BYTES = st.none() | st.binary(max_size=200)
ROWS = st.lists(
    st.tuples(BYTES, BYTES, st.lists(st.tuples(st.text(max_size=9), BYTES), max_size=3)),
    min_size=1,
    max_size=30,
)


def binary_column(values: Sequence[bytes | None]) -> BinaryColumn:
    ends = np.cumsum([0, *(len(value or b"") for value in values)], dtype=np.int32)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    flags = np.array([value is not None for value in values], np.bool_)
    valid = np.packbits(flags, bitorder="little")
    return BinaryColumn(ends, data, valid if None in values else valid[:0])


def columns_of(rows: Sequence[Row]) -> RowColumns:
    keys, values, headers = zip(*rows, strict=True)
    pairs = [pair for row in headers for pair in row]
    return RowColumns(
        binary_column(keys),
        binary_column(values),
        HeaderColumns(
            np.cumsum([0, *map(len, headers)], dtype=np.int32),
            binary_column([name.encode() for name, _ in pairs]),
            binary_column([content for _, content in pairs]),
        ),
    )


def numbered(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.arange(count, dtype=np.int32)


def filled(rows: Sequence[Row], times_ms: Sequence[int] = (5,)) -> OpenBatch:
    batch = OpenBatch(1 << 20, 1 << 20)
    for at_ms in times_ms:
        assert batch.add(columns_of(rows), numbered(len(rows)), at_ms) == len(rows)
    return batch


def sealed(batch: ReadyBatch) -> bytes:
    set_producer_state(batch, -1, -1, -1, False)
    return bytes(batch)


@given(rows=ROWS, later_ms=st.integers(-(2**30), 2**30))
@settings(max_examples=60, deadline=None)
def test_a_batch_is_the_builders_byte_for_byte(rows: list[Row], later_ms: int) -> None:
    times_ms = (2**40, 2**40 + later_ms)
    expected = [
        RecordData(key, value, at_ms, headers) for at_ms in times_ms for key, value, headers in rows
    ]
    assert sealed(filled(rows, times_ms).close(Codec.NONE)) == build_batch(expected)


@pytest.mark.parametrize("codec", Codec)
def test_a_compressed_batch_has_the_builders_payload(codec: Codec) -> None:
    rows: list[Row] = [(b"key", b"some value " * 20, [("h", None)])] * 300
    expected = build_batch([RecordData(*row[:2], 5, row[2]) for row in rows], codec=codec)
    assert sealed(filled(rows).close(codec)) == expected


def test_rows_are_taken_in_the_order_asked_for_and_no_header_column_means_no_headers() -> None:
    keys = binary_column([b"a", None, b"c"])
    columns = RowColumns(keys, null_column(3), None)
    batch = OpenBatch(1000, 1000)
    assert batch.add(columns, np.array([2, 0], np.int32), 7) == 2
    found = [
        (row.key, row.value, row.headers) for row in iter_records(sealed(batch.close(Codec.NONE)))
    ]
    assert found == [(b"c", None, []), (b"a", None, [])]


def test_a_batch_is_full_at_its_limit_and_the_rest_of_the_rows_is_left() -> None:
    rows: list[Row] = [(None, bytes(100), [])] * 1000
    batch = OpenBatch(50_000, 1 << 20)
    taken = batch.add(columns_of(rows), numbered(1000), 1)
    assert batch.count == taken < 1000
    assert 50_000 - 110 < batch.size <= 50_000
    assert batch.add(columns_of(rows), numbered(1000)[taken:], 1) == 0


def test_rows_that_a_full_batch_does_not_take_leave_its_time_alone() -> None:
    columns = columns_of([(None, b"x" * 100, [])] * 3)
    batch = OpenBatch(300, 300)
    assert batch.add(columns, numbered(3), 5) == 2
    assert batch.add(columns, numbered(3)[2:], 9) == 0
    assert read_header(batch.close(Codec.NONE)).max_timestamp == 5


def test_many_small_batches_cost_little_memory() -> None:
    batch = OpenBatch(1 << 20, 1 << 20)
    batch.add(columns_of([(b"k", b"v", [])]), numbered(1), 1)
    assert len(batch.close(Codec.NONE).obj) <= INITIAL_BUFFER_BYTES  # type: ignore[union-attr]


def test_one_large_row_is_a_batch_of_its_own_but_for_one_that_no_broker_takes() -> None:
    columns = columns_of([(None, bytes(5000), []), (None, b"x", [])])
    batch = OpenBatch(1000, 6000)
    assert batch.add(columns, numbered(2), 1) == 1
    assert read_header(batch.close(Codec.NONE)).record_count == 1
    with pytest.raises(RowTooLarge) as caught:
        OpenBatch(1000, 5000).add(columns, numbered(2), 1)
    assert caught.value.size > 5000
