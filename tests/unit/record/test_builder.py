"""Rows to bytes: what the header says of them, and batches with rows taken out."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import HEADER_SIZE, INT64_MAX, INT64_MIN, read_header
from kafkapy.record.builder import build_batch, rebuild_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import batch_records, iter_records
from tests.harness.storage.batches import NOW_MS, ROWS, rows


def test_the_bytes_of_one_record() -> None:
    batch = build_batch([ROWS[0]._replace(headers=[("h", None)])], base_offset=258, leader_epoch=3)
    record = "2c000000" + "066b6579" + "0a76616c7565" + "02026801"
    record = bytes([2 * (len(bytes.fromhex(record)) - 1)]) + bytes.fromhex(record)[1:]
    assert batch[HEADER_SIZE:] == record
    covered = batch[21:]
    assert covered[:40].hex() == (
        "0000" "00000000" "0000018bcfe56800" "0000018bcfe56800" "ffffffffffffffff" "ffff"
        "ffffffff" "00000001"
    )  # fmt: skip
    assert batch[:21].hex() == (
        "0000000000000102" + f"{len(batch) - 12:08x}0000000302" + f"{crc32c(covered):08x}"
    )


def test_header_of_many_rows() -> None:
    batch = build_batch(
        ROWS,
        base_offset=10,
        producer_id=5,
        producer_epoch=2,
        base_sequence=7,
        is_transactional=True,
    )
    header = read_header(batch)
    validate_crc(batch, 0, header)
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 14, 5)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 1_000_000)
    assert (header.producer_id, header.producer_epoch) == (5, 2)
    assert (header.base_sequence, header.last_sequence) == (7, 11)
    assert header.is_transactional
    assert not header.is_control
    assert header.size == len(batch)


def test_log_append_time_is_every_rows_time() -> None:
    batch = build_batch(ROWS, log_append_time=NOW_MS + 99)
    header = read_header(batch)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 99)
    assert {record.timestamp for record in iter_records(batch)} == {NOW_MS + 99}


def test_a_batch_needs_a_row() -> None:
    with pytest.raises(AssertionError, match="at least one record"):
        build_batch([])


@pytest.mark.parametrize("codec", list(Codec))
def test_rebuild_keeps_offsets_and_producer(codec: Codec) -> None:
    batch = build_batch(
        rows(6), base_offset=100, codec=codec, producer_id=5, producer_epoch=0, base_sequence=40,
        leader_epoch=8,
    )  # fmt: skip
    header = read_header(batch)
    kept = [r for r in batch_records(batch, header) if r.offset in (101, 104)]
    rebuilt = rebuild_batch(header, kept)
    after = read_header(rebuilt)
    validate_crc(rebuilt, 0, after)
    assert list(batch_records(rebuilt, after)) == kept
    assert [r.sequence for r in kept] == [41, 44]
    assert (after.base_offset, after.last_offset, after.record_count) == (100, 105, 2)
    assert (after.producer_id, after.base_sequence, after.last_sequence) == (5, 40, 45)
    assert (after.base_timestamp, after.max_timestamp) == (NOW_MS + 1, NOW_MS + 4)
    assert (after.codec, after.partition_leader_epoch) == (codec, 8)


def test_rebuild_sets_and_keeps_a_delete_horizon() -> None:
    batch = build_batch(rows(3))
    header = read_header(batch)
    kept = list(batch_records(batch, header))
    first = rebuild_batch(header, kept, delete_horizon_ms=NOW_MS + 10_000)
    again = rebuild_batch(read_header(first), kept[1:])
    for rebuilt, expected in ((first, kept), (again, kept[1:])):
        assert read_header(rebuilt).delete_horizon_ms == NOW_MS + 10_000
        assert list(iter_records(rebuilt)) == expected


@pytest.mark.parametrize("horizon_ms", [None, NOW_MS, INT64_MAX])
def test_rebuild_keeps_the_base_of_timestamps_that_no_other_reaches(horizon_ms: int | None) -> None:
    times = (0, INT64_MIN, INT64_MAX)
    batch = build_batch([ROWS[0]._replace(timestamp=time) for time in times])
    header = read_header(batch)
    kept = list(batch_records(batch, header))[1:]
    rebuilt = rebuild_batch(header, kept, delete_horizon_ms=horizon_ms)
    assert list(iter_records(rebuilt)) == kept
    assert not read_header(rebuilt).has_delete_horizon


def test_rebuild_keeps_log_append_time() -> None:
    batch = build_batch(rows(3), log_append_time=NOW_MS + 99)
    header = read_header(batch)
    rebuilt = rebuild_batch(header, list(batch_records(batch, header))[:1])
    assert read_header(rebuilt).max_timestamp == NOW_MS + 99
    assert [record.timestamp for record in iter_records(rebuilt)] == [NOW_MS + 99]


def test_rebuild_without_rows_leaves_an_empty_batch() -> None:
    batch = build_batch(
        rows(4), base_offset=9, codec=Codec.GZIP, producer_id=5, producer_epoch=1, base_sequence=0
    )
    header = read_header(batch)
    empty = rebuild_batch(header._replace(attributes=header.attributes | 0x40), [])
    after = read_header(empty)
    validate_crc(empty, 0, after)
    assert len(empty) == HEADER_SIZE
    assert after == header._replace(
        batch_length=49, attributes=0, base_timestamp=-1, record_count=0, crc=after.crc
    )
    assert after.next_offset == 13
    assert list(iter_records(empty + batch)) == list(iter_records(batch))
