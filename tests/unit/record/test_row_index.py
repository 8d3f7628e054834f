"""Where rows lie: the same as the rows themselves say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import BatchHeader, Buffer, read_header
from kafkapy.record.builder import RecordData, append_record, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import batch_records
from kafkapy.record.row_index import index_keys, index_rows
from tests.harness.storage.batches import any_row, raw_batch

Seen = list[tuple[int, int, bytes | None, bool]]


def of_rows(batch: Buffer, header: BatchHeader, position: int = 0) -> Seen:
    records = batch_records(batch, header, position)
    return [(r.offset, r.timestamp, r.key, r.value is None) for r in records]


def of_index(batch: Buffer, header: BatchHeader, position: int = 0) -> Seen:
    index = index_rows(batch, header, position)
    return [
        (offset, header.base_timestamp + delta, key, i in index.tombstones)
        for i, (offset, delta, key) in enumerate(
            zip(index.offsets, index.timestamp_deltas, index.keys, strict=True)
        )
    ]


def of_keys(batch: Buffer, header: BatchHeader, position: int = 0) -> list[object]:
    offsets, keys = index_keys(batch, header, position)
    return list(zip(offsets, keys, strict=True))


@given(st.lists(any_row, min_size=1, max_size=8), st.sampled_from(Codec))
def test_the_index_says_what_the_rows_say(given_rows: list[RecordData], codec: Codec) -> None:
    batch = build_batch(given_rows, base_offset=1000, codec=codec)
    header = read_header(batch)
    rows = of_rows(batch, header)
    assert of_index(b"before" + batch, header, 6) == rows
    assert of_keys(b"before" + batch, header, 6) == [(offset, key) for offset, _, key, _ in rows]


@pytest.mark.parametrize("count", [1, 64, 65, 300, 9000])
@pytest.mark.parametrize("size", [0, 50, 63, 64, 8190, 70_000])
def test_numbers_of_every_length(count: int, size: int) -> None:
    rows = [RecordData(b"k" * (i % 70), bytes(size if i < 3 else 1), i * i) for i in range(count)]
    batch = build_batch(rows)
    header = read_header(batch)
    rows = of_rows(batch, header)
    assert of_index(batch, header) == rows
    assert of_keys(batch, header) == [(offset, key) for offset, _, key, _ in rows]


@given(st.sets(st.integers(0, 9000), min_size=1, max_size=20))
def test_keys_of_a_batch_that_lost_rows(left: set[int]) -> None:
    deltas = sorted(left)
    payload = b"".join(one_record(delta) for delta in deltas)
    batch = raw_batch(payload, len(deltas), last_offset_delta=9000)
    header = read_header(batch)
    assert of_keys(batch, header) == [(header.base_offset + delta, b"k") for delta in deltas]


def test_slices_are_the_bytes_of_the_rows() -> None:
    rows = [RecordData(b"%d" % i, bytes(i * 40)) for i in range(6)]
    batch = build_batch(rows)
    index = index_rows(batch, read_header(batch))
    expected = bytearray()
    for i in (0, 2, 5):
        append_record(expected, i, 0, rows[i].key, rows[i].value, [])
    assert index.slices([0, 2, 5]) == expected


@given(st.lists(any_row, min_size=1, max_size=3), st.data())
def test_damaged_rows_are_taken_as_the_rows_are_or_refused(
    given_rows: list[RecordData], data: st.DataObject
) -> None:
    """The index must accept the rows that the row reader accepts; only ApiError may be raised."""
    good = build_batch(given_rows)
    payload = bytearray(good[61:])
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    batch = raw_batch(bytes(payload), len(given_rows))
    header = read_header(batch)
    with suppress(ApiError):
        expected = of_rows(batch, header)
        assert of_index(batch, header) == expected
        assert of_keys(batch, header) == [(offset, key) for offset, _, key, _ in expected]
        return
    for read in (of_index, of_keys):
        with suppress(ApiError):
            read(batch, header)


def one_record(offset_delta: int = 0) -> bytes:
    out = bytearray()
    append_record(out, offset_delta, 0, b"k", b"v", [])
    return bytes(out)


GOOD = one_record()


@pytest.mark.parametrize(
    ("payload", "count", "why"),
    [
        (GOOD, 2, "index out of range"),
        (GOOD * 2, 1, "follow"),
        (GOOD[:-1], 1, "length 8 is out of bounds"),
        (b"\x00", 1, "length 0"),
        (b"\x01" + GOOD[1:], 1, "length -1"),
        (b"\xff" * 11, 1, "longer than 10 bytes"),
        (b"\x10\x00\x00\x00\x03k\x02v\x00", 1, "field length -2"),
        (b"\x10\x00\x00\x00\x7ek\x02v\x00", 1, "field length 63"),
        (one_record(1), 1, "offset delta 1"),
        (one_record(-1), 1, "offset delta -1"),
    ],
)
def test_malformed_rows(payload: bytes, count: int, why: str) -> None:
    batch = raw_batch(payload, count, last_offset_delta=0)
    for read in (index_rows, index_keys):
        with pytest.raises(ApiError, match=why) as caught:
            read(batch, read_header(batch))
        assert caught.value.code is ErrorCode.INVALID_RECORD


def test_more_rows_than_offsets() -> None:
    batch = raw_batch(GOOD + one_record(1), 2, last_offset_delta=0)
    for read in (index_rows, index_keys):
        with pytest.raises(ApiError) as caught:
            read(batch, read_header(batch))
        assert caught.value.code is ErrorCode.INVALID_RECORD
