"""Append and read as the replica layer sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import iter_headers, read_header
from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_append import AppendOrigin, UnexpectedAppendOffset
from kafkapy.storage.producer_state import ProducerState
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import flip, raw_batch, row_bytes
from tests.harness.storage.log_builder import LogBuilder, read_all, row


def test_a_batch_gets_offsets_and_leader_epoch_and_keeps_its_bytes(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.leader_epoch = 5
    sent = build_batch([row("a", "1"), row("b", "2")])
    builder.add(sent)
    info = builder.add(sent)
    assert (info.first_offset, info.last_offset, info.record_count) == (2, 3, 2)
    assert (info.leader_epoch, info.log_append_time, info.duplicate) == (5, -1, False)
    stored = builder.log.read(2, 1000, 4, True).records
    assert stored[16:] == sent[16:]
    header = read_header(stored)
    assert (header.base_offset, header.partition_leader_epoch) == (2, 5)
    assert builder.log.epochs.entries() == [(5, 0)]
    on_disk = builder.path("00000000000000000000.log").read_bytes()
    assert on_disk[-len(stored) :] == stored


def test_the_append_takes_any_buffer(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    sent = build_batch([row()])
    for records in (sent, memoryview(sent), memoryview(bytearray(sent))):
        builder.log.append_as_leader(records, 0, NOW_MS)
    assert builder.log.log_end_offset == 3


@pytest.mark.parametrize("codec", Codec)
def test_read_gives_back_every_codec(tmp_path: Path, codec: Codec) -> None:
    builder = LogBuilder(tmp_path).append(count=20, codec=codec).append(count=3, codec=codec)
    assert [r.offset for r in builder.records()] == list(range(23))
    assert [v.strip() for v in builder.values()] == [str(i) for i in range(23)]


def test_a_read_begins_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=10).append(count=10)
    info = builder.log.read(15, 10_000, 20, True)
    assert [h.base_offset for _, h in iter_headers(info.records)] == [10]
    first_size = read_header(builder.log.read(0, 1, 20, True).records).size
    assert info.fetch_offset_metadata == (15, 0, first_size)


def test_every_offset_is_found_whatever_the_index_knows(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="200", segment_bytes="2000")
    for count in (1, 2, 3, 5, 8) * 12:
        builder.append(count=count)
    log = builder.log
    assert len(log.segments) > 3
    for offset in range(log.log_end_offset):
        headers = list(iter_headers(log.read(offset, 1, log.log_end_offset, True).records))
        assert headers[0][1].base_offset <= offset <= headers[0][1].last_offset


def test_max_bytes_cuts_and_min_one_message_does_not(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=2).append(count=2)
    one = read_header(builder.log.read(0, 1, 4, True).records).size
    assert builder.log.read(0, one + 10, 4, False).size_bytes == one + 10
    small = builder.log.read(0, one - 1, 4, False)
    assert small.first_entry_incomplete
    assert small.records == b""
    whole = builder.log.read(0, one - 1, 4, True)
    assert whole.size_bytes == one
    assert not whole.first_entry_incomplete


def test_a_read_stays_below_its_bound(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).append(count=3, committed=False)
    log = builder.log
    assert log.high_watermark == 3
    assert [h.base_offset for _, h in iter_headers(log.read(0, 10_000, 3, True).records)] == [0]
    at_bound = log.read(3, 10_000, 3, True)
    assert at_bound.records == b""
    assert at_bound.fetch_offset_metadata == log.high_watermark_metadata
    assert log.read(5, 10_000, 3, True).records == b""


def test_a_read_never_spans_segments_and_skips_to_the_next_one(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).roll().append(count=3)
    log = builder.log
    assert [h.base_offset for _, h in iter_headers(log.read(1, 10_000, 6, True).records)] == [0]
    info = log.read(3, 10_000, 6, True)
    assert info.fetch_offset_metadata == (3, 3, 0)
    assert len(read_all(log)) == 6


@pytest.mark.parametrize("offset", [-1, 1, 7, 100])
def test_out_of_range(tmp_path: Path, offset: int) -> None:
    builder = LogBuilder(tmp_path).append(count=6)
    builder.log.maybe_increment_log_start_offset(2, "test")
    with pytest.raises(ApiError) as caught:
        builder.log.read(offset, 100, 6, True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_end_of_log_is_in_range_and_empty(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append(count=6).log
    info = log.read(6, 100, 6, True, include_aborted=True)
    assert (info.records, info.aborted_transactions) == (b"", [])
    assert info.fetch_offset_metadata == log.local.end_metadata()


def test_damaged_bytes_are_an_error_and_never_a_loop(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).append(count=3).append(count=3).reopen()
    one = read_header(builder.log.read(0, 1, 9, True).records).size
    with builder.path("00000000000000000000.log").open("r+b") as file:
        file.seek(one)
        file.write(bytes(12))
    for offset in (3, 5, 8):
        with pytest.raises(ApiError) as caught:
            builder.log.read(offset, 10_000, 9, True)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_length_beyond_the_end_is_damage(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).reopen()
    with builder.path("00000000000000000000.log").open("r+b") as file:
        file.seek(8)
        file.write((2**31 - 1).to_bytes(4, "big"))
    with pytest.raises(ApiError) as caught:
        builder.log.read(0, 10_000, 3, True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_the_segment_size_bounds_a_set(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, segment_bytes="200")
    with pytest.raises(ApiError) as caught:
        builder.append(count=20)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert builder.log.log_end_offset == 0


def test_refusals_of_the_record_rules_reach_the_caller(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, cleanup_policy="compact", max_message_bytes="300")
    with pytest.raises(ApiError) as caught:
        builder.append(row(None, "no key"))
    assert caught.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(ApiError) as caught:
        builder.append(count=50)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    broken = bytearray(build_batch([row()]))
    broken[-1] ^= 1
    with pytest.raises(ApiError) as caught:
        builder.add(bytes(broken))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert builder.log.log_end_offset == 0


def test_log_append_time(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, message_timestamp_type="LogAppendTime")
    builder.clock.now_ms += 77
    info = builder.add(build_batch([row(timestamp=5)]))
    assert info.log_append_time == info.max_timestamp == NOW_MS + 77
    assert [r.timestamp for r in builder.records()] == [NOW_MS + 77]


def test_recompression_to_the_topics_codec(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, compression_type="lz4").append(count=5)
    assert read_header(builder.log.read(0, 1, 5, True).records).codec is Codec.LZ4
    assert len(builder.records()) == 5


def test_a_repeated_batch_is_answered_and_not_appended(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    for sequence in range(7):
        builder.produce(9, sequence)
    again = builder.produce(9, 4)
    assert (again.duplicate, again.first_offset, again.last_offset) == (True, 4, 4)
    assert again.log_append_time == NOW_MS
    assert builder.log.log_end_offset == 7
    with pytest.raises(ApiError) as caught:
        builder.produce(9, 1)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_coordinator_may_write_what_a_client_may_not(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0, is_transactional=True)
    builder.end_transaction(9, commit=True)
    batch = build_batch([row()], producer_id=3, producer_epoch=0, base_sequence=0)
    for _ in range(2):
        builder.add(batch, AppendOrigin.COORDINATOR)
    assert builder.log.log_end_offset == 4


def test_a_follower_copies_bytes_and_learns_epochs_and_producers(tmp_path: Path) -> None:
    leader = LogBuilder(tmp_path / "leader")
    leader.leader_epoch = 3
    leader.append(count=2)
    leader.produce(9, 0)
    leader.leader_epoch = 4
    leader.append(count=2)
    follower = LogBuilder(tmp_path / "follower").log
    sent = leader.log.read(0, 10_000, 5, True).records
    info = follower.append_as_follower(sent + sent[:30], NOW_MS)
    assert (info.first_offset, info.last_offset, info.record_count) == (0, 4, 5)
    assert info.size_bytes == len(sent)
    assert follower.read(0, 10_000, 5, True).records == sent
    assert follower.epochs.entries() == [(3, 0), (4, 3)]
    assert follower.producers.state.producers[9].last_sequence == 0
    assert follower.append_as_follower(b"", NOW_MS).last_offset == 4


def test_a_follower_takes_batches_of_segments_that_are_larger_than_its_own(tmp_path: Path) -> None:
    """`segment.bytes` was lowered: what the leader has already is no smaller for that."""
    leader = LogBuilder(tmp_path / "leader").append(count=9).append(count=9)
    first = leader.log.read(0, 10_000, 18, True).records
    second = leader.append(count=9).log.read(18, 10_000, 27, True).records
    builder = LogBuilder(tmp_path / "follower", segment_bytes="200")
    builder.log.append_as_follower(first, NOW_MS)
    builder.log.append_as_follower(second, NOW_MS)
    assert builder.bases() == [0, 18]
    builder.kill().open()
    assert builder.records() == leader.records()


def test_a_follower_refuses_what_does_not_follow(tmp_path: Path) -> None:
    leader = LogBuilder(tmp_path / "leader").append(count=2).append(count=2)
    sent = leader.log.read(0, 10_000, 4, True).records
    second = leader.log.read(2, 10_000, 4, True).records
    follower = LogBuilder(tmp_path / "follower").log
    follower.append_as_follower(sent, NOW_MS)
    with pytest.raises(UnexpectedAppendOffset) as caught:
        follower.append_as_follower(second, NOW_MS)
    assert caught.value.first_offset == 2
    backwards = LogBuilder(tmp_path / "other").log
    with pytest.raises(ApiError) as refused:
        backwards.append_as_follower(second + sent[: len(sent) - len(second)], NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    broken = bytearray(sent)
    broken[-1] ^= 1
    with pytest.raises(ApiError) as refused:
        backwards.append_as_follower(bytes(broken), NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert backwards.log_end_offset == 0


def test_aborted_transactions_are_told_with_a_read(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(1, 0, is_transactional=True)
    builder.produce(2, 0, is_transactional=True)
    builder.end_transaction(2, commit=True)
    builder.end_transaction(1, commit=False)
    builder.roll().append(count=2)
    log = builder.log
    assert log.read(0, 10_000, 6, True).aborted_transactions is None
    aborted = log.read(0, 10_000, 6, True, include_aborted=True).aborted_transactions
    assert aborted == [(1, 0, 3, 4)]
    assert log.read(4, 10_000, 6, True, include_aborted=True).aborted_transactions == []


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_read_gets_no_aborted_transactions_of_the_rest_of_the_segment(
    tmp_path: Path, is_closed: bool
) -> None:
    """A consumer of a segment of 50,000 got all of them with each fetch."""
    builder = LogBuilder(tmp_path, index_interval_bytes="200")
    for sequence in range(50):
        builder.produce(1, sequence, is_transactional=True)
        builder.end_transaction(1, commit=False)
    if is_closed:
        builder.roll()
    log, offset, found = builder.log, 0, set()
    while offset < 100:
        info = log.read(offset, 400, 100, True, include_aborted=True)
        last = [h.last_offset for _, h in iter_headers(info.records)][-1]
        aborted = [entry.first_offset for entry in info.aborted_transactions or ()]
        assert set(range(offset & ~1, last + 1, 2)) <= set(aborted)
        assert max(aborted) < last + 10
        found.update(aborted)
        offset = last + 1
    assert found == set(range(0, 100, 2))


def test_a_closed_segment_keeps_no_aborted_transactions_in_memory(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(1, 0, is_transactional=True)
    builder.end_transaction(1, commit=False)
    builder.roll().append()
    for _ in range(2):
        index = builder.log.segments[0].transaction_index
        assert builder.log.aborted_transactions(0, 2) == index.entries() == [(1, 0, 1, 2)]
        assert index._data is None
        builder.reopen()


def test_a_set_of_many_transactions_takes_as_many_searches_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each batch, the append searched all earlier transactions of the set, and opened a
    file.
    """
    leader = LogBuilder(tmp_path / "leader")
    for sequence in range(20):
        leader.produce(1, sequence, is_transactional=True)
        leader.end_transaction(1, commit=True)
    follower = LogBuilder(tmp_path / "follower").log
    calls: list[str] = []
    search, check = ProducerState.first_unstable_offset.fget, LocalLog.check_descriptors
    assert search is not None

    def counted_search(state: ProducerState) -> int | None:
        calls.append("search")
        return search(state)

    def counted_check(local: LocalLog) -> None:
        calls.append("check")
        check(local)

    monkeypatch.setattr(ProducerState, "first_unstable_offset", property(counted_search))
    monkeypatch.setattr(LocalLog, "check_descriptors", counted_check)
    follower.append_as_follower(leader.log.read(0, 1_000_000, 40, True).records, NOW_MS)
    assert follower.first_unstable_offset == 0
    assert (calls.count("search"), calls.count("check")) == (1, 2)  # one check for the epoch


