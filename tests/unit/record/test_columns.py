"""columns: the same rows as the readable decoder, and CORRUPT_MESSAGE for anything malformed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import Buffer, read_header
from kafkapy.record.builder import RecordData, build_batch, rebuild_batch
from kafkapy.record.codec import Codec
from kafkapy.record.columns import BinaryColumn, Columns, ColumnSelection, decode_columns
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import iter_records
from tests.harness.storage.batches import NOW_MS, ROWS, any_row, patched, rows
from tests.harness.storage.legacy_messages import message, message_set, wrapper

EVERYTHING = 2**62
Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def values(column: BinaryColumn) -> list[bytes | None]:
    return [
        bytes(column.data[begin:end]) if column.validity[i >> 3] >> (i & 7) & 1 else None
        for i, (begin, end) in enumerate(pairwise(column.offsets.tolist()))
    ]


def as_rows(columns: Columns) -> list[Row]:
    count = len(columns.offsets)
    headers: list[list[tuple[str, bytes | None]]] = [[] for _ in range(count)]
    if columns.headers is not None:
        names = [(name or b"").decode(errors="replace") for name in values(columns.headers.keys)]
        contents = values(columns.headers.values)
        spans = pairwise(columns.headers.offsets.tolist())
        pairs = list(zip(names, contents, strict=True))
        headers = [pairs[begin:end] for begin, end in spans]
    return list(
        zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.timestamp_types.tolist(),
            values(columns.keys),
            values(columns.values),
            headers,
            strict=True,
        )
    )


def decoded(buffer: Buffer, start: int = 0, end: int = EVERYTHING, **options: Any) -> list[Row]:
    groups = decode_columns(buffer, start, end, selection=ColumnSelection(headers=True), **options)
    return [row for columns in groups for row in as_rows(columns)]


def expected(buffer: Buffer) -> list[Row]:
    return [
        (r.offset, r.timestamp, int(r.timestamp_type), r.key, r.value, r.headers)
        for r in iter_records(buffer)
    ]


@pytest.mark.parametrize("codec", Codec)
def test_every_codec_gives_the_rows_that_went_in(codec: Codec) -> None:
    log = build_batch(ROWS, codec=codec) + build_batch(rows(500), base_offset=5, codec=codec)
    assert decoded(log) == expected(log)
    assert len(decoded(log)) == 505


@given(st.lists(st.lists(any_row, min_size=1, max_size=20), min_size=1, max_size=5), st.data())
@settings(max_examples=100, deadline=None)
def test_any_rows_in_any_range_and_grouping(
    batches: list[list[RecordData]], data: st.DataObject
) -> None:
    log, offset = b"", 0
    for batch in batches:
        log += build_batch(batch, base_offset=offset)
        offset += len(batch)
    start, end = sorted((data.draw(st.integers(-1, offset)), data.draw(st.integers(0, offset + 1))))
    wanted = [row for row in expected(log) if start <= row[0] < end]
    assert decoded(log, start, end, group_bytes=data.draw(st.integers(0, 2000))) == wanted


def test_headers_are_left_out_unless_asked_for() -> None:
    (columns,) = decode_columns(build_batch(ROWS), 0, EVERYTHING)
    assert columns.headers is None


def test_a_range_without_records_gives_nothing() -> None:
    log = build_batch(rows(3), base_offset=10)
    assert list(decode_columns(log, 13, 20)) == []
    assert list(decode_columns(log, 0, 10)) == []
    assert list(decode_columns(b"", 0, 10)) == []


def test_groups_are_bounded_by_their_payload() -> None:
    log = b"".join(build_batch(rows(10), base_offset=10 * i) for i in range(20))
    sizes = [
        len(columns.offsets) for columns in decode_columns(log, 0, EVERYTHING, group_bytes=400)
    ]
    assert len(sizes) > 5
    assert sum(sizes) == 200


def test_log_append_time_is_every_records_time() -> None:
    log = build_batch(rows(3), log_append_time=NOW_MS + 99)
    assert [row[1:3] for row in decoded(log)] == [(NOW_MS + 99, 1)] * 3


def test_what_compaction_leaves_keeps_its_offsets() -> None:
    batch = build_batch(rows(6), base_offset=100)
    records = list(iter_records(batch))
    holes = rebuild_batch(read_header(batch), records[1::2])
    empty = rebuild_batch(read_header(batch), [])
    assert [row[0] for row in decoded(holes)] == [101, 103, 105]
    assert decoded(empty + build_batch(rows(1), base_offset=106))[0][0] == 106


def test_legacy_sets_are_read() -> None:
    log = (
        message(0, 0, b"k", b"plain")
        + wrapper(1, Codec.GZIP, message_set(1, [0, 1]), offset=2)
        + wrapper(1, Codec.LZ4, message_set(1, [0]), offset=3, log_append_time=True)
    )
    assert decoded(log) == expected(log)
    assert [row[2] for row in decoded(log)] == [-1, 0, 0, 1]
    assert [row[0] for row in decoded(log, start=2, end=3)] == [2]
    assert [row[0] for row in decoded(log, end=2)] == [0, 1]


def transaction(producer: int, base: int, count: int = 2) -> bytes:
    return build_batch(
        rows(count), base_offset=base, producer_id=producer, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip


def marker(producer: int, base: int, commit: bool) -> bytes:
    return end_transaction_marker(
        commit=commit, producer_id=producer, producer_epoch=0, coordinator_epoch=0,
        timestamp=NOW_MS, base_offset=base, leader_epoch=0,
    )  # fmt: skip


def test_aborted_transactions_and_markers_are_left_out() -> None:
    log = (
        transaction(7, 0)
        + transaction(8, 2)
        + build_batch(rows(1), base_offset=4)
        + marker(7, 5, commit=False)
        + transaction(7, 6)  # the same producer again, committed
        + marker(7, 8, commit=True)
        + marker(8, 9, commit=True)
    )
    assert [row[0] for row in decoded(log)] == [0, 1, 2, 3, 4, 6, 7]
    assert [row[0] for row in decoded(log, aborted=[(7, 0)])] == [2, 3, 4, 6, 7]
    assert [row[0] for row in decoded(log, aborted=[(7, 6), (8, 2)])] == [0, 1, 4]


def expect_corrupt(log: Buffer) -> str:
    with pytest.raises(ApiError) as caught:
        decoded(log)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value.message


def test_a_flipped_bit_is_found_by_the_crc() -> None:
    log = bytearray(build_batch(ROWS))
    log[-3] ^= 1
    assert "crc" in expect_corrupt(log)


@pytest.mark.parametrize("count", [-1, 4, 6, 2**31 - 1])
def test_a_record_count_that_lies(count: int) -> None:
    expect_corrupt(patched(build_batch(ROWS), record_count=count))
