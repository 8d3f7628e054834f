"""Segments in order."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment, SegmentFiles
from kafkapy.storage.log_segments import LogSegments


def segment(base_offset: int, size: int = 10) -> LogSegment:
    pool = FilePool(OsFileSystem())
    return LogSegment(pool, "/none", base_offset, LogConfig(), 0, 0, SegmentFiles(size))


def bases(found: list[LogSegment]) -> list[int]:
    return [s.base_offset for s in found]


def test_order_and_neighbours(tmp_path: Path) -> None:
    segments = LogSegments()
    for base in (50, 0, 20):
        segments.add(segment(base))
    assert bases(list(segments)) == [0, 20, 50]
    assert (segments.first.base_offset, segments.active.base_offset) == (0, 50)
    assert [segments.floor_index(o) for o in (-1, 0, 19, 20, 49, 50, 99)] == [-1, 0, 0, 1, 1, 2, 2]
    assert bases(segments.from_offset(30)) == [20, 50]
    assert bases(segments.from_offset(-5)) == [0, 20, 50]
    assert bases(segments.above(20)) == [50]
    assert segments.get(20) is segments[1]
    assert segments.get(21) is None
    assert segments.total_bytes() == 30


def test_replace_and_remove() -> None:
    segments = LogSegments()
    for base in (0, 20):
        segments.add(segment(base))
    newer = segment(20, 99)
    segments.add(newer)
    assert (len(segments), segments.active) == (2, newer)
    segments.remove(20)
    segments.remove(20)
    assert segments.active is segments.first
    segments.remove(0)
    assert len(segments) == 0
