"""Base of the offset and the time index: fixed-size entries (Kafka's `AbstractIndex`).

The index of an active segment is kept in memory and reaches its preallocated (sparse) file on
`write`; recovery rebuilds it after a crash. The index of a closed segment keeps no memory and no
descriptor: look-ups search the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from struct import Struct

from kafkapy.storage.filesystem import FileSystem


class IndexFile:
    """Entries in ascending order: `count` of them, at most `max_entries`."""

    __slots__ = ("_entries", "_written_count", "base_offset", "count", "fs", "max_entries", "path")
    _layout: Struct

    def __init__(
        self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, file_size: int
    ) -> None:
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_bytes // self._layout.size
        self.count = file_size // self._layout.size
        self._written_count = self.count
        self._entries: bytearray | None = None

    def create(self) -> None:
        """Create the file, empty and preallocated. An existing file is emptied."""
        self.count = self._written_count = 0
        self._entries = bytearray()
        file = self.fs.open(self.path, create=True)
        try:
            file.truncate(0)
            file.truncate(self.max_entries * self._layout.size)
        finally:
            file.close()

    @property
    def byte_size(self) -> int:
        """The size of the entries in bytes."""
        return self.count * self._layout.size

    def entry(self, i: int) -> tuple[int, ...]:
        """The fields of entry `i`; negative counts from the end."""
        i = i if i >= 0 else self.count + i
        if self._entries is not None:
            return self._layout.unpack_from(self._entries, i * self._layout.size)
        size = self._layout.size
        file = self.fs.open(self.path)
        try:
            return self._layout.unpack(file.pread(size, i * size))
        finally:
            file.close()

    def search(self, field: int, target: int) -> int:
        """The number of entries with `field` at or below `target` (entries ascend by it)."""
        if self.count == 0:
            return 0
        if self._entries is not None:
            entries = self._entries
            if self._layout.unpack_from(entries, len(entries) - self._layout.size)[field] <= target:
                return self.count
            return self._bisect(field, target, entries.__getitem__)
        file = self.fs.open(self.path)
        try:
            return self._bisect(field, target, lambda s: file.pread(s.stop - s.start, s.start))
        finally:
            file.close()

    def _bisect(
        self, field: int, target: int, read: Callable[[slice[int, int, int]], bytes | bytearray]
    ) -> int:
        unpack, size = self._layout.unpack, self._layout.size
        return bisect_right(
            range(self.count),
            target,
            key=lambda i: unpack(read(slice(i * size, (i + 1) * size)))[field],
        )

    def add(self, *fields: int) -> None:
        """Append an entry; the caller has checked that it ascends and fits."""
        self.load()
        assert self._entries is not None
        self._entries += self._layout.pack(*fields)
        self.count += 1

    def load(self) -> None:
        """Load the entries into memory, so that `add` needs no file."""
        if self._entries is None:
            self._entries = self._load()

    def _load(self) -> bytearray:
        file = self.fs.open(self.path)
        try:
            return bytearray(file.pread(self.count * self._layout.size, 0))
        finally:
            file.close()

    def truncate_to_entries(self, count: int) -> None:
        """Drop every entry from number `count` on."""
        if count >= self.count:
            return
        if self._entries is None:
            self._entries = self._load()
        del self._entries[count * self._layout.size :]
        self.count = count
        self._written_count = min(self._written_count, count)

    def write(self, trim: bool = False) -> None:
        """Write the entries to the file. `trim` also truncates it to them, and frees the memory.

        Raises:
            OSError: the file is incomplete; recovery rebuilds it.
        """
        size = self._layout.size
        if self._entries is not None or trim:
            file = self.fs.open(self.path, create=True)
            try:
                if self._entries is not None and self._written_count < self.count:
                    file.pwritev(
                        [self._entries[self._written_count * size :]], self._written_count * size
                    )
                if trim:
                    file.truncate(self.count * size)
            finally:
                file.close()
            self._written_count = self.count
        if trim:
            self._entries = None

    def all_entries(self) -> list[tuple[int, ...]]:
        """Every entry, for verification."""
        return list(self._layout.iter_unpack(self._entries or self._load()))
