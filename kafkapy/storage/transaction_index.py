"""The `.txnindex` of a segment: its aborted transactions (Kafka's `TransactionIndex`).

The first entry creates the file; most segments never have one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.filesystem import FileSystem, read_file

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0
_ENTRIES_PER_READ: Final = 100


class AbortedTransaction(NamedTuple):
    """A transaction that ended with an ABORT marker at `last_offset`.

    `last_stable_offset` is the LSO when the marker was written: no earlier transaction was open
    then, so a reader up to that offset need not read later entries.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Entries in the order of their markers.

    After an append, those of the active segment are kept in memory. Those of a closed segment are
    not: look-ups search the file.
    """

    __slots__ = ("_data", "base_offset", "fs", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, file_size: int) -> None:
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self._data: bytearray | None = None if file_size else bytearray()  # None: see the file

    @property
    def is_empty(self) -> bool:
        """Whether it has no entry."""
        return self._data is not None and not self._data

    def entries(self) -> list[AbortedTransaction]:
        """All entries.

        Raises:
            ApiError: CORRUPT_MESSAGE if the file has another format.
        """
        return self._parse(read_file(self.fs, self.path) if self._data is None else self._data)

    def _parse(self, data: bytes | bytearray) -> list[AbortedTransaction]:
        if len(data) % _ENTRY.size:
            raise self._corrupt(f"its size {len(data)} is not a multiple of {_ENTRY.size}")
        found: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version < _VERSION or entry.last_offset < self.base_offset:
                raise self._corrupt(f"it has the entry {entry} of version {version}")
            found.append(entry)
        return found

    def _corrupt(self, reason: str) -> ApiError:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{self.path} is corrupt: {reason}")

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry, and write it to the file at once."""
        data = self._data
        if data is None:
            data = bytearray(read_file(self.fs, self.path))
            self._parse(data)
        row = _ENTRY.pack(_VERSION, *entry)
        file = self.fs.open(self.path, create=True)
        try:
            file.pwritev([row], len(data))
        finally:
            file.close()
        data += row
        self._data = data

    def release(self) -> None:
        """Free the memory of the entries, because the segment is closed."""
        if self._data:
            self._data = None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker is at or above `offset`."""
        entries = self.entries()
        count = sum(entry.last_offset < offset for entry in entries)
        if count < len(entries):
            self._truncate(count)

    def reset(self) -> None:
        """Drop every entry, also if the file is corrupt."""
        if self._data is None or self._data:
            self._truncate(0)

    def is_sane(self) -> bool:
        """Whether every entry is readable and belongs here."""
        try:
            self.entries()
        except ApiError:
            return False
        return True

    def _truncate(self, count: int) -> None:
        file = self.fs.open(self.path)
        try:
            file.truncate(count * _ENTRY.size)
        finally:
            file.close()
        if self._data is not None:
            del self._data[count * _ENTRY.size :]
        elif count == 0:
            self._data = bytearray()

    def collect(self, fetch_offset: int, upper: int) -> tuple[list[AbortedTransaction], bool]:
        """The entries that overlap [fetch_offset, upper), and whether later segments have no
        more.
        """
        data = self._data
        if data is not None:
            return self._collect(fetch_offset, upper, len(data), lambda at: data[at])
        file = self.fs.open(self.path)
        try:

            def read(at: slice[int, int, int]) -> bytes:
                return file.pread(at.stop - at.start, at.start)

            return self._collect(fetch_offset, upper, file.size(), read)
        finally:
            file.close()

    def _collect(
        self,
        fetch_offset: int,
        upper: int,
        size: int,
        read: Callable[[slice[int, int, int]], bytes | bytearray],
    ) -> tuple[list[AbortedTransaction], bool]:
        found: list[AbortedTransaction] = []
        starts = range(0, size, _ENTRY.size)
        first = bisect_left(
            starts,
            fetch_offset,
            key=lambda at: self._parse(read(slice(at, at + _ENTRY.size)))[0].last_offset,
        )
        for i in range(first, len(starts), _ENTRIES_PER_READ):
            at = starts[i]
            for entry in self._parse(
                read(slice(at, min(at + _ENTRIES_PER_READ * _ENTRY.size, size)))
            ):
                if entry.first_offset < upper:
                    found.append(entry)
                if entry.last_stable_offset >= upper:
                    return found, True
        return found, False
