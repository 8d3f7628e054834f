"""Segments of a partition: roll, truncate, delete, replace, flush."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from kafkapy.record.batch_header import iter_headers
from kafkapy.storage import local_log
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.log_offset import LogOffsetMetadata
from tests.harness.cores.ports import NOW_MS
from tests.harness.plugins.closing import Disk
from tests.harness.storage.log_builder import LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem


def test_offset_metadata_in_batches_gaps_and_at_the_end(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=2).append(count=2)
    local = builder.log.local
    size = local.segments.active.size
    assert local.offset_metadata(1) == LogOffsetMetadata(1, 0, 0)
    assert local.offset_metadata(3) == LogOffsetMetadata(3, 0, size // 2)
    assert local.offset_metadata(4) == local.end_metadata() == LogOffsetMetadata(4, 0, size)
    builder.log.truncate_to(3)
    builder.append()
    assert local.offset_metadata(2) == LogOffsetMetadata(2, 0, size // 2)


def test_a_cut_in_the_middle_of_a_batch_leaves_no_hole(tmp_path: Path) -> None:
    """A follower of this log would wait for ever for what is not there."""
    builder = LogBuilder(tmp_path).append(count=4).append(count=4)
    log = builder.log
    log.update_high_watermark(8)
    log.assign_epoch_start(7, 5)
    log.truncate_to(6)
    assert (log.log_end_offset, log.high_watermark, log.local.recovery_point) == (4, 4, 0)
    assert log.epochs.entries() == [(0, 0)]
    builder.roll()
    assert builder.bases() == [0, 4]
    builder.append()
    assert [r.offset for r in builder.records()] == [0, 1, 2, 3, 4]


def test_an_empty_active_segment_is_replaced(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).roll().append().roll().roll()
    assert builder.bases() == [0, 1]
    assert len([name for name in builder.files() if name.endswith(".log")]) == 2


@pytest.mark.parametrize("left", range(3))
def test_an_empty_active_segment_stays_without_descriptors_for_another(
    tmp_path: Path, left: int
) -> None:
    """A log without segments would fail its directory when it is next looked at."""
    fs = ShortFileSystem(Disk())
    builder = LogBuilder(tmp_path, fs)
    builder.log.local.close_handles()
    fs.descriptors_left = left
    with suppress(StorageShortage):
        builder.roll()
    fs.descriptors_left = None
    builder.log.check_descriptors()
    assert builder.bases() == [0]
    assert builder.append().reopen().values() == [f"{0:<20}"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("left", range(3))
def test_a_segment_that_cannot_be_created_leaves_no_file(
    tmp_path: Path, left: int, clean: bool
) -> None:
    """The next batch may fit into the old segment, and go beyond the offset of the file's name:
    after a restart it would be hidden, or with all after it be cut off."""
    fs = ShortFileSystem(Disk())
    builder = LogBuilder(tmp_path, fs, segment_bytes="400").append(value_bytes=200)
    fs.descriptors_left = left
    with suppress(StorageShortage):
        builder.append(value_bytes=200)
    fs.descriptors_left = None
    builder.append().append(value_bytes=200).append()
    values = builder.values()
    assert builder.reopen(clean).values() == values
    read = builder.log.read(1, 1000, builder.log.log_end_offset, True).records
    assert next(iter_headers(read))[1].base_offset == 1
    assert len(values) == builder.log.log_end_offset


def test_jitter_is_taken_from_chance(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, segment_jitter_ms="1000", segment_ms="500")
    for _ in range(20):
        builder.append().roll()
    jitters = {segment.jitter_ms for segment in builder.log.segments}
    assert len(jitters) > 5
    assert all(0 <= jitter < 500 for jitter in jitters)


def test_deleted_segments_are_renamed_and_removed_later(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, file_delete_delay_ms="100").append().roll().append()
    builder.log.maybe_increment_log_start_offset(1, "test")
    assert builder.log.delete_old_segments(NOW_MS) == 1
    deleted = [name for name in builder.files() if name.endswith(".deleted")]
    assert [name.partition(".")[2] for name in deleted] == [
        "index.deleted", "log.deleted", "timeindex.deleted",
    ]  # fmt: skip
    assert sum(builder.manager.deletion_slices(NOW_MS + 99)) == 0
    assert sum(builder.manager.deletion_slices(NOW_MS + 100)) == 4
    assert not any(name.endswith(".deleted") for name in builder.files())


def test_flush_moves_the_recovery_point_past_what_it_forced(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append().roll().append()
    log = builder.log
    handle = log.flush_handle()
    builder.append()
    log.run_flush(handle)
    assert (log.recovery_point, log.log_end_offset) == (0, 3)
    log.mark_flushed(handle, NOW_MS + 7)
    assert (log.recovery_point, log.last_flush_ms) == (2, NOW_MS + 7)
    assert log.local.unflushed_segments == []


def test_a_flush_of_many_segments_advances_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log with more unflushed segments than descriptors was never flushed again."""
    monkeypatch.setattr(local_log, "SEGMENTS_PER_FLUSH", 3)
    builder = LogBuilder(tmp_path)
    for _ in range(7):
        builder.append().roll()
    log = builder.append().log
    points = []
    while log.local.unflushed_segments:
        handle = log.flush_handle()
        assert handle.file_count <= 3 * 4
        log.run_flush(handle)
        log.mark_flushed(handle, NOW_MS)
        points.append(log.recovery_point)
    assert points == [3, 6, 8]
    assert log.producers.unflushed == []


def test_a_segment_that_is_closed_during_a_flush_waits_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery must read it, although the flush had its batches."""
    monkeypatch.setattr(local_log, "SEGMENTS_PER_FLUSH", 2)
    builder = LogBuilder(tmp_path)
    for _ in range(3):
        builder.append().roll()
    log = builder.append().log
    handle = log.flush_handle()
    log.truncate_to(4)
    builder.roll().append()
    log.run_flush(handle)
    log.mark_flushed(handle, NOW_MS)
    assert log.recovery_point == 2
    log.run_flush(handle := log.flush_handle())
    builder.roll().append()
    log.mark_flushed(handle, NOW_MS)
    assert log.recovery_point == 4


def test_the_files_of_a_flush_take_the_descriptors_of_segments(tmp_path: Path) -> None:
    disk = ShortFileSystem(Disk())
    builder = LogBuilder(tmp_path, disk)
    for _ in range(3):
        builder.append().roll()
    log = builder.append().log
    for segment in log.segments:
        segment.records.handle()
    files = log.flush_handle()
    files.fsync()
    disk.descriptors_left = files.file_count - len(log.segments)
    log.run_flush(log.flush_handle())


def test_a_flush_from_before_a_truncation_proves_nothing(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append().append().append()
    handle = builder.log.flush_handle()
    builder.log.truncate_to(1)
    builder.append().append()
    builder.log.run_flush(handle)
    builder.log.mark_flushed(handle, NOW_MS)
    assert builder.log.recovery_point == 0


def test_a_read_stops_at_a_bound_in_an_earlier_segment(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append().append().roll().append(row(), row())
    local = builder.log.local
    end = local.offset_metadata(1)
    found = local.read(0, 10_000, end, True)
    assert found is not None
    assert [h.base_offset for _, h in iter_headers(found.records)] == [0]
    assert found.end_offset == 2
    assert local.read(2, 10_000, end, True) is None
