"""Searches of a log by time that do not block the event loop: ListOffsets, and share groups that
begin by duration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kafkapy.record.batch_header import CODEC_MASK, HEADER_SIZE, iter_headers
from kafkapy.server.requests.turns import Work, run_in_thread
from kafkapy.storage.log_segment import TimestampOffset, first_record_of_batch, may_have_record

if TYPE_CHECKING:
    from kafkapy.storage.file_records import FileRecords
    from kafkapy.storage.unified_log import UnifiedLog

R = TypeVar("R")

_BRIEF_BYTES: Final = 4096
"""The bytes of headers and uncompressed batches that a search reads in the event loop."""
_PIECE_BYTES: Final = 1 << 18
"""The bytes that a search reads for the other thread at a time, or one batch."""
_BYTES_A_UNIT: Final = 4


def search_in_turns(find: Callable[[TimeSearch], R]) -> Work[R]:
    """The result of `find`. It is called again when another thread has searched a piece. Each time
    it looks up the log and begins the search with it: the replica may be deleted, or moved to
    another directory, while a thread searches.
    """
    search = TimeSearch()
    while True:
        try:
            result = find(search)
            break
        except _TakesLong as long:
            search.found, search.start_offset = yield from run_in_thread(long.search, may_drop=True)
    yield search.units
    return result


class _TakesLong(Exception):
    """A piece of a segment that another thread must search, because the search would block the
    event loop. `search` returns the record, if any, and the offset at which to continue.
    """

    def __init__(self, search: Callable[[], tuple[TimestampOffset | None, int]]) -> None:
        super().__init__()
        self.search = search


class TimeSearch:
    """A search by time. It reads few bytes in the event loop, and continues from `start_offset`
    after another thread has searched a piece.

    Batches that decompress to 500,000 records took a second. A batch that claims a later timestamp
    than its records have made the search read all later headers of its segment: up to 50 seconds.
    """

    def __init__(self) -> None:
        self.found: TimestampOffset | None = None
        self.start_offset = 0
        self._log_state: tuple[UnifiedLog, int] | None = None
        self._bytes_left = _BRIEF_BYTES

    @property
    def units(self) -> int:
        """The cost of the search in the event loop since `begin`."""
        return (_BRIEF_BYTES - self._bytes_left) // _BYTES_A_UNIT

    def begin(self, log: UnifiedLog) -> None:
        """Begin a turn of the event loop. If the offsets may have other records than in the turn
        before, the search begins again.
        """
        state = log, log.local.truncation_count
        if state != self._log_state:
            self._log_state, self.found, self.start_offset = state, None, 0
        self._bytes_left = _BRIEF_BYTES

    def __call__(
        self, records: FileRecords, position: int, timestamp: int, start_offset: int
    ) -> TimestampOffset | None:
        """
        Raises:
            _TakesLong: another thread must search a piece. The caller stores the result.
        """
        for at, header in records.headers(position):
            if may_have_record(header, timestamp, start_offset):
                if header.attributes & CODEC_MASK or header.size > self._bytes_left:
                    raise _takes_long(records, at, header.size, timestamp, start_offset)
                self._bytes_left -= header.size
                batch = records.read(at, header.size)
                found = first_record_of_batch(batch, header, timestamp, start_offset)
                if found is not None:
                    return found
            self._bytes_left -= HEADER_SIZE
            start_offset = max(start_offset, header.next_offset)  # damage must not make it endless
            if self._bytes_left <= 0:
                raise _takes_long(records, at + header.size, 0, timestamp, start_offset)
        return None


def _takes_long(
    records: FileRecords, position: int, size_min: int, timestamp: int, start_offset: int
) -> _TakesLong:
    size = min(max(size_min, _PIECE_BYTES), records.size - position)
    return _TakesLong(partial(_search, records.read(position, size), timestamp, start_offset))


def _search(piece: bytes, timestamp: int, start_offset: int) -> tuple[TimestampOffset | None, int]:
    """Search the whole batches of a piece, or up to the first one that must be decompressed."""
    for at, header in iter_headers(piece):
        next_offset = max(start_offset, header.next_offset)
        if may_have_record(header, timestamp, start_offset):
            found = first_record_of_batch(piece, header, timestamp, start_offset, at)
            if found is not None or header.attributes & CODEC_MASK:
                return found, next_offset
        start_offset = next_offset
    return None, start_offset
