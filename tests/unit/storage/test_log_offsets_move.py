"""The offsets of a log and what moves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.record.batch_header import iter_headers
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import NOW_MS
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.log_builder import LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem


def test_the_high_watermark_stays_in_the_log(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append(count=4, committed=False).log
    assert log.update_high_watermark(3) == log.high_watermark == 3
    assert log.update_high_watermark(99) == 4
    log.maybe_increment_log_start_offset(2, "test")
    assert log.update_high_watermark(0) == 2
    assert log.high_watermark_metadata == (2, 0, 0)


def test_high_watermark_metadata_follows_appends_rolls_and_truncation(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append().append()
    log = builder.log
    at_end = log.high_watermark_metadata
    assert at_end == log.local.end_metadata() == (2, 0, log.size_bytes)
    builder.roll().append(committed=False)
    assert log.high_watermark_metadata == at_end
    log.truncate_to(1)
    assert log.high_watermark == 1
    assert log.high_watermark_metadata == (1, 0, at_end.position // 2)


def test_the_log_start_offset_only_grows_and_not_past_the_high_watermark(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.append(count=4)
    builder.leader_epoch = 3
    builder.append(count=4, committed=False)
    log = builder.log
    with pytest.raises(ApiError) as caught:
        log.maybe_increment_log_start_offset(5, "test")
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.maybe_increment_log_start_offset(4, "test")
    assert not log.maybe_increment_log_start_offset(3, "test")
    assert (log.log_start_offset, log.epochs.entries()) == (4, [(3, 4)])


def test_epochs(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append(count=2).log
    log.assign_epoch_start(7, 2)
    assert (tmp_path / "orders-0/leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n7 2\n"
    assert log.epochs.latest == 7
    assert log.end_offset_for_epoch(0) == (0, 2)
    assert log.end_offset_for_epoch(7) == (7, 2)
    assert [log.epochs.epoch_for_offset(o) for o in (0, 1, 2)] == [0, 0, 7]


def test_truncation_takes_epochs_and_producers_along(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(9, 0)
    builder.roll()
    builder.produce(9, 1)
    builder.leader_epoch = 2
    builder.produce(9, 2, is_transactional=True)
    log = builder.log
    assert log.last_stable_offset == 2
    log.truncate_to(2)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (2, 2, 2)
    assert log.epochs.entries() == [(0, 0)]
    assert log.producers.state.producers[9].last_sequence == 1
    assert builder.produce(9, 2).first_offset == 2
    log.truncate_to(1)
    assert log.producers.state.producers[9].last_sequence == 0


def damage(builder: LogBuilder, base_offset: int, position: int) -> None:
    """Spoil the magic of a batch on the disk."""
    segment = builder.log.segments.get(base_offset)
    assert segment is not None
    with Path(segment.records.path).open("r+b") as file:
        file.seek(position + 16)
        file.write(b"\x7f")


def test_a_log_that_cannot_be_cut_stays_as_it_is(tmp_path: Path) -> None:
    """Without its last segments it would still claim their records, and take a producer's retry
    for a batch that it has."""
    builder = LogBuilder(tmp_path).append(count=3).roll()
    builder.produce(9, 0)
    builder.produce(9, 1)
    builder.roll()
    builder.produce(9, 2)
    builder.reopen()
    damage(builder, 3, 0)
    with pytest.raises(ApiError, match="no valid batch at position 0"):
        builder.log.truncate_to(4)
    assert (builder.bases(), builder.log.log_end_offset) == ([0, 3, 5], 6)
    assert builder.log.producers.state.producers[9].last_sequence == 2


def test_damage_before_the_place_stops_a_truncation_before_it_begins(tmp_path: Path) -> None:
    """Without the damaged batches the log would not know its producers and open transactions."""
    builder = LogBuilder(tmp_path, index_interval_bytes="1").append(count=3)
    builder.append().append()
    builder.leader_epoch = 2
    builder.produce(9, 0)
    damage(builder, 0, 0)
    log = builder.log
    with pytest.raises(ApiError, match=r"orders-0/0{20}\.log holds no valid batch at position 0"):
        log.truncate_to(5)
    assert (log.log_end_offset, log.epochs.entries()) == (6, [(0, 0), (2, 5)])
    assert 9 in log.producers.state.producers


def test_truncation_above_the_end_only_drops_epochs(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append()
    builder.log.assign_epoch_start(4, 1)
    builder.log.truncate_to(1)
    assert builder.log.epochs.entries() == [(0, 0)]
    assert builder.values() == [f"{0:<20}"]


def test_starting_over(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).roll().append()
    builder.produce(9, 0)
    log = builder.log
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (100, 100, 100)
    assert (log.epochs.entries(), list(log.producers.state)) == ([], [])
    assert builder.append().records()[0].offset == 100
    log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset, builder.bases()) == (50, 50, [50])


def test_the_last_stable_offset_waits_for_transactions(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.append()
    builder.produce(1, 0, is_transactional=True)
    log = builder.log
    assert (log.high_watermark, log.last_stable_offset) == (2, 1)
    builder.end_transaction(1, commit=False)
    assert (log.high_watermark, log.last_stable_offset) == (3, 3)
    assert log.segments.active.transaction_index.entries() == [(1, 1, 2, 3)]


def test_the_config_can_change(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.log.update_config(LogConfig(max_message_bytes=10))
    with pytest.raises(ApiError) as caught:
        builder.append()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_flush_messages(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, flush_messages="3").append().append()
    assert builder.log.recovery_point == 0
    builder.append()
    assert builder.log.recovery_point == 3


@pytest.mark.parametrize("descriptors", range(3))
def test_what_was_appended_is_flushed_without_a_descriptor(
    tmp_path: Path, descriptors: int
) -> None:
    """It was refused although it was in the log: its producer sent it again."""
    disk = ShortFileSystem(Disk())
    builder = LogBuilder(tmp_path, disk, flush_messages="1").append()  # type: ignore[arg-type]
    disk.descriptors_left = descriptors
    builder.append()
    assert builder.log.log_end_offset == builder.log.recovery_point == 2
    disk.descriptors_left = None


def test_segments_age_out_and_the_active_one_rolls_first(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, retention_ms="1000").append().roll().append()
    log = builder.log
    assert log.delete_old_segments(NOW_MS + 1000) == 0
    assert log.delete_old_segments(NOW_MS + 1001) == 1
    assert (log.log_start_offset, builder.bases()) == (1, [1])
    assert log.delete_old_segments(NOW_MS + 1002) == 1
    assert (log.log_start_offset, log.log_end_offset, builder.bases()) == (2, 2, [2])
    assert log.delete_old_segments(NOW_MS + 9999) == 0
    snapshots = [name for name in builder.files() if name.endswith(".snapshot")]
    assert snapshots == ["00000000000000000002.snapshot"]


def test_closing_twice_writes_once(tmp_path: Path) -> None:
    disk = FaultyFileSystem(Disk())
    builder = LogBuilder(tmp_path, disk).append()
    builder.log.close()
    before = disk.changes
    builder.log.close()
    assert disk.changes == before
    assert builder.files() == [
        "00000000000000000000.index", "00000000000000000000.log",
        "00000000000000000000.timeindex", "00000000000000000001.snapshot",
        "leader-epoch-checkpoint", "partition.metadata",
    ]  # fmt: skip


def test_a_failing_disk_names_directory_file_and_reason(tmp_path: Path) -> None:
    disk = FaultyFileSystem(Disk())
    builder = LogBuilder(tmp_path, disk).append()
    disk.fail_at, disk.for_good = disk.changes + 1, True
    for step in (builder.append, builder.roll, builder.log.flush, builder.log.close):
        with pytest.raises(LogDirFailure) as caught:
            step()
        assert caught.value.log_dir == str(tmp_path)
        assert f"{tmp_path}/orders-0" in str(caught.value)
        assert "[Errno 28] No space left on device" in str(caught.value)
    builder.log.abandon()


def starting_inside_a_batch(tmp_path: Path) -> LogBuilder:
    """Offsets 10 to 39 in batches of ten, one a segment, of an idempotent producer; start at 13."""
    builder = LogBuilder(tmp_path)
    for sequence in range(0, 40, 10):
        builder.produce(7, sequence, count=10)
        builder.roll()
    builder.log.maybe_increment_log_start_offset(13, "test")
    builder.log.delete_old_segments(NOW_MS)
    return builder


@pytest.mark.parametrize("clean", [True, False, None])
def test_a_log_may_start_inside_a_batch(tmp_path: Path, clean: bool | None) -> None:
    builder = starting_inside_a_batch(tmp_path)
    if clean is not None:
        builder.manager.checkpoint_all()
        builder.reopen(clean)
        builder.log.update_high_watermark(40)
    log = builder.log
    assert (log.log_start_offset, log.log_end_offset) == (13, 40)
    assert log.segments.first.base_offset == 10
    assert [r.offset for r in builder.records()] == list(range(13, 40))
    assert [
        header.base_offset for _, header in iter_headers(log.read(13, 1, 40, True).records)
    ] == [10]
    found = log.offset_for_timestamp(0, 40)
    assert found is not None
    assert found.offset == 13
    assert log.epochs.entries() == [(0, 13)]
    assert log.end_offset_for_epoch(0) == (0, 40)
    assert log.delete_old_segments(NOW_MS) == 0
    assert builder.produce(7, 30, count=10).duplicate
    assert not builder.produce(7, 40).duplicate
    builder.stop()
    assert verify_log_dir(builder.fs, builder.root) == []


@pytest.mark.parametrize("target", [13, 15, 10])
def test_truncation_inside_the_first_batch_leaves_no_half_of_it(
    tmp_path: Path, target: int
) -> None:
    builder = starting_inside_a_batch(tmp_path)
    log = builder.log
    log.truncate_to(target, NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (10, 10, 10)
    assert builder.records() == []
    builder.append(row())
    assert [r.offset for r in builder.records()] == [10]
