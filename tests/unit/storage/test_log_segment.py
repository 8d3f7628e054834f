"""One segment: index entries, roll rules, timestamps, truncation."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import kafkapy.storage.file_records
from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import BatchHeader, read_header
from kafkapy.record.builder import build_batch
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import RELATIVE_OFFSET_MAX, LogSegment, SegmentFiles
from tests.harness.cores.ports import NOW_MS
from tests.harness.plugins.closing import Disk
from tests.harness.storage.batches import flip, watched_bits
from tests.harness.storage.log_builder import row

CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=100)


class Segment:
    """A segment from offset 1000 on, and what is appended to it."""

    def __init__(self, path: Path, config: LogConfig = CONFIG, jitter_ms: int = 0) -> None:
        self.config = config
        self.pool = FilePool(Disk())
        self.path = path
        self.segment = LogSegment.create(self.pool, str(path), 1000, config, NOW_MS, jitter_ms)
        self.next = 1000

    def append(self, *timestamps: int, padding: int = 0) -> int:
        """A batch of records of these times; its position."""
        position = self.segment.size
        batch = build_batch(
            [row("k", "v" * padding, time) for time in timestamps], base_offset=self.next
        )
        last = self.next + len(timestamps) - 1
        self.segment.append(
            [batch], len(batch), self.next, last, max(timestamps), last,
            self.config.index_interval_bytes,
        )  # fmt: skip
        self.next = last + 1
        return position

    def reopen(self) -> LogSegment:
        name = f"{self.path}/00000000000000001000"
        sizes = [Path(f"{name}{suffix}").stat().st_size for suffix in (".log", ".index")]
        files = SegmentFiles(*sizes, Path(f"{name}.timeindex").stat().st_size)
        return LogSegment(self.pool, str(self.path), 1000, self.config, NOW_MS, 0, files)


def test_files_are_made_with_the_segment(tmp_path: Path) -> None:
    Segment(tmp_path)
    assert {p.name: p.stat().st_size for p in tmp_path.iterdir()} == {
        "00000000000000001000.log": 0,
        "00000000000000001000.index": 96,
        "00000000000000001000.timeindex": 96,
    }


def test_index_entries_name_the_end_of_a_set_and_where_it_begins(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    positions = [made.append(10 + i, 9, padding=40) for i in range(5)]
    size = positions[1]
    assert size > 100
    # No entry for the first set: nothing came before it. Then each set passes the interval.
    expected = [(1 + 2 * i, positions[i]) for i in range(1, 5)]
    assert made.segment.offset_index.all_entries() == expected
    assert made.segment.time_index.all_entries() == [(10 + i, 1 + 2 * i) for i in range(1, 5)]


def test_the_time_index_keeps_the_greatest_time_so_far(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    for time in (50, 90, 20, 30, 95):
        made.append(time, padding=120)
    assert made.segment.time_index.all_entries() == [(90, 1), (95, 4)]
    assert (made.segment.max_timestamp, made.segment.offset_of_max_timestamp) == (95, 1004)


def test_an_inactive_segment_is_trimmed_and_closed_by_a_time_entry(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    made.append(70)
    made.append(99)
    assert made.segment.become_inactive()
    assert not made.segment.become_inactive()
    assert (tmp_path / "00000000000000001000.index").read_bytes() == b""
    assert (tmp_path / "00000000000000001000.timeindex").read_bytes() == bytes.fromhex(
        "0000000000000063 00000001"
    )


def test_preallocated_segments_end_at_their_real_size(tmp_path: Path) -> None:
    made = Segment(tmp_path, LogConfig(segment_bytes=5000, preallocate=True))
    made.append(70)
    path = tmp_path / "00000000000000001000.log"
    assert path.stat().st_size == 5000
    made.segment.become_inactive()
    assert path.stat().st_size == made.segment.size < 5000


@pytest.mark.parametrize(
    ("config", "size", "timestamp", "last_offset", "now_ms", "rolls"),
    [
        (LogConfig(), 100, NOW_MS, 1002, NOW_MS, False),
        (LogConfig(segment_bytes=300), 100, NOW_MS, 1002, NOW_MS, False),
        (LogConfig(segment_bytes=300), 250, NOW_MS, 1002, NOW_MS, True),
        (LogConfig(segment_ms=1000), 1, NOW_MS + 1000, 1002, NOW_MS, False),
        (LogConfig(segment_ms=1000), 1, NOW_MS + 1001, 1002, NOW_MS, True),
        (LogConfig(segment_ms=1000), 1, NOW_MS, 1002, NOW_MS + 9999, False),
        (LogConfig(), 1, NOW_MS, 1000 + RELATIVE_OFFSET_MAX, NOW_MS, False),
        (LogConfig(), 1, NOW_MS, 1001 + RELATIVE_OFFSET_MAX, NOW_MS, True),
    ],
)
def test_roll_rules(
    tmp_path: Path,
    config: LogConfig,
    size: int,
    timestamp: int,
    last_offset: int,
    now_ms: int,
    rolls: bool,
) -> None:
    made = Segment(tmp_path)
    made.append(NOW_MS)
    assert made.segment.should_roll(size, timestamp, last_offset, now_ms, config) == rolls


def test_without_times_the_age_counts_from_creation_and_jitter_shortens_it(tmp_path: Path) -> None:
    made = Segment(tmp_path, jitter_ms=400)
    made.append(-1)
    config = LogConfig(segment_ms=1000)
    assert not made.segment.should_roll(1, -1, 1001, NOW_MS + 600, config)
    assert made.segment.should_roll(1, -1, 1001, NOW_MS + 601, config)


def test_an_empty_segment_does_not_roll_by_age(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    assert not made.segment.should_roll(1, NOW_MS, 1000, NOW_MS + 10**12, LogConfig(segment_ms=1))


@pytest.mark.parametrize(("step_ms", "entries"), [(0, 6), (1, 3)])
def test_a_full_index_rolls(tmp_path: Path, step_ms: int, entries: int) -> None:
    """48 bytes: six entries of the offset index, or four of the time index, the last one kept."""
    made = Segment(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    made.append(1)
    for i in range(entries):
        assert not made.segment.should_roll(1, 1, 1010, NOW_MS, CONFIG)
        made.append(2 + step_ms * i)
    assert made.segment.should_roll(1, 1, 1010, NOW_MS, CONFIG)


def test_times_are_found_again_after_reopening(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    for time in (50, 90, 20):
        made.append(time, time - 5, padding=100)
    made.segment.offset_index.write(trim=True)
    made.segment.time_index.write(trim=True)
    made.append(99)
    again = made.reopen()
    assert (again.max_timestamp, again.offset_of_max_timestamp) == (99, 1006)
    assert again.first_timestamp == 50
    assert again.next_offset() == 1007
    found = [again.find_by_timestamp(t, 0) for t in (0, 51, 86, 91)]
    assert [f.offset for f in found if f] == [1000, 1002, 1002, 1006]
    assert again.find_by_timestamp(86, 1003) == (99, 1006, -1)
    assert again.find_by_timestamp(100, 0) is None


def test_a_time_in_the_future_makes_no_first_append_after_a_restart_read_the_whole_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches behind it have no entry in the time index: 50 seconds for 1 GiB of them."""
    made = Segment(tmp_path, LogConfig(index_interval_bytes=1000))
    made.append(50)
    made.append(10**12, padding=1000)
    for _ in range(200):
        made.append(60, padding=30)
    made.segment.become_inactive()
    headers: list[int] = []

    def counted(buf: bytes, position: int = 0) -> BatchHeader:
        headers.append(position)
        return read_header(buf, position)

    monkeypatch.setattr(kafkapy.storage.file_records, "read_header", counted)
    again = made.reopen()
    assert (again.max_timestamp, again.offset_of_max_timestamp) == (10**12, 1001)
    assert len(headers) < 20


