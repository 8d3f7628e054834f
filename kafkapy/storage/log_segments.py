"""The segments of one log in order of base offset (Kafka's `LogSegments`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kafkapy.storage.log_segment import LogSegment


class LogSegments:
    """The segments of a log, never empty after loading. The last one is the active segment."""

    __slots__ = ("_bases", "_segments", "active")

    active: LogSegment

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[LogSegment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __getitem__(self, i: int) -> LogSegment:
        return self._segments[i]

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    def add(self, segment: LogSegment) -> None:
        """Insert a segment, replacing one of the same base offset."""
        i = bisect_left(self._bases, segment.base_offset)
        if i < len(self._bases) and self._bases[i] == segment.base_offset:
            self._segments[i] = segment
        else:
            self._bases.insert(i, segment.base_offset)
            self._segments.insert(i, segment)
        self.active = self._segments[-1]

    def remove(self, base_offset: int) -> None:
        """Remove a segment, if it is there."""
        i = bisect_left(self._bases, base_offset)
        if i < len(self._bases) and self._bases[i] == base_offset:
            del self._bases[i], self._segments[i]
        if self._segments:
            self.active = self._segments[-1]

    def get(self, base_offset: int) -> LogSegment | None:
        """The segment that begins exactly at `base_offset`."""
        i = bisect_left(self._bases, base_offset)
        found = i < len(self._bases) and self._bases[i] == base_offset
        return self._segments[i] if found else None

    def floor_index(self, offset: int) -> int:
        """The index of the segment that contains `offset`; -1 before the first."""
        return bisect_right(self._bases, offset) - 1

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segment that contains `offset`, and all after it."""
        return self._segments[max(self.floor_index(offset), 0) :]

    def above(self, offset: int) -> list[LogSegment]:
        """The segments whose base offset is greater than `offset`."""
        return self._segments[bisect_right(self._bases, offset) :]

    def total_bytes(self) -> int:
        return sum(segment.records.size for segment in self._segments)
