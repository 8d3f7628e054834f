"""The `.timeindex` of a segment: from a timestamp to an offset (Kafka's `TimeIndex`).

Entry: timestamp i64 (the greatest of the segment so far), relative offset i32 (the last offset of
the first batch that has it). Timestamps ascend strictly.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kafkapy.storage.index_file import IndexFile

NO_TIMESTAMP: Final = -1


class TimeIndex(IndexFile):
    """One slot is kept free for the closing entry, which a roll or a clean close adds."""

    __slots__ = ()
    _layout = Struct(">qi")

    @property
    def is_full(self) -> bool:
        return self.count >= self.max_entries - 1

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if self.count == 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.entry(-1)
        return timestamp, self.base_offset + relative

    def maybe_append(self, timestamp: int, offset: int, closing: bool = False) -> None:
        """Add an entry if it is later than the last one and there is room for it."""
        if self.count >= self.max_entries or (self.is_full and not closing):
            return
        if timestamp > self.last_entry[0]:
            self.add(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> int:
        """The offset of the last entry at or below `timestamp`; the base offset if none is."""
        n = self.search(0, timestamp)
        return self.base_offset + int(self.entry(n - 1)[1]) if n else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose offset is at or above `offset`."""
        self.truncate_to_entries(self.search(1, offset - self.base_offset - 1))

    def is_sane(self) -> bool:
        """Whether the last entry is plausible. Zeros are more likely a lost write, unless they are
        the only entry: timestamps ascend.
        """
        if self.count == 0:
            return True
        timestamp, relative = self.entry(-1)
        return bool((timestamp > 0 or (timestamp == 0 and self.count == 1)) and relative >= 0)