def test_a_flipped_bit_of_an_index_hides_no_record(tmp_path: Path) -> None:
    """Batches of equal size, so that a wrong position may be another batch's."""
    made = Segment(tmp_path)
    positions = [made.append(1, padding=58) for _ in range(16)]
    assert positions[1] == 128
    made.segment.become_inactive()
    path = tmp_path / "00000000000000001000.index"
    entries = path.read_bytes()
    assert len(entries) > 8
    for bit in range(8 * len(entries)):
        flip(path, bit)
        segment = made.reopen()
        found = [segment.find(1000 + i) for i in range(16)]
        assert [f and f[0] for f in found] == positions, bit
        flip(path, bit)


def test_a_flipped_bit_of_an_index_lowers_no_upper_bound(tmp_path: Path) -> None:
    """A read below it would lack aborted transactions."""
    made = Segment(tmp_path)
    positions = [made.append(1, padding=58) for _ in range(16)]
    made.segment.become_inactive()
    segment = made.reopen()
    assert [segment.offset_above(at) for at in positions[2:5]] == [1002, 1003, 1004]
    assert segment.offset_above(segment.size) is None
    path = tmp_path / "00000000000000001000.index"
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        segment = made.reopen()
        for i, at in enumerate(positions):
            found = segment.offset_above(at)
            assert found is None or found >= 1000 + i, bit
        flip(path, bit)


