"""The `.index` of a segment: from an offset to a file position (Kafka's `OffsetIndex`).

Entry: relative offset i32 (the last offset of an appended set), position i32 (where that set
begins).
"""

from __future__ import annotations

from struct import Struct

from kafkapy.storage.index_file import IndexFile


class OffsetIndex(IndexFile):
    """Entries ascend strictly by offset."""

    __slots__ = ()
    _layout = Struct(">ii")

    @property
    def is_full(self) -> bool:
        return self.count >= self.max_entries

    def append(self, offset: int, position: int) -> None:
        """Record that the set that ends with `offset` begins at `position`."""
        self.add(offset - self.base_offset, position)

    def lookup(self, offset: int) -> int:
        """The greatest known position at or before the batch that holds `offset`; 0 if none is."""
        n = self.search(0, offset - self.base_offset)
        return int(self.entry(n - 1)[1]) if n else 0

    def lookup_position(self, position: int) -> int:
        """The greatest known position at or before `position`; 0 if none is."""
        n = self.search(1, position)
        return int(self.entry(n - 1)[1]) if n else 0

    def set_from(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the first known set that begins at or after `position`."""
        n = self.search(1, position - 1)
        if n == self.count:
            return None
        relative, at = self.entry(n)
        return self.base_offset + relative, at

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose offset is at or above `offset`."""
        self.truncate_to_entries(self.search(0, offset - self.base_offset - 1))

    def is_sane(self, log_size: int) -> bool:
        """Whether the last entry is plausible: it has no zeros, since a segment's first set has no
        entry.
        """
        if self.count == 0:
            return True
        offset, position = self.entry(-1)
        return bool(offset > 0 and 0 < position < log_size)
