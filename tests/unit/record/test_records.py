"""Bytes to rows: everything a record can hold, and everything it must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import TimestampType, read_header
from kafkapy.record.builder import RecordData, append_record, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import Record, batch_records, iter_records, records_view
from tests.harness.storage.batches import (
    NOW_MS,
    ROWS,
    any_row,
    moved,
    patched,
    raw_batch,
    row_bytes,
    rows,
)


def as_rows(records: list[Record]) -> list[RecordData]:
    return [RecordData(r.key, r.value, r.timestamp, r.headers) for r in records]


@given(st.lists(any_row, min_size=1, max_size=8), st.sampled_from(Codec))
def test_rows_come_back_as_they_went(given_rows: list[RecordData], codec: Codec) -> None:
    batch = build_batch(given_rows, base_offset=1000, codec=codec)
    records = list(iter_records(memoryview(batch)))
    assert as_rows(records) == given_rows
    assert [record.offset for record in records] == list(range(1000, 1000 + len(given_rows)))
    assert {record.timestamp_type for record in records} == {TimestampType.CREATE_TIME}
    assert {record.sequence for record in records} == {-1}


def test_many_batches_and_a_cut_off_tail() -> None:
    first = build_batch(ROWS, codec=Codec.LZ4)
    second = build_batch(rows(3), base_offset=5, producer_id=1, base_sequence=2**31 - 2)
    records = list(iter_records(first + second + first[:70]))
    assert as_rows(records[:5]) == [row._replace(headers=list(row.headers)) for row in ROWS]
    assert [(r.offset, r.sequence) for r in records[5:]] == [(5, 2**31 - 2), (6, 2**31 - 1), (7, 0)]


def test_markers_come_only_when_asked_for() -> None:
    marker = end_transaction_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS,
        base_offset=2,
    )  # fmt: skip
    data = build_batch(rows(2)) + marker + build_batch(rows(1), base_offset=3)
    assert [record.offset for record in iter_records(data)] == [0, 1, 3]
    assert [record.offset for record in iter_records(data, include_control=True)] == [0, 1, 2, 3]


def test_the_batch_at_a_position() -> None:
    batch = build_batch(ROWS, codec=Codec.ZSTD)
    header = read_header(batch)
    assert list(batch_records(b"before" + batch, header, 6)) == list(iter_records(batch))


def test_a_header_name_that_is_not_utf8_is_shown_as_java_shows_it() -> None:
    record = bytes.fromhex("1400000001010204ff4101")
    record = bytes([2 * (len(record) - 1)]) + record[1:]
    (row,) = iter_records(raw_batch(record, 1))
    assert row.headers == [("\ufffdA", None)]


def one_record(**fields: object) -> bytes:
    out = bytearray()
    given_fields: dict[str, object] = {
        "offset_delta": 0, "timestamp_delta": 0, "key": b"k", "value": b"v", "headers": [],
    }  # fmt: skip
    append_record(out, **{**given_fields, **fields})  # type: ignore[arg-type]
    return bytes(out)


GOOD = one_record()


@pytest.mark.parametrize(
    ("payload", "count", "why"),
    [
        (b"", 1, "index out of range"),
        (GOOD, 2, "index out of range"),
        (GOOD * 2, 1, "follow"),
        (GOOD, 0, "follow"),
        (GOOD, -1, "follow"),
        (GOOD[:-1], 1, "length 8 is out of bounds"),
        (b"\x00", 1, "length 0"),
        (b"\x01" + GOOD[1:], 1, "length -1"),
        (b"\xff" * 11, 1, "longer than 10 bytes"),
        (b"\x12" + GOOD[1:] + b"\x00", 1, "more bytes than its fields"),
        (b"\x10\x00\x00\x00\x03k\x02v\x00", 1, "field length -2"),
        (b"\x10\x00\x00\x00\x02k\x7ev\x00", 1, "field length 63"),
        (b"\x10\x00\x00\x00\x02k\x02v\x01", 1, "header count -1"),
        (b"\x10\x00\x00\x00\x02k\x02v\x7e", 1, "header count 63"),
        (b"\x14\x00\x00\x00\x02k\x02v\x02\x01\x01", 1, "header key is null"),
        (one_record(offset_delta=1), 1, "offset delta 1"),
        (one_record(offset_delta=-1), 1, "offset delta -1"),
        (one_record(timestamp_delta=2**63 - 1), 1, "timestamp delta"),
    ],
)
def test_malformed_rows(payload: bytes, count: int, why: str) -> None:
    with pytest.raises(ApiError, match=why) as caught:
        list(iter_records(raw_batch(payload, count, last_offset_delta=0)))
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_a_payload_that_does_not_decompress() -> None:
    with pytest.raises(ApiError) as caught:
        list(iter_records(raw_batch(b"not gzip", 1, Codec.GZIP)))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_decompression_is_bounded() -> None:
    batch = build_batch(ROWS, codec=Codec.GZIP)
    with pytest.raises(ApiError, match="within 100 bytes"):
        list(batch_records(batch, read_header(batch), max_bytes=100))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_large_payloads_are_not_copied_and_read_alike(codec: Codec) -> None:
    """50 MB that a request of 2 KB unfolds to must not be there twice."""
    batch = build_batch([RecordData(b"k", bytes(2 << 20), 7, [("h", b"v")])], codec=codec)
    header = read_header(batch)
    (record,) = batch_records(batch, header)
    assert (record.key, record.value, record.headers) == (b"k", bytes(2 << 20), [("h", b"v")])
    assert [type(field) for field in (record.key, record.value)] == [bytes, bytes]
    if codec is not Codec.SNAPPY:
        assert isinstance(records_view(batch, header), memoryview)


def test_an_unknown_codec() -> None:
    with pytest.raises(ApiError, match="codec 6"):
        list(iter_records(patched(build_batch(ROWS), attributes=6)))


def test_bad_records_can_be_skipped_where_their_lengths_are_sound() -> None:
    lying = row_bytes(b"\x00\x00\x00\x02k\x7fv\x00")
    last = moved(build_batch(rows(1))[61:], 3)
    payload = build_batch(rows(1))[61:] + lying * 2 + last
    batch = raw_batch(payload, 4)
    header = read_header(batch)
    with pytest.raises(ApiError):
        list(batch_records(batch, header))
    reasons: list[ApiError] = []
    found = batch_records(batch, header, skipped=reasons.append)
    assert [record.offset for record in found] == [0, 3]
    assert ["field length -64" in reason.message for reason in reasons] == [True, True]


@pytest.mark.parametrize("count", [2, 2**31 - 1])
def test_records_that_are_not_there_are_one_reason(count: int) -> None:
    batch = raw_batch(build_batch(rows(1))[61:], count)
    reasons: list[ApiError] = []
    found = list(batch_records(batch, read_header(batch), skipped=reasons.append))
    assert (len(found), len(reasons)) == (1, 1)


def test_bytes_behind_the_records_are_a_reason() -> None:
    batch = raw_batch(build_batch(rows(1))[61:] + b"??", 1)
    reasons: list[ApiError] = []
    found = list(batch_records(batch, read_header(batch), skipped=reasons.append))
    assert (len(found), len(reasons)) == (1, 1)
    assert "2 bytes follow" in reasons[0].message