def test_an_open_transaction_whose_start_is_deleted_holds_readers_at_the_log_start(
    tmp_path: Path,
) -> None:
    """Below it a read_committed consumer would be out of range, and begin anew for ever."""
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0, is_transactional=True)
    builder.produce(9, 1, is_transactional=True)
    log = builder.log
    log.update_high_watermark(2)
    assert log.last_stable_offset == 0
    log.maybe_increment_log_start_offset(1, "a client asked")
    assert (log.last_stable_offset, log.first_unstable_offset) == (1, 0)
    builder.end_transaction(9, commit=True)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_a_lying_count_neither_moves_the_end_nor_rolls(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append()
    for codec in Codec:
        with pytest.raises(ApiError) as refused:
            builder.add(raw_batch(b"x", 2**31 - 1, codec))
        assert refused.value.code is ErrorCode.INVALID_RECORD
    assert (builder.log.log_end_offset, builder.bases()) == (1, [0])


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_a_compacted_log_takes_no_record_that_cannot_be_read(
    tmp_path: Path, origin: AppendOrigin
) -> None:
    builder = LogBuilder(tmp_path, cleanup_policy="compact,delete").append()
    lying = row_bytes(b"\x00\x00\x00\x02k\x7fv\x00")
    with pytest.raises(ApiError) as refused:
        builder.add(raw_batch(lying, 1), origin)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert builder.log.log_end_offset == 1


def test_a_truncated_log_with_damage_is_appended_to_and_closed(tmp_path: Path) -> None:
    """The broker could not stop cleanly, for none of its logs."""
    builder = LogBuilder(tmp_path, index_interval_bytes="100")
    for time in (NOW_MS + 10**6, *range(NOW_MS, NOW_MS + 20)):
        builder.append(row(timestamp=time))
    builder.reopen()
    batches = [position for position, _ in builder.log.segments.active.records.headers()]
    for _ in range(5):
        builder.append()
    flip(builder.path(f"{0:020d}.log"), 8 * (batches[3] + 8))  # a length
    builder.log.truncate_to(24)
    builder.append().stop()
    builder.open()
    assert builder.log.log_end_offset == 25
    assert builder.log.segments.active.max_timestamp == NOW_MS + 10**6
