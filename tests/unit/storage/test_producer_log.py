"""Producer state with its files: checks, the transaction index, rebuilding."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import CONTROL_BIT, TRANSACTIONAL_BIT
from kafkapy.storage import producer_log, producer_snapshot
from kafkapy.storage.producer_log import DEFAULT_PRODUCER_CONFIG, RESTORE_AGE_MAX_MS
from kafkapy.storage.producer_snapshot import decode_snapshot, encode_snapshot
from kafkapy.storage.producer_state import ProducerBatch, ProducerEntry
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import flip, raw_batch, row_bytes, watched_bits
from tests.harness.storage.log_builder import LogBuilder


def last_sequences(builder: LogBuilder) -> dict[int, int]:
    return {e.producer_id: e.last_sequence for e in builder.log.producers.state}


def all_batches(builder: LogBuilder) -> list[ProducerBatch]:
    return [batch for entry in builder.log.producers.state for batch in entry.batches]


def test_a_client_that_rolls_with_each_request_makes_no_roll_pack_all_producers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 60,000 forged producers, each request of 111 bytes stopped all clients for 80 ms."""
    builder = LogBuilder(tmp_path)
    packed: list[int] = []
    pack = producer_snapshot._pack

    def counted(entry: ProducerEntry) -> bytes:
        packed.append(entry.producer_id)
        return pack(entry)

    monkeypatch.setattr(producer_snapshot, "_pack", counted)
    for producer_id in range(50):
        builder.produce(producer_id, 0)
    builder.roll()
    packed.clear()
    builder.produce(7, 1)
    builder.produce(99, 0)
    builder.roll().append().roll()
    assert packed == [7, 99]
    latest = Path(builder.log.producers.snapshots.path(builder.log.log_end_offset))
    assert len(decode_snapshot(latest.read_bytes())) == 51


