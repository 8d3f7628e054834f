"""The segments of one partition, and its log end offset (Kafka's `LocalLog`).

Handles files and positions; `unified_log` handles epochs, producers and the high watermark. Every
method may raise OSError, which `UnifiedLog` converts to LogDirFailure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafkapy.common.ports import Random
from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.disk_errors import SHORTAGE_ERRNOS
from kafkapy.storage.file_records import FilePool, FileRecords, FileRegion
from kafkapy.storage.filesystem import File, FileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    offset_file_name,
)
from kafkapy.storage.log_offset import LogOffsetMetadata
from kafkapy.storage.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.transaction_index import AbortedTransaction

SEGMENTS_PER_FLUSH: Final = 64
"""A flush opens about four files of each of its segments at once."""


class SegmentRead(NamedTuple):
    """The result of a read: `records` from the batch that holds the offset, at `metadata`'s
    position.
    """

    metadata: LogOffsetMetadata
    records: bytes | FileRegion
    first_entry_incomplete: bool
    end_offset: int | None
    """The end of the segment that was read; None for the active one."""


class FlushHandle:
    """One fsync of a log up to `offset`, in two steps: `fsync` in a worker thread, then
    `mark_flushed` in the loop. `segments` are the unflushed ones that it completes.
    """

    __slots__ = (
        "_files",
        "directory",
        "local",
        "offset",
        "segments",
        "snapshots",
        "truncation_count",
    )

    def __init__(
        self,
        local: LocalLog,
        offset: int,
        segments: Sequence[LogSegment],
        snapshots: Sequence[str],
        files: list[File],
    ) -> None:
        self.local = local
        self.directory = local.directory
        self.offset = offset
        self.segments = frozenset(segments)
        self.snapshots = tuple(snapshots)
        self.truncation_count = local.truncation_count
        self._files = files

    @property
    def file_count(self) -> int:
        return len(self._files)

    def fsync(self) -> None:
        """Force the files and the names to disk. Raises OSError."""
        try:
            for file in self._files:
                file.fsync()
        finally:
            for file in self._files:
                file.close()
        # The directory of a log that was deleted or moved meanwhile has another name.
        with suppress(FileNotFoundError):
            self.local.pool.fs.fsync_dir(self.directory)

    @staticmethod
    def fsync_all(fs: FileSystem, handles: Sequence[FlushHandle]) -> None:
        """Force the files of several idle logs to disk together."""
        files = [file for handle in handles for file in handle._files]
        try:
            fs.fsync_all(files)
        finally:
            for file in files:
                file.close()
        fs.fsync_dirs([handle.directory for handle in handles])


@dataclass(slots=True)
class FetchDataInfo:
    """The result of a read: bytes of batches, of which the last may be incomplete because of the
    size limit.

    `first_entry_incomplete`: even the first batch is larger than the limit, so there are no
    records. `aborted_transactions` by first offset; None unless requested. `span` is the bytes or,
    for a read `in_place`, a region of the file.
    """

    span: bytes | FileRegion
    fetch_offset_metadata: LogOffsetMetadata
    aborted_transactions: list[AbortedTransaction] | None = None
    first_entry_incomplete: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.span)

    @property
    def records(self) -> bytes:
        """The bytes of a read that was not `in_place`."""
        assert isinstance(self.span, bytes)
        return self.span


class LocalLog:
    """`log_end_offset` is the offset of the next record. Everything below `recovery_point` is
    flushed.

    `unflushed_segments` has the closed segments whose indexes are not flushed. An index is flushed
    when its segment is closed. `on_recovery_point_lowered` is called when a truncation has lowered
    the recovery point. `truncated_to` is the lowest end of the truncations that a move to another
    directory has not applied to its copy yet; None if there are none.
    """

    __slots__ = (
        "config",
        "deletions",
        "directory",
        "log_end_offset",
        "on_recovery_point_lowered",
        "pool",
        "random",
        "recovery_point",
        "segments",
        "truncated_to",
        "truncation_count",
        "unflushed_segments",
    )

    def __init__(
        self,
        pool: FilePool,
        directory: str,
        config: LogConfig,
        random: Random,
        deletions: DeletionQueue,
    ) -> None:
        self.pool = pool
        self.directory = directory
        self.config = config
        self.random = random
        self.deletions = deletions
        self.segments = LogSegments()
        self.log_end_offset = 0
        self.recovery_point = 0
        self.truncation_count = 0
        self.truncated_to: int | None = None
        self.unflushed_segments: list[LogSegment] = []
        self.on_recovery_point_lowered: Callable[[], None] = lambda: None

    def new_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        """Create an empty segment and make it the active one. If that fails, its files are removed:
        the old segment may grow past their base offset, and would end there after a restart.
        """
        jitter = self.config.segment_jitter_ms
        jitter_ms = self.random.below(min(jitter, self.config.segment_ms)) if jitter else 0
        try:
            segment = LogSegment.create(
                self.pool, self.directory, base_offset, self.config, now_ms, jitter_ms
            )
        except OSError:
            if self.segments.get(base_offset) is None:
                for suffix in SEGMENT_SUFFIXES:
                    name = offset_file_name(base_offset, suffix)
                    self.pool.fs.remove(f"{self.directory}/{name}")
            raise
        self.segments.add(segment)
        return segment

    def roll(self, first_offset: int, last_offset: int, now_ms: int) -> LogSegment:
        """Finish the active segment, and begin a new one for a set with the given offset range.

        The new segment begins where the old one's data ends, even if the set begins later. So a gap
        between two segments always means that the older one lost its end in a crash. In Kafka the
        new segment begins at the set. The two differ only on followers of compacted logs.
        """
        active = self.segments.active
        base_offset = active.next_offset()
        if last_offset - base_offset > RELATIVE_OFFSET_MAX:
            base_offset = first_offset
        if active.size:
            self.finish(active)
            if base_offset <= self.recovery_point:
                self._flush_closed_segment(active)
            return self.new_segment(base_offset, now_ms)
        active.records.close_handle()
        segment = self.new_segment(base_offset, now_ms)  # usually with the same files
        if segment.base_offset != active.base_offset:
            self.remove([active])
        return segment

    def _flush_closed_segment(self, segment: LogSegment) -> None:
        """Force a closed segment to disk. Its batches are flushed, so recovery does not read it
        again, and would not find lost aborted transactions, preallocated bytes, or index entries of
        batches that a crash or a truncation has dropped.
        """
        fs = self.pool.fs
        for path in segment.file_paths():
            if fs.stat(path) is not None:
                with closing(fs.open(path)) as file:
                    file.fsync()

    def finish(self, segment: LogSegment) -> bool:
        """Write the final form of a segment's files. Returns False if they have it already."""
        if not segment.become_inactive():
            return False
        self.unflushed_segments.append(segment)
        return True

    def end_metadata(self) -> LogOffsetMetadata:
        active = self.segments.active
        return LogOffsetMetadata(self.log_end_offset, active.base_offset, active.records.size)

    def offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """The position of the batch that holds `offset` or, in a gap, of the next one.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        if offset >= self.log_end_offset:
            return self.end_metadata()
        for segment in self.segments.from_offset(offset):
            found = segment.find(offset)
            if found is not None:
                return LogOffsetMetadata(offset, segment.base_offset, found[0])
        return self.end_metadata()

    def read(
        self,
        offset: int,
        max_bytes: int,
        end: LogOffsetMetadata,
        min_one_message: bool,
        in_place: bool = False,
    ) -> SegmentRead | None:
        """Read batches of one segment, from the one that holds `offset` up to `end`.

        `in_place`: the batches will be sent, so a long span stays in its file.
        """
        read = FileRecords.region if in_place else FileRecords.read
        segments = self.segments
        index = max(segments.floor_index(offset), 0)
        while index < len(segments):
            segment = segments[index]
            if segment.base_offset > end.segment_base_offset:
                return None
            limit = segment.records.size
            if segment.base_offset == end.segment_base_offset:
                limit = min(limit, end.position)
            found = segment.locate(offset, max_bytes, limit, min_one_message)
            index += 1
            if found is None:
                continue
            position, size, first_batch_size = found
            return SegmentRead(
                LogOffsetMetadata(offset, segment.base_offset, position),
                read(segment.records, position, size) if size >= first_batch_size else b"",
                size < first_batch_size,
                segments[index].base_offset if index < len(segments) else None,
            )
        return None

    def check_descriptors(self) -> None:
        """Raise OSError if no descriptor is left, before an operation that must not stop
        half-way.
        """
        self.pool.fs.open(self.segments.active.records.path).close()

    def check_truncation(self, offset: int) -> int:
        """The log end offset after `truncate_to`.

        Raises:
            OSError: descriptors are short.
            ApiError: the segment to cut cannot be read.
        """
        segment = self.segments[max(self.segments.floor_index(offset), 0)]
        end = segment.end_below(offset)[1]
        segment.transaction_index.entries()
        return end

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Keep only batches wholly below `offset`.

        The log ends where these batches end, so a follower fetches the missing offsets below
        `offset` again. They are missing if a batch holds `offset`, or if a cleaning removed batches
        in favour of later ones, which are dropped. (Kafka's log ends at `offset`, until a restart
        finds the end of the batches.)
        """
        self.truncation_count += 1
        self.remove(self.segments.above(offset))
        self._lower_end(self.segments.active.truncate_to(offset, now_ms))

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Drop every record. The log begins and ends at `offset` then."""
        self.truncation_count += 1
        created_ms = now_ms or self.segments.active.created_ms
        self.remove(list(self.segments))
        self.new_segment(offset, created_ms)
        self._lower_end(offset)

    def _lower_end(self, end: int) -> None:
        self.log_end_offset = end
        known = self.truncated_to
        self.truncated_to = end if known is None else min(known, end)
        if end < self.recovery_point:
            self.recovery_point = end
            self.on_recovery_point_lowered()

    def remove(self, segments: list[LogSegment]) -> None:
        """Remove segments and their files durably, the newest first.

        A crash must not leave a gap, nor restore records that later appends replace.
        """
        for segment in reversed(segments):
            self.segments.remove(segment.base_offset)
            segment.records.close_handle()
            for path in segment.file_paths():
                self.pool.fs.remove(path)
        if segments:
            self.pool.fs.fsync_dir(self.directory)

    def delete(self, segments: Iterable[LogSegment], now_ms: int) -> None:
        """Remove segments at once. Their files are deleted `file.delete.delay.ms` later."""
        due = now_ms + self.config.file_delete_delay_ms
        for segment in segments:
            self.segments.remove(segment.base_offset)
            segment.change_suffix(self.pool.fs, "", DELETED_SUFFIX)
            self.deletions.add_files(segment.file_paths(), due)

    def replace_segments(
        self, cleaned: Sequence[LogSegment], old: Sequence[LogSegment], now_ms: int
    ) -> None:
        """Replace `old` with `cleaned` (flushed, still named `.cleaned`).

        Each step leaves a state that the loader completes or undoes: `.cleaned` files next to whole
        sources are dropped, `.swap` files without `.cleaned` ones replace their sources.
        """
        fs = self.pool.fs
        for segment in reversed(cleaned):
            segment.change_suffix(fs, CLEANED_SUFFIX, SWAP_SUFFIX)
        fs.fsync_dir(self.directory)
        self.delete(old, now_ms)
        for segment in cleaned:
            self.segments.add(segment)
            segment.change_suffix(fs, SWAP_SUFFIX, "")
        fs.fsync_dir(self.directory)

    def unflushed_bytes(self) -> int:
        """The bytes of the batches from the recovery point on.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        point = self.offset_metadata(self.recovery_point)
        segments = self.segments.from_offset(self.recovery_point)
        return sum(segment.size for segment in segments) - point.position

    @property
    def is_unflushed(self) -> bool:
        return bool(self.unflushed_segments) or self.recovery_point < self.log_end_offset

    def flush_handle(self, snapshots: Sequence[str]) -> FlushHandle:
        """The open files of the data between the recovery point and the log end offset, or the
        first `SEGMENTS_PER_FLUSH` segments of it. The next flush continues there.

        Indexes of the active segment are not included, because recovery rebuilds them after a
        crash.
        """
        end = self.log_end_offset
        segments, unflushed = (
            self.segments.from_offset(self.recovery_point),
            self.unflushed_segments,
        )
        bases = sorted({segment.base_offset for segment in (*segments, *unflushed)})
        if len(bases) > SEGMENTS_PER_FLUSH:
            end = min(end, bases[SEGMENTS_PER_FLUSH])
            segments = [segment for segment in segments if segment.base_offset < end]
            unflushed = [segment for segment in unflushed if segment.base_offset < end]
            last = f"{self.directory}/{offset_file_name(end, SNAPSHOT_SUFFIX)}"
            snapshots = [path for path in snapshots if path <= last]
        files: list[File] = []
        try:
            for segment in segments:
                files.append(segment.records.duplicate())
            for path in self._small_files(unflushed, snapshots):
                files.append(self.pool.fs.open(path))
        except OSError:
            for file in files:
                file.close()
            raise
        return FlushHandle(self, end, unflushed, snapshots, files)

    def _small_files(self, segments: Sequence[LogSegment], snapshots: Sequence[str]) -> list[str]:
        """The files to flush that hold no batches."""
        indexes = [path for segment in segments for path in segment.file_paths()[1:]]
        return [path for path in (*snapshots, *indexes) if self.pool.fs.stat(path) is not None]

    def flush_now(self, snapshots: Sequence[str]) -> None:
        """Force the files of `flush_handle` to disk in this thread. If descriptors are short, files
        of segments are closed: records that are already appended must not fail for lack of one.
        """
        try:
            self._force(snapshots, lambda: None)
        except OSError as error:
            if error.errno not in SHORTAGE_ERRNOS:
                raise
            self._force(snapshots, self.pool.close_files)
        self.unflushed_segments = []
        self.recovery_point = max(self.recovery_point, self.log_end_offset)

    def _force(self, snapshots: Sequence[str], close_files: Callable[[], None]) -> None:
        fs = self.pool.fs
        for segment in self.segments.from_offset(self.recovery_point):
            segment.records.flush()
        close_files()
        for path in self._small_files(self.unflushed_segments, snapshots):
            with closing(fs.open(path)) as file:
                file.fsync()
        fs.fsync_dir(self.directory)

    def mark_flushed(self, handle: FlushHandle) -> bool:
        """Advance the recovery point after a flush. Returns False if the log was truncated
        meanwhile, because a file may have been written again since.
        """
        if handle.truncation_count != self.truncation_count:
            return False
        self.unflushed_segments = [s for s in self.unflushed_segments if s not in handle.segments]
        offset = handle.offset
        # Recovery must read a segment that was closed meanwhile, though its batches are flushed.
        closed = min((s.base_offset for s in self.unflushed_segments), default=offset)
        if self.unflushed_segments and (following := self.segments.above(closed)):
            offset = min(offset, following[0].base_offset - 1)
        self.recovery_point = max(self.recovery_point, offset)
        return True

    def close_handles(self) -> None:
        """Close every descriptor. The next use opens the files again."""
        for segment in self.segments:
            segment.records.close_handle()

    def aborted_in(self, read: SegmentRead, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions with data in a read below `upper_bound`, and perhaps some just
        behind it.
        """
        start, base_offset, position = read.metadata
        if all(each.transaction_index.is_empty for each in self.segments.from_offset(start)):
            return []  # most logs: do not search the end of the read
        segment = self.segments.get(base_offset)
        stop = None if segment is None else segment.offset_above(position + len(read.records))
        stop = read.end_offset if stop is None else stop
        return self.aborted_transactions(
            start, upper_bound if stop is None else min(stop, upper_bound)
        )

    def aborted_transactions(self, start: int, stop: int) -> list[AbortedTransaction]:
        """The aborted transactions with data in [start, stop), by first offset."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.from_offset(start):
            more, complete = segment.transaction_index.collect(start, stop)
            found += more
            if complete:
                break
        return sorted(found, key=lambda entry: entry.first_offset)
