"""Reading a segment again: what is valid, and its indexes as recovery makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.record.builder import build_batch
from kafkapy.storage.segment_recovery import ValidBatches, has_sane_indexes, recover_segment
from tests.harness.cores.call_counts import calls
from tests.harness.storage.log_builder import LogBuilder, row

LOG = "00000000000000000000.log"


def damaged(tmp_path: Path, position: int, data: bytes) -> LogBuilder:
    builder = LogBuilder(tmp_path)
    for _ in range(5):
        builder.append(count=2)
    with builder.path(LOG).open("r+b") as file:
        file.seek(position)
        file.write(data)
    return builder


def one_size(tmp_path: Path) -> int:
    return LogBuilder(tmp_path / "one").append(count=2).log.size_bytes


@pytest.mark.parametrize(
    ("at", "data", "why"),
    [
        (60, b"\xff", "crc"),
        (8, bytes(4), "length"),
        (8, b"\x7f\xff\xff\xff", "cut off"),
        (16, b"\x09", "magic"),
        (0, b"\x00\x00\x00\x01", "cannot be in the segment"),
        (7, b"\x01", "comes after"),
    ],
)
def test_each_kind_of_damage_ends_the_valid_part(
    tmp_path: Path, at: int, data: bytes, why: str
) -> None:
    size = one_size(tmp_path)
    builder = damaged(tmp_path / "d", 2 * size + at, data)
    found = recover_segment(builder.log.segments.active, 4096)
    assert (found.valid_bytes, found.next_offset) == (2 * size, 4)
    assert why in found.damage


def test_indexes_are_made_by_batch(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="200", segment_index_bytes="1200")
    for _ in range(8):
        builder.append(count=2)
    segment = builder.log.segments.active
    recover_segment(segment, 200)
    expected = []
    indexed = 0
    for position, header in segment.records.headers():
        if position - indexed > 200:
            expected.append((header.last_offset, position))
            indexed = position
    assert segment.offset_index.all_entries() == expected
    assert len(expected) >= 3
    assert len(segment.time_index.all_entries()) == len(expected)


def test_valid_batches_say_how_far_they_got(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).append(count=1)
    scan = ValidBatches(builder.log.segments.active)
    assert [header.base_offset for _, header, _ in scan] == [0, 3]
    assert (scan.position, scan.next_offset, scan.damage) == (builder.log.size_bytes, 4, "")


def test_soundness(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, index_interval_bytes="0").append().append().roll()
    segment = builder.log.segments.first
    assert has_sane_indexes(segment, True, True)
    assert not has_sane_indexes(segment, False, True)
    assert not has_sane_indexes(segment, True, False)
    index = builder.path("00000000000000000000.index")
    index.write_bytes(bytes(index.stat().st_size))
    assert not has_sane_indexes(segment, True, True)


def test_a_segment_of_one_old_set_recovers(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    batch = build_batch([row()], base_offset=0)
    builder.log.append_as_follower(batch, 0)
    found = recover_segment(builder.log.segments.active, 4096, builder.log.epochs)
    assert found == (len(batch), 1, "")
    assert builder.log.epochs.entries() == []


@pytest.mark.parametrize("timestamp", [0, 1])
def test_records_without_a_time_are_not_read_at_each_clean_start(
    tmp_path: Path, timestamp: int
) -> None:
    """Every segment whose records have the timestamp 0 was read completely."""
    builder = LogBuilder(tmp_path, index_interval_bytes="100")
    for _ in range(50):
        builder.append(row("k", "v" * 50, timestamp))
    builder.roll().append().stop()
    counted = calls(builder.open)
    assert counted["read_header"] < 20
    assert builder.log.segments[0].time_index.all_entries() == [(timestamp, 0)]


def test_a_lost_time_index_of_one_entry_is_rebuilt(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(row()).roll().append().stop()
    path = builder.path("00000000000000000000.timeindex")
    written = path.read_bytes()
    path.write_bytes(bytes(12))
    builder.open()
    assert path.read_bytes() == written