def test_no_change_of_a_producer_is_lost_for_a_snapshot_before_it(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    changes: list[Callable[[], object]] = [
        lambda: builder.produce(7, 0),
        lambda: builder.produce(7, 1),
        lambda: builder.produce(7, 0, producer_epoch=1),
        lambda: builder.produce(8, 0, is_transactional=True),
        lambda: builder.end_transaction(8, True),
        lambda: builder.end_transaction(8, False, producer_epoch=3, coordinator_epoch=2),
        lambda: builder.produce(8, 0, producer_epoch=3, is_transactional=True),
    ]
    for number, change in enumerate(changes):
        change()
        builder.roll()
        entries = [copy(entry) for entry in builder.log.producers.state]
        for entry in entries:
            entry.snapshot_row = None
        path = Path(builder.log.producers.snapshots.path(builder.log.log_end_offset))
        assert path.read_bytes() == encode_snapshot(entries), number


def test_a_roll_and_a_close_take_snapshots(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.roll()
    builder.produce(9, 1)
    assert builder.log.producers.snapshots.offsets == [1]
    builder.reopen()
    assert builder.log.producers.snapshots.offsets == [1, 2]
    assert last_sequences(builder) == {9: 1}


def test_after_a_kill_the_state_comes_from_a_snapshot_and_the_batches_after_it(
    tmp_path: Path,
) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(8, 0)
    builder.produce(9, 0, is_transactional=True)
    builder.roll()
    builder.produce(9, 1, is_transactional=True)
    builder.reopen(clean=False)
    assert last_sequences(builder) == {8: 0, 9: 1}
    assert builder.log.first_unstable_offset == 1
    builder.end_transaction(9, commit=False)
    builder.reopen(clean=False)
    assert builder.log.first_unstable_offset == 1
    builder.log.update_high_watermark(4)
    assert builder.log.first_unstable_offset is None
    index = builder.log.segments.active.transaction_index
    assert index.entries() == [(9, 1, 3, 4)]


def test_the_five_batch_window_survives_a_kill_as_far_as_it_is_in_the_segment(
    tmp_path: Path,
) -> None:
    builder = LogBuilder(tmp_path)
    for sequence in range(4):
        builder.produce(9, sequence)
    builder.reopen(clean=False)
    assert builder.produce(9, 2).duplicate
    assert builder.log.log_end_offset == 4


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_the_five_batch_window_survives_a_snapshot(tmp_path: Path, clean: bool) -> None:
    """Chaos saw it: a broker that had just restarted led, and a producer sent again what it had in
    flight. Kafka's snapshot knows the last batch only, and the others are out of order to it."""
    builder = LogBuilder(tmp_path)
    for sequence in range(0, 14, 2):
        builder.produce(9, sequence, count=2)
        builder.produce(8, sequence // 2)
    builder.roll()
    builder.reopen(clean=clean)
    repeated = [builder.produce(9, sequence, count=2) for sequence in (4, 6, 8, 10, 12)]
    assert [(info.duplicate, info.first_offset) for info in repeated] == [
        (True, 6), (True, 9), (True, 12), (True, 15), (True, 18)
    ]  # fmt: skip
    assert not builder.produce(9, 14).duplicate
    with pytest.raises(ApiError, match="Out of order"):
        builder.produce(9, 2, count=2)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_the_five_batch_window_is_found_in_several_segments(tmp_path: Path, clean: bool) -> None:
    builder = LogBuilder(tmp_path)
    for sequence in range(7):
        builder.produce(9, sequence)
        if sequence in (2, 4, 5):
            builder.roll()
    builder.reopen(clean=clean)
    assert [builder.produce(9, at).first_offset for at in range(2, 7)] == [2, 3, 4, 5, 6]
    with pytest.raises(ApiError, match="Out of order"):
        builder.produce(9, 1)


def test_of_the_segments_only_the_last_part_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.roll()
    builder.produce(9, 1)
    builder.produce(9, 2)
    size = builder.log.segments.active.records.size
    monkeypatch.setattr(producer_log, "RESTORE_BYTES_MAX", size)
    builder.reopen()
    [entry] = builder.log.producers.state
    assert [batch.last_offset for batch in entry.batches] == [1, 2]


def test_batches_of_another_epoch_are_not_recalled(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.produce(9, 0, producer_epoch=1)
    builder.produce(9, 1, producer_epoch=1)
    builder.reopen()
    [entry] = builder.log.producers.state
    assert [batch.last_offset for batch in entry.batches] == [1, 2]


def test_after_a_truncation_the_window_is_that_of_what_is_left(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    for sequence in range(3):
        builder.produce(9, sequence)
    builder.reopen()
    builder.produce(9, 3)
    builder.log.truncate_to(3)
    assert builder.produce(9, 1).duplicate
    assert builder.produce(9, 3).first_offset == 3


def test_no_truncation_learns_from_a_flipped_bit(tmp_path: Path) -> None:
    """Seed 22000791: a bit was read wrong, and the log had a producer that no client ever was."""
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.produce(8, 0, is_transactional=True)
    builder.end_transaction(8, commit=True)
    size = builder.log.segments.active.size
    builder.produce(9, 1)
    known = last_sequences(builder)
    path = builder.path("00000000000000000000.log")
    for bit in watched_bits(path.read_bytes()[:size]):
        flip(path, bit)
        with pytest.raises(ApiError, match="no valid batch"):
            builder.log.truncate_to(3)
        flip(path, bit)
        assert (builder.log.log_end_offset, last_sequences(builder)) == (4, known)
    builder.log.truncate_to(3)
    assert last_sequences(builder) == {9: 0, 8: 0}


def test_a_truncation_checks_what_lies_after_the_newest_snapshot_that_can_be_read(
    tmp_path: Path,
) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    first_batch = range(builder.log.segments.active.size)
    builder.log.producers.take_snapshot(1)
    builder.produce(9, 1)
    known = last_sequences(builder)
    flip(builder.path("00000000000000000000.log"), 8 * first_batch[-1])
    flip(builder.path("00000000000000000001.snapshot"), 50)
    with pytest.raises(ApiError, match="no valid batch"):
        builder.log.truncate_to(1)
    assert (builder.log.log_end_offset, last_sequences(builder)) == (2, known)


def test_no_earlier_batch_is_learned_from_a_flipped_bit(tmp_path: Path) -> None:
    """Seed 24254960: a bit before the snapshot was read wrong, and an earlier sequence with it. The
    CRCs of the batches before the last one were not checked."""
    builder = LogBuilder(tmp_path)
    for sequence in range(3):
        builder.produce(9, sequence)
    builder.log.producers.take_snapshot(3)
    known = all_batches(builder)
    path = builder.path("00000000000000000000.log")
    for bit in watched_bits(path.read_bytes()):
        flip(path, bit)
        builder.log.producers.rebuild(builder.log.local, 0, 3, NOW_MS)
        flip(path, bit)
        found = all_batches(builder)
        assert (set(found) <= set(known), found[-1]) == (True, known[-1])
    builder.log.producers.rebuild(builder.log.local, 0, 3, NOW_MS)
    assert all_batches(builder) == known


def test_a_log_that_was_not_written_lately_is_not_searched(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.produce(9, 1)
    builder.stop()
    before_s = (NOW_MS - RESTORE_AGE_MAX_MS - 1000) / 1000
    os.utime(builder.path("00000000000000000000.log"), (before_s, before_s))
    builder.open()
    [entry] = builder.log.producers.state
    assert len(entry.batches) == 1


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(8, 0)
    builder.produce(9, 0, is_transactional=True)
    builder.clock.now_ms = NOW_MS + DEFAULT_PRODUCER_CONFIG.id_expiration_ms
    builder.reopen()
    assert last_sequences(builder) == {9: 0}


def test_after_a_clean_stop_without_snapshots_nobody_is_remembered(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    for sequence in range(3):
        builder.produce(9, sequence)
        builder.roll()
    builder.stop()
    for path in (tmp_path / "orders-0").glob("*.snapshot"):
        path.unlink()
    builder.open()
    assert last_sequences(builder) == {}
    assert builder.log.producers.snapshots.offsets == [2, 3]
    assert builder.produce(9, 77).first_offset == 3


def test_snapshots_of_no_segment_go_but_for_the_newest(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.roll()
    builder.produce(9, 1, count=5)
    builder.stop()
    for offset in (0, 3, 4, 99):
        (tmp_path / f"orders-0/{offset:020d}.snapshot").write_bytes(b"stray")
    builder.open()
    assert builder.log.producers.snapshots.offsets == [0, 1, 6]


def test_a_transaction_that_nobody_vouched_for_does_not_begin(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    verification = builder.log.producers.verification
    verification.is_enabled = True
    with pytest.raises(ApiError, match="not part of an ongoing transaction"):
        builder.produce(9, 0, is_transactional=True)
    verification.begin(9, 0, 0, NOW_MS).is_confirmed = True
    builder.produce(9, 0, is_transactional=True)
    builder.produce(9, 1, is_transactional=True)
    builder.end_transaction(9, commit=True)
    with pytest.raises(ApiError, match="not part of an ongoing transaction"):
        builder.produce(9, 2, is_transactional=True)


def test_a_repeated_batch_of_an_ended_transaction_is_a_repetition(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0, is_transactional=True)
    builder.end_transaction(9, commit=True)
    builder.log.producers.verification.is_enabled = True
    assert builder.produce(9, 0, is_transactional=True).duplicate


BAD_MARKER = raw_batch(
    row_bytes(bytes(6)), 1, CONTROL_BIT | TRANSACTIONAL_BIT, base_offset=1, producer_id=9,
    producer_epoch=0,
)  # fmt: skip


def test_a_marker_that_cannot_be_read_takes_no_directory_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends no transaction, and what follows it counts: from a leader, at a start, and when the
    state is made anew."""
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0, is_transactional=True)
    assert builder.log.append_as_follower(BAD_MARKER, NOW_MS).last_offset == 1
    assert "marker at offset 1 of producer 9" in caplog.text
    builder.produce(8, 0)
    builder.reopen(clean=False)
    assert last_sequences(builder) == {9: 0, 8: 0}
    builder.log.truncate_to(2)
    assert last_sequences(builder) == {9: 0}
    assert builder.log.first_unstable_offset == 0
