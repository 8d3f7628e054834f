"""One segment: a `.log` with its three indexes (Kafka's `LogSegment`). Hot file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import NO_TIMESTAMP, BatchHeader, Buffer
from kafkapy.record.records import batch_records
from kafkapy.storage import log_names
from kafkapy.storage.file_records import FilePool, FileRecords
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.offset_index import OffsetIndex
from kafkapy.storage.time_index import TimeIndex
from kafkapy.storage.transaction_index import TransactionIndex

logger = logging.getLogger("kafka.log.LogSegment")

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_RECENT_BATCHES_MAX: Final = 16
_ABOVE_ALL_OFFSETS: Final = 1 << 63


class SegmentFiles(NamedTuple):
    """The sizes in bytes of a segment's files; None for a file that does not exist."""

    log: int
    offset_index: int | None = None
    time_index: int | None = None
    transaction_index: int | None = None

    @classmethod
    def of(cls, sizes: Sequence[int | None]) -> SegmentFiles:
        """Sizes in the order of `log_names.SEGMENT_SUFFIXES`; a missing log counts as empty."""
        log, offset_index, time_index, transaction_index = sizes
        return cls(log or 0, offset_index, time_index, transaction_index)


class TimestampOffset(NamedTuple):
    """A record found by time. `leader_epoch` is -1 if its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


class Slice(NamedTuple):
    """The part of a segment for a read: `size` bytes from `position`. `first_batch_size` is the
    size of its first batch.
    """

    position: int
    size: int
    first_batch_size: int


Search = Callable[[FileRecords, int, int, int], TimestampOffset | None]
"""Finds a record in the batches of a segment from a position on, as `first_record` does."""


def first_record(
    records: FileRecords, position: int, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`."""
    for at, header in records.headers(position):
        if may_have_record(header, timestamp, start_offset):
            batch = records.read(at, header.size)
            found = first_record_of_batch(batch, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def may_have_record(header: BatchHeader, timestamp: int, start_offset: int) -> bool:
    """Whether the header of a batch promises a record for a search. The timestamp in it is the
    client's, and may be wrong.
    """
    return header.max_timestamp >= timestamp and header.last_offset >= start_offset


def first_record_of_batch(
    buf: bytes, header: BatchHeader, timestamp: int, start_offset: int, position: int = 0
) -> TimestampOffset | None:
    """As `first_record`, for the batch at `position` of `buf`."""
    for record in batch_records(buf, header, position):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


class LogSegment:
    """Batches from `base_offset` on.

    `first_timestamp` (the first batch's greatest, from which the segment's age counts) and the
    greatest timestamp are read from the files on first use.
    """

    __slots__ = (
        "_dirty",
        "_first_timestamp",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_recent_batches",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "jitter_ms",
        "offset_index",
        "path",
        "records",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        pool: FilePool,
        directory: str,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
        jitter_ms: int,
        files: SegmentFiles,
        state_suffix: str = "",
    ) -> None:
        fs = pool.fs
        self.path = f"{directory}/{log_names.offset_file_name(base_offset, '')}"
        self.base_offset = base_offset
        self.records = FileRecords(pool, self.path + log_names.LOG_SUFFIX + state_suffix, files.log)
        self.offset_index = OffsetIndex(
            fs, self.path + log_names.INDEX_SUFFIX + state_suffix, base_offset,
            config.segment_index_bytes, files.offset_index or 0,
        )  # fmt: skip
        self.time_index = TimeIndex(
            fs, self.path + log_names.TIME_INDEX_SUFFIX + state_suffix, base_offset,
            config.segment_index_bytes, files.time_index or 0,
        )  # fmt: skip
        self.transaction_index = TransactionIndex(
            fs, self.path + log_names.TRANSACTION_INDEX_SUFFIX + state_suffix, base_offset,
            files.transaction_index or 0,
        )  # fmt: skip
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.bytes_since_index_entry = 0
        self._dirty = False
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        # Position and size by base offset of the last few batches, for tail readers.
        self._recent_batches: dict[int, tuple[int, int]] = {}

    @classmethod
    def create(
        cls,
        pool: FilePool,
        directory: str,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
        jitter_ms: int = 0,
        state_suffix: str = "",
    ) -> LogSegment:
        """Create an empty segment with three files. The first abort creates the transaction
        index.
        """
        segment = cls(
            pool, directory, base_offset, config, created_ms, jitter_ms, SegmentFiles(0),
            state_suffix,
        )  # fmt: skip
        preallocate = config.segment_bytes if config.preallocate else 0
        segment.records = FileRecords.create(pool, segment.records.path, preallocate)
        try:
            segment.offset_index.create()
            segment.time_index.create()
        except OSError:
            segment.records.close_handle()
            raise
        segment._max_timestamp = NO_TIMESTAMP
        segment._dirty = True
        return segment

    @property
    def size(self) -> int:
        return self.records.size

    def append(
        self,
        buffers: Sequence[Buffer],
        size: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Append one batch, or a set with `first_offset` -1; the index rules are Kafka's.

        Raises:
            OSError: nothing counts as appended.
        """
        known = self._max_timestamp
        if known is None:
            known = self._load_max_timestamp()
        self._dirty = True
        indexed = self.bytes_since_index_entry > index_interval_bytes
        if indexed:  # may fail, so it comes first: a refused append must not be in the log
            self.offset_index.load()
            self.time_index.load()
        position = self.records.append(buffers, size)
        if position == 0:
            self._first_timestamp = max_timestamp
        if first_offset >= 0:
            recent = self._recent_batches
            if len(recent) == _RECENT_BATCHES_MAX:
                recent.clear()
            recent[first_offset] = (position, size)
        if max_timestamp > known:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = offset_of_max_timestamp
        if indexed:
            self.add_index_entry(last_offset, position)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += size

    def add_index_entry(self, last_offset: int, position: int) -> None:
        """Add an entry to each index, for a set that ends with `last_offset`."""
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)

    def should_roll(
        self, size: int, max_timestamp: int, last_offset: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Whether a set of `size` bytes must go to a new segment (`LogSegment.shouldRoll`)."""
        own = self.records.size
        return (
            own > config.segment_bytes - size
            or (
                own > 0
                and self.age_ms(max_timestamp, now_ms) > config.segment_age_max_ms - self.jitter_ms
            )
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def age_ms(self, timestamp: int, now_ms: int) -> int:
        """The time from the first batch to `timestamp`; from the creation if batches have no
        timestamps.
        """
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    @property
    def first_timestamp(self) -> int:
        """The greatest timestamp of the first batch; -1 without a timestamp or batch."""
        if self._first_timestamp is None and self.records.size:
            self._first_timestamp = next(self.records.headers())[1].max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of the segment, -1 when it has none."""
        known = self._max_timestamp
        return self._load_max_timestamp() if known is None else known

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch that has `max_timestamp`."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def set_max_timestamp(self, timestamp: int, offset: int) -> None:
        """Set the timestamp that recovery or the cleaner found. The files must be finished
        again.
        """
        self._dirty = True
        self._max_timestamp = timestamp
        self._offset_of_max_timestamp = offset

    def _load_max_timestamp(self) -> int:
        """Find the greatest timestamp. If batches cannot be read, the index is trusted, as in
        Kafka: otherwise neither appends, nor a close, nor retention would work.
        """
        try:
            found = self._read_max_timestamp()
        except ApiError as error:
            logger.warning("%s is trusted: %s", self.time_index.path, error.message)
            found = self.time_index.last_entry
        self._max_timestamp, self._offset_of_max_timestamp = found
        return found[0]

    def _read_max_timestamp(self) -> tuple[int, int]:
        """Read the batches that the indexes do not cover, or all if no batch matches the last time
        index entry.
        """
        known, offset = self.time_index.last_entry
        found = self.find(offset) if known >= 0 else None
        position = found[0] if found else 0
        first = next(self.records.headers(position), None)
        if known >= 0 and (first is None or first[1].max_timestamp != known):
            logger.warning("%s does not match its segment", self.time_index.path)
            position, known, offset = 0, NO_TIMESTAMP, self.base_offset
        elif known >= 0 and self.offset_index.count:
            # With each entry of the offset index, the time index gets the greatest timestamp so
            # far, unless it has it.
            position = max(position, self.offset_index.entry(-1)[1])
        for _, header in self.records.headers(position):
            if header.max_timestamp > known:
                known, offset = header.max_timestamp, header.last_offset
        return known, offset

    def find(self, offset: int) -> tuple[int, int, int] | None:
        """(position, size, base offset) of the first batch that ends at or after `offset`, if any.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        recent = self._recent_batches.get(offset)
        if recent is not None:
            return recent[0], recent[1], offset
        # A flipped bit in the index must not hide records: at its position may be a later batch, or
        # none. (Kafka continues from the batch at the position.)
        position = self.offset_index.lookup(offset)
        if 0 < position < self.records.size:
            with suppress(ApiError):
                found = self.records.find(offset, position)
                if found is None or found[0] > position or found[2] <= offset:
                    return found
        if position:
            self._warn_index_mismatch()
        return self.records.find(offset, 0)

    def _warn_index_mismatch(self) -> None:
        logger.warning("%s does not match its segment", self.offset_index.path)

    def recent_position(self, base_offset: int) -> int | None:
        """The position of one of the last few batches, by its base offset; None for others."""
        recent = self._recent_batches.get(base_offset)
        return None if recent is None else recent[0]

    def position_before(self, offset: int, size: int) -> int:
        """The start of a batch at least `size` bytes before `offset`, or 0."""
        return self.offset_index.lookup_position(self.offset_index.lookup(offset) - size)

    def locate(self, offset: int, max_bytes: int, end: int, min_one_message: bool) -> Slice | None:
        """The slice for a read of `offset` up to `end`; None beyond the last batch."""
        found = self.find(offset)
        if found is None:
            return None
        position, size, _ = found
        if min_one_message and max_bytes < size:
            max_bytes = size
        return Slice(position, max(min(end - position, max_bytes), 0), size)

    def offset_above(self, position: int) -> int | None:
        """An offset above those of the batches that begin before `position`, if the index has one
        (`LogSegment.fetchUpperBoundOffset`).
        """
        known = self.offset_index.set_from(position)
        if known is None:
            return None
        # A flipped bit in the index must not hide the aborted transactions of a read.
        with suppress(ApiError):
            first = next(self.records.headers(known[1]), None)
            if first is not None and first[1].base_offset <= known[0]:
                return known[0]
        self._warn_index_mismatch()
        return None

    def find_by_timestamp(
        self, timestamp: int, start_offset: int, search: Search = first_record
    ) -> TimestampOffset | None:
        """The first record at or after `start_offset` whose timestamp is at least `timestamp`."""
        first = self.find(max(self.time_index.lookup(timestamp), start_offset))
        return None if first is None else search(self.records, first[0], timestamp, start_offset)

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on."""
        position = self.offset_index.entry(-1)[1] if self.offset_index.count else 0
        return self._end_below(_ABOVE_ALL_OFFSETS, position)[1]

    def end_below(self, offset: int) -> tuple[int, int]:
        """(position, next offset) after the last batch that lies wholly below `offset`.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches, or a batch there with a wrong
                last offset.
        """
        position = self.offset_index.lookup(offset - 1)
        if 0 < position < self.records.size:
            with suppress(ApiError):
                end = self._end_below(offset, position)
                if end[0] > position:
                    return end
        if position:
            self._warn_index_mismatch()
        return self._end_below(offset, 0)

    def _end_below(self, offset: int, position: int) -> tuple[int, int]:
        next_offset, last = self.base_offset, None
        for start, header in self.records.headers(position):
            if header.next_offset > offset:
                self._check_last_offset(start, header)
                break
            position, next_offset, last = start + header.size, header.next_offset, header
        if last is not None:
            self._check_last_offset(position - last.size, last)
        return position, next_offset

    def _check_last_offset(self, position: int, header: BatchHeader) -> None:
        """Check the last offset of a batch against its record count or, if they differ (as after
        compaction), by its CRC. Damaged records do not matter here.

        Raises:
            ApiError: CORRUPT_MESSAGE.
        """
        if header.last_offset_delta != header.record_count - 1:
            self.records.check(position, header)

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop every batch that holds or follows `offset`, with its index entries. Returns the
        offset after the remaining batches. It is lower than `offset` if `offset` is inside a batch
        or after batches that a cleaning has removed.
        """
        end, next_offset = self.end_below(offset)
        self._dirty = True
        self._recent_batches.clear()
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if end < self.records.size:
            self.records.truncate_durably(end)
        if end == 0:
            self.created_ms = now_ms or self.created_ms
            self._first_timestamp = None
        self.bytes_since_index_entry = 0
        self._max_timestamp = None
        return next_offset

    def become_inactive(self) -> bool:
        """Finish the files: add the closing time index entry, and truncate every file to its real
        size.

        Returns False if nothing was written since the segment was opened.
        """
        if not self._dirty:
            return False
        self.finish_indexes()
        self.records.truncate(self.records.size)
        self._recent_batches.clear()
        self.transaction_index.release()
        self._dirty = False
        return True

    def finish_indexes(self) -> None:
        """Write the closing time index entry and trim both index files."""
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp, True)
        self.offset_index.write(trim=True)
        self.time_index.write(trim=True)

    def newest_ms(self) -> int:
        """The greatest timestamp or, if batches have none, that of the last write."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """When the `.log` was last written, in ms since the epoch."""
        found = self.offset_index.fs.stat(self.records.path)
        return found.modified_ms if found is not None else self.created_ms

    def file_paths(self) -> list[str]:
        """The paths of the four files, whether or not each exists."""
        return [
            self.records.path,
            self.offset_index.path,
            self.time_index.path,
            self.transaction_index.path,
        ]

    def change_suffix(self, fs: FileSystem, old: str, new: str) -> None:
        """Rename the four files, the `.log` first, from `<name><old>` to `<name><new>`."""
        self.records.close_handle()
        for item in (self.records, self.offset_index, self.time_index, self.transaction_index):
            renamed = item.path.removesuffix(old) + new
            if fs.stat(item.path) is not None:
                fs.rename(item.path, renamed)
            item.path = renamed