def test_a_flipped_bit_of_an_index_moves_no_truncation(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    positions = [made.append(1, padding=58) for _ in range(16)]
    made.segment.become_inactive()
    path = tmp_path / "00000000000000001000.index"
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        segment = made.reopen()
        found = [segment.end_below(1000 + i) for i in range(16)]
        assert found == [(at, 1000 + i) for i, at in enumerate(positions)], bit
        flip(path, bit)


@pytest.mark.parametrize("end", [1004, 1 << 40], ids=["truncated", "opened"])
def test_a_flipped_bit_of_a_batch_moves_no_end(tmp_path: Path, end: int) -> None:
    """Records appended behind a wrong end have the offsets of others, or leave a gap."""
    made = Segment(tmp_path)
    for time in (1, 2):
        made.append(time, 2)
    path = tmp_path / "00000000000000001000.log"
    for bit in watched_bits(path.read_bytes()):
        flip(path, bit)
        with suppress(ApiError):
            assert made.segment.end_below(end) == (made.segment.size, 1004), bit
        flip(path, bit)


def test_a_batch_with_damaged_records_is_no_damaged_end(tmp_path: Path) -> None:
    """Kafka keeps it too: the records before it would be dropped with it for one of its bytes."""
    made = Segment(tmp_path)
    made.append(1, 2)
    flip(tmp_path / "00000000000000001000.log", 8 * made.segment.size - 1)
    assert made.reopen().next_offset() == 1002


def test_a_flipped_bit_of_a_time_index_makes_no_segment_older(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    for time in range(NOW_MS, NOW_MS + 16):
        made.append(time, padding=60)
    made.segment.become_inactive()
    path = tmp_path / "00000000000000001000.timeindex"
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        segment = made.reopen()
        known = (segment.max_timestamp, segment.offset_of_max_timestamp)
        assert known == (NOW_MS + 15, 1015), bit
        flip(path, bit)


def test_truncation_drops_whole_batches_and_their_entries(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    positions = [made.append(10 * (i + 1), 5, padding=60) for i in range(4)]
    made.segment.truncate_to(1005, NOW_MS + 5)
    assert made.segment.size == positions[2]
    assert (tmp_path / "00000000000000001000.log").stat().st_size == positions[2]
    assert made.segment.offset_index.all_entries() == [(3, positions[1])]
    assert made.segment.max_timestamp == 20
    assert made.segment.find(1004) is None
    made.segment.truncate_to(0, NOW_MS + 5)
    assert (made.segment.size, made.segment.max_timestamp) == (0, -1)
    assert made.segment.created_ms == NOW_MS + 5


def test_locate_bounds_a_read(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    made.append(1)
    second = made.append(1)
    size = made.segment.size - second
    end = made.segment.size
    assert made.segment.locate(1001, 10_000, end, True) == (second, size, size)
    assert made.segment.locate(1000, second + 3, end, False) == (0, second + 3, second)
    assert made.segment.locate(1000, 3, end, True) == (0, second, second)
    assert made.segment.locate(1000, 10_000, second, True) == (0, second, second)
    assert made.segment.locate(1001, 10_000, 0, True) == (second, 0, size)
    assert made.segment.locate(1002, 10_000, end, True) is None


def test_the_suffix_changes_on_all_files(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    made.append(1)
    made.segment.change_suffix(OsFileSystem(), "", ".deleted")
    assert sorted(p.suffixes[-2:] for p in tmp_path.iterdir()) == [
        [".index", ".deleted"], [".log", ".deleted"], [".timeindex", ".deleted"],
    ]  # fmt: skip
    assert made.segment.find(1000) is not None


def test_modified_time_stands_in_for_missing_timestamps(tmp_path: Path) -> None:
    made = Segment(tmp_path)
    made.append(-1)
    OsFileSystem().set_modified(made.segment.records.path, 12345)
    assert made.segment.newest_ms() == 12345
    made.append(77)
    assert made.segment.newest_ms() == 77
