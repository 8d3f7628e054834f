"""Records and batches that compaction keeps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch, write_header
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import Record, iter_records
from kafkapy.storage.batch_retention import BatchRetention, CleanedTransactions, LastRecord
from kafkapy.storage.offset_map import OffsetMap
from kafkapy.storage.transaction_index import AbortedTransaction
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import any_row, raw_batch
from tests.harness.storage.legacy_messages import message, wrapper
from tests.harness.storage.log_builder import row

DAY_MS = 86_400_000


def retention(
    latest: Mapping[str, int],
    upto: int = 100,
    aborted: list[AbortedTransaction] | None = None,
    last_records: Mapping[int, LastRecord] | None = None,
    now_ms: int = NOW_MS,
) -> BatchRetention:
    offsets = OffsetMap(100_000)
    offsets.put([key.encode() for key in latest], list(latest.values()))
    offsets.latest_offset = upto
    transactions = CleanedTransactions(aborted or [])
    return BatchRetention(offsets, transactions, last_records or {}, DAY_MS, now_ms)


def keep(rule: BatchRetention, batch: bytes) -> bytes | None:
    kept = rule.retain(read_header(batch), memoryview(batch))
    return None if kept is None else bytes(kept)


def seal_again(batch: bytes) -> bytes:
    again = bytearray(batch)
    write_header(again, read_header(batch))
    return bytes(again)


def rows_of(batch: bytes | None) -> list[tuple[int, bytes | None]]:
    found: list[Record] = [] if batch is None else list(iter_records(batch, include_control=True))
    return [(record.offset, record.value) for record in found]


def batch_at(base: int, *rows: RecordData, **how: int | bool) -> bytes:
    return build_batch(list(rows), base_offset=base, **how)  # type: ignore[arg-type]


def test_only_the_last_value_of_a_key_stays() -> None:
    batch = batch_at(10, row("a", "1"), row("b", "2"), row("a", "3"), row("c", "4"))
    rule = retention({"a": 12, "b": 50, "c": 13})
    assert rows_of(keep(rule, batch)) == [(12, b"3"), (13, b"4")]


def test_a_batch_that_loses_nothing_stays_byte_for_byte() -> None:
    batch = batch_at(10, row("a", "1"), row("b", "2"))
    assert keep(retention({"a": 10, "b": 11}), batch) == batch
    assert keep(retention({}), batch) == batch


def test_a_batch_that_loses_all_goes() -> None:
    assert keep(retention({"a": 99}), batch_at(10, row("a", "1"))) is None


def test_records_beyond_the_map_stay() -> None:
    batch = batch_at(10, row("a", "1"), row(None, "x"))
    assert keep(retention({"a": 99}, upto=9), batch) == batch


def test_keyless_records_go() -> None:
    batch = batch_at(10, row(None, "x"), row("a", "1"))
    assert rows_of(keep(retention({}), batch)) == [(11, b"1")]


@pytest.mark.parametrize("codec", Codec)
def test_what_stays_is_compressed_as_it_was(codec: Codec) -> None:
    batch = build_batch([row("a", "1"), row("b", "2")], base_offset=10, codec=codec)
    kept = keep(retention({"a": 99, "b": 11}), batch)
    assert kept is not None
    header = read_header(kept)
    assert (header.codec, header.base_offset, header.last_offset) == (codec, 10, 11)
    assert rows_of(kept) == [(11, b"2")]


def test_what_stays_keeps_its_bytes_and_its_times() -> None:
    rows = [
        RecordData(b"a", b"1", NOW_MS + 9), RecordData(b"b", b"2", NOW_MS + 3, [("h", None)]),
        RecordData(b"c", b"3", NOW_MS - 70_000), RecordData(b"d" * 99, b"4" * 9000, NOW_MS + 1),
    ]  # fmt: skip
    batch = batch_at(10, *rows)
    kept = keep(retention({"a": 99, "b": 11, "c": 99}), batch)
    assert kept is not None
    before = list(iter_records(batch))
    assert list(iter_records(kept)) == [before[1], before[3]]
    assert read_header(kept).max_timestamp == NOW_MS + 3
    assert read_header(kept).crc == read_header(seal_again(kept)).crc


def test_what_was_appended_at_a_time_keeps_it() -> None:
    batch = build_batch([row("a", "1"), row("b", "2")], log_append_time=NOW_MS + 500)
    kept = keep(retention({"a": 99, "b": 1}), batch)
    assert [r.timestamp for r in iter_records(kept or b"")] == [NOW_MS + 500]


def test_a_tombstone_waits_for_its_horizon() -> None:
    batch = batch_at(10, row("a", None), row("b", "2"))
    first = keep(retention({"a": 10, "b": 11}), batch)
    assert first is not None
    header = read_header(first)
    assert header.delete_horizon_ms == NOW_MS + DAY_MS
    assert [r.timestamp for r in iter_records(first)] == [NOW_MS, NOW_MS]
    later = retention({"a": 10, "b": 11}, now_ms=NOW_MS + DAY_MS - 1)
    assert keep(later, first) == first
    due = retention({"a": 10, "b": 11}, now_ms=NOW_MS + DAY_MS)
    kept = keep(due, first)
    assert rows_of(kept) == [(11, b"2")]
    assert read_header(kept or b"").delete_horizon_ms == NOW_MS + DAY_MS


def test_the_last_batch_of_a_producer_stays_even_empty() -> None:
    batch = batch_at(
        10, row("a", "1"), row("a", "2"), producer_id=7, producer_epoch=3, base_sequence=5
    )
    rule = retention({"a": 99}, last_records={7: LastRecord(11, 3)})
    empty = keep(rule, batch)
    assert empty is not None
    header = read_header(empty)
    assert (header.record_count, header.size) == (0, 61)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 11, 6)
    assert keep(rule, empty) == empty
    assert keep(retention({"a": 99}, last_records={7: LastRecord(20, 3)}), empty) is None
    assert keep(retention({}), empty) is None


def transactional(base: int, key: str, producer_id: int = 7) -> bytes:
    return batch_at(
        base, row(key, "t"), producer_id=producer_id, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip


def marker(base: int, commit: bool, producer_id: int = 7) -> bytes:
    return end_transaction_marker(
        commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0,
        timestamp=NOW_MS, base_offset=base,
    )  # fmt: skip


ABORTED = [AbortedTransaction(7, 10, 11, 12)]


def test_an_aborted_last_batch_of_a_producer_stays_empty() -> None:
    rule = retention({"a": 10}, aborted=ABORTED, last_records={7: LastRecord(10, 0)})
    assert read_header(keep(rule, transactional(10, "a")) or b"").record_count == 0


def test_aborted_data_goes_and_its_marker_follows_after_the_horizon() -> None:
    rule = retention({"a": 10}, aborted=ABORTED)
    assert keep(rule, transactional(10, "a")) is None
    assert keep(rule, marker(11, commit=False)) == marker(11, commit=False)
    assert rule._transactions.kept_aborts == ABORTED

    again = retention({}, aborted=ABORTED)
    aging = keep(again, marker(11, commit=False))
    assert aging is not None
    assert read_header(aging).delete_horizon_ms == NOW_MS + DAY_MS
    assert again._transactions.kept_aborts == []

    due = retention({}, aborted=ABORTED, now_ms=NOW_MS + DAY_MS)
    assert keep(due, aging) is None


def test_a_commit_marker_stays_while_its_data_does() -> None:
    rule = retention({"a": 10})
    assert keep(rule, transactional(10, "a")) == transactional(10, "a")
    assert keep(rule, marker(11, commit=True)) == marker(11, commit=True)
    alone = retention({})
    aging = keep(alone, marker(11, commit=True))
    assert read_header(aging or b"").has_delete_horizon
    assert keep(retention({}, now_ms=NOW_MS + DAY_MS), aging or b"") is None


def test_the_marker_that_fences_a_producer_stays_empty() -> None:
    aging = keep(retention({}), marker(11, commit=True)) or b""
    rule = retention({}, last_records={7: LastRecord(-1, 0)}, now_ms=NOW_MS + DAY_MS)
    empty = keep(rule, aging)
    assert read_header(empty or b"").record_count == 0
    assert keep(retention({}), empty or b"") is None


def test_transactions_of_one_producer_follow_each_other() -> None:
    aborted = [AbortedTransaction(7, 10, 11, 12), AbortedTransaction(7, 14, 15, 16)]
    rule = retention({}, aborted=aborted)
    assert keep(rule, transactional(10, "a")) is None
    assert keep(rule, marker(11, commit=False)) is not None
    assert keep(rule, transactional(12, "b")) is not None
    assert keep(rule, marker(13, commit=True)) is not None
    assert keep(rule, transactional(14, "c")) is None
    assert keep(rule, marker(15, commit=False)) is not None
    assert rule._transactions.kept_aborts == aborted


def test_old_formats_lose_values_and_by_age_tombstones() -> None:
    rule = retention({"a": 99, "b": 11, "c": 12})
    assert keep(rule, message(1, 10, b"a", b"1", timestamp=5)) is None
    value = message(1, 11, b"b", b"2", timestamp=5)
    assert keep(rule, value) == value
    tombstone = message(1, 12, b"c", None, timestamp=5)
    assert keep(rule, tombstone) == tombstone
    rule.keep_legacy_deletes = False
    assert keep(rule, tombstone) is None


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_compressed_set_does_not_grow_when_it_loses_rows(magic: int, codec: Codec) -> None:
    """One batch for each retained row, without compression, took many times the disk space."""
    offsets = range(100) if magic == 1 else range(10, 110)
    inner = b"".join(
        message(magic, offset, b"%d" % i, b"value" * 20, timestamp=1000 - i)
        for i, offset in enumerate(offsets)
    )
    data = wrapper(magic, codec, inner, offset=109, timestamp=1000)
    kept = keep(retention({"0": 200, "50": 200, "98": 200}, upto=200), data)
    assert kept is not None
    assert len(kept) < len(data)
    header = read_header(kept)
    assert (header.size, header.magic, header.codec) == (len(kept), 2, codec)
    assert (header.base_offset, header.last_offset, header.record_count) == (11, 109, 97)
    timestamps = (999, 999) if magic == 1 else (-1, -1)
    assert (header.base_timestamp, header.max_timestamp) == timestamps
    assert not header.is_log_append_time
    rows = [(each.offset, each.key, each.timestamp) for each in iter_records(kept)]
    assert rows == [
        (10 + i, b"%d" % i, 1000 - i if magic == 1 else -1)
        for i in range(100)
        if i not in (0, 50, 98)
    ]


def test_an_old_compressed_set_keeps_its_append_time() -> None:
    inner = b"".join(message(1, i, key, b"1", timestamp=5) for i, key in enumerate([b"a", b"b"]))
    data = wrapper(1, Codec.GZIP, inner, offset=11, timestamp=1000, log_append_time=True)
    kept = keep(retention({"b": 99}), data)
    assert kept is not None
    assert read_header(kept).is_log_append_time
    assert [(each.offset, each.timestamp) for each in iter_records(kept)] == [(10, 1000)]


def test_rows_of_an_old_set_may_be_all_of_time_apart() -> None:
    times = [-(2**63), 2**63 - 1, 0]
    inner = b"".join(
        message(1, i, key, b"1", timestamp=times[i]) for i, key in enumerate([b"a", b"b", b"c"])
    )
    kept = keep(retention({"c": 99}), wrapper(1, Codec.GZIP, inner, offset=12))
    assert kept is not None
    assert [each.timestamp for each in iter_records(kept)] == times[:2]


def test_a_horizon_beyond_all_time_is_the_end_of_time() -> None:
    """`delete.retention.ms` may be as large as a time can be."""
    rule = BatchRetention(OffsetMap(1000), CleanedTransactions([]), {}, 2**63 - 1, NOW_MS)
    kept = keep(rule, batch_at(10, row("a", None)))
    assert kept is not None
    assert read_header(kept).delete_horizon_ms == 2**63 - 1
    assert rows_of(kept) == [(10, None)]


@given(
    st.lists(any_row, min_size=1, max_size=4),
    st.sampled_from([0, 5, -1, 2**63 - 1, -(2**63)]),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255)), max_size=3),
    st.sampled_from([0, 0, 1, 3, 0x10, 0x20, 0x40, 0x48]),
    st.integers(-1, 6),
)
def test_a_batch_is_retained_or_refused_whatever_it_says(
    given_rows: list[RecordData],
    base_timestamp: int,
    changes: list[tuple[int, int]],
    attributes: int,
    count: int,
) -> None:
    """Any other exception would end the cleaner, and with it the cleaning of all logs.

    Topics that were not compacted hold what nobody has checked.
    """
    payload = bytearray(build_batch(given_rows)[61:])
    for place, byte in changes:
        payload[place % len(payload)] = byte
    batch = raw_batch(payload, count, attributes, base_timestamp=base_timestamp, base_offset=10)
    rule = retention({"": 99, "a": 99})
    with suppress(ApiError):
        keep(rule, batch)


def test_a_time_that_cannot_be_is_a_bad_batch() -> None:
    two = build_batch([row("a", "1"), row("b", "2")], base_offset=10)
    payload = two[61:]
    batch = raw_batch(payload, 2, base_timestamp=2**63 - 1, base_offset=10)
    assert keep(retention({"a": 99}), batch) is not None
    late = b"\x22\x00\xfe" + b"\xff" * 8 + b"\x01\x02\x02b\x02v\x00"
    bad = raw_batch(payload[: len(payload) // 2] + late, 2, base_timestamp=5, base_offset=10)
    with pytest.raises(ApiError) as caught:
        keep(retention({"a": 99}), bad)
    assert caught.value.code is ErrorCode.INVALID_RECORD
