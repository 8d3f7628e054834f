"""The `.txnindex` of a segment: its aborted transactions (Kafka's `TransactionIndex`).

The first entry creates the file; most segments never have one.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.filesystem import FileSystem, read_file

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0
_LAST_OFFSET: Final = attrgetter("last_offset")


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
    """Entries in the order of their markers, read from the file on first use."""

    __slots__ = ("_entries", "base_offset", "fs", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, file_size: int) -> None:
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = None if file_size else []

    def entries(self) -> list[AbortedTransaction]:
        """All entries.

        Raises:
            ApiError: CORRUPT_MESSAGE if the file has another format.
        """
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _load(self) -> list[AbortedTransaction]:
        data = read_file(self.fs, self.path)
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
        entries = self.entries()
        file = self.fs.open(self.path, create=True)
        try:
            file.pwritev([_ENTRY.pack(_VERSION, *entry)], len(entries) * _ENTRY.size)
        finally:
            file.close()
        entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker is at or above `offset`."""
        entries = self.entries()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self._truncate(len(kept))
            self._entries = kept

    def reset(self) -> None:
        """Drop every entry, also if the file is corrupt."""
        if self._entries != []:
            self._truncate(0)
            self._entries = []

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

    def collect(self, fetch_offset: int, upper: int) -> tuple[list[AbortedTransaction], bool]:
        """The entries that overlap [fetch_offset, upper), and whether later segments have no
        more.
        """
        found: list[AbortedTransaction] = []
        entries = self.entries()
        for i in range(bisect_left(entries, fetch_offset, key=_LAST_OFFSET), len(entries)):
            entry = entries[i]
            if entry.first_offset < upper:
                found.append(entry)
            if entry.last_stable_offset >= upper:
                return found, True
        return found, False
