"""One compaction of one log, planned and committed in the event loop, run in any thread.

`run` reads only the closed segments of the plan, through its own file handles, and writes
`.cleaned` files. The log changes only in `UnifiedLog.replace_segments`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Pause, no_pause
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import MAGIC, BatchHeader, Buffer, iter_headers
from kafkapy.record.records import batch_records
from kafkapy.record.row_index import index_keys
from kafkapy.storage.batch_retention import BatchRetention, CleanedTransactions, LastRecord
from kafkapy.storage.cleaning_state import LogCleaningAborted
from kafkapy.storage.file_records import FilePool, scan_batches
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_names import CLEANED_SUFFIX
from kafkapy.storage.log_segment import RELATIVE_OFFSET_MAX, LogSegment, SegmentFiles
from kafkapy.storage.offset_map import OffsetMap
from kafkapy.storage.transaction_index import AbortedTransaction
from kafkapy.storage.unified_log import UnifiedLog


class SourceSegment(NamedTuple):
    """A closed segment at the time of the plan."""

    base_offset: int
    path: str
    size: int
    offset_index_bytes: int
    time_index_bytes: int
    modified_ms: int
    next_base_offset: int


class CleanedSegment(NamedTuple):
    """A finished `.cleaned` segment and the sources it replaces."""

    base_offset: int
    files: SegmentFiles
    sources: tuple[SourceSegment, ...]


@dataclass(slots=True)
class CleaningStats:
    """Statistics of a cleaning, for the log line."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_indexed: int = 0


@dataclass(slots=True)
class CleaningPlan:
    """The inputs of a cleaning, copied from the log.

    The sources are the log's first segments, up to `first_uncleanable_offset`. Their keys from
    `first_dirty_offset` on decide which records remain.
    """

    directory: str
    config: LogConfig
    sources: list[SourceSegment]
    first_dirty_offset: int
    first_uncleanable_offset: int
    aborted: list[AbortedTransaction]
    last_records: dict[int, LastRecord]
    now_ms: int


def plan_cleaning(
    log: UnifiedLog, first_dirty_offset: int, first_uncleanable_offset: int, now_ms: int
) -> CleaningPlan:
    """Plan a cleaning of `log`. Records may be appended to the log during the cleaning.

    Raises:
        LogDirFailure, or ApiError CORRUPT_MESSAGE from a transaction index.
    """
    segments = list(log.segments)
    sources = [
        SourceSegment(
            segment.base_offset,
            segment.records.path,
            segment.size,
            segment.offset_index.byte_size,
            segment.time_index.byte_size,
            segment.modified_ms(),
            following.base_offset,
        )
        for segment, following in pairwise(segments)
        if following.base_offset <= first_uncleanable_offset
    ]
    first = sources[0].base_offset if sources else first_dirty_offset
    return CleaningPlan(
        log.directory,
        replace(log.config, preallocate=False),
        sources,
        first_dirty_offset,
        first_uncleanable_offset,
        log.aborted_transactions(first, first_uncleanable_offset),
        {
            entry.producer_id: LastRecord(entry.last_data_offset, entry.producer_epoch)
            for entry in log.producers.state
        },
        now_ms,
    )


@dataclass(slots=True)
class Cleaning:
    """A cleaning in progress. Its result is `cleaned`, and `end_offset`, the next first dirty
    offset.
    """

    log: UnifiedLog
    plan: CleaningPlan
    fs: FileSystem
    buffer_bytes: int
    cleaned: list[CleanedSegment] = field(default_factory=list)
    stats: CleaningStats = field(default_factory=CleaningStats)
    end_offset: int = -1

    def run(self, pause: Pause = no_pause) -> None:
        """Clean to the end; may run in a worker thread. `pause` is called between steps.

        Raises:
            OSError: the disk fails.
            LogCleaningAborted: the log is to be deleted, truncated or moved.
            ApiError: CORRUPT_MESSAGE, INVALID_RECORD: a source cannot be read; nothing is replaced.
        """
        for _ in self.steps():
            pause()

    def steps(self) -> Iterator[None]:
        """Clean in small steps, for a caller that uses no thread."""
        plan = self.plan
        self._check_not_aborted()
        # After a crash, `.cleaned` files of an earlier, failed cleaning would mark this one's
        # `.swap` files as unfinished (`finish_swaps`).
        self._remove_cleaned()
        offsets = self._new_map()
        yield from self._index(offsets)
        self.end_offset = offsets.latest_offset + 1
        transactions = CleanedTransactions(plan.aborted)
        retention = BatchRetention(
            offsets,
            transactions,
            plan.last_records,
            plan.config.delete_retention_ms,
            plan.now_ms,
        )
        for group in self._groups():
            yield from self._clean(group, retention, transactions)

    def _new_map(self) -> OffsetMap:
        offsets = OffsetMap(self.buffer_bytes)
        offsets.latest_offset = self.plan.first_dirty_offset - 1
        return offsets

    def _legacy_horizon_ms(self) -> int:
        plan = self.plan
        clean = [s.modified_ms for s in plan.sources if s.base_offset < plan.first_dirty_offset]
        return clean[-1] - plan.config.delete_retention_ms if clean else 0

    def _index(self, offsets: OffsetMap) -> Iterator[None]:
        """Record the last offset of each dirty key, until the map is full."""
        plan = self.plan
        start = plan.first_dirty_offset
        # Transactions that ended before `start` are left out: their markers are not read here, so
        # their producers would look aborted to the end.
        transactions = CleanedTransactions(t for t in plan.aborted if t.last_offset >= start)
        for source in plan.sources:
            if source.next_base_offset <= start:
                continue
            for header, batch in self._batches(source):
                if not self._index_batch(offsets, transactions, header, batch):
                    return
                yield
            # The last batch may end before the next segment begins. The whole segment is indexed.
            offsets.latest_offset = max(offsets.latest_offset, source.next_base_offset - 1)

    def _index_batch(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        header: BatchHeader,
        batch: memoryview,
    ) -> bool:
        """Index one batch. Returns False if the map had no room for its keys."""
        start = self.plan.first_dirty_offset
        if header.is_control:
            transactions.on_marker(header, batch)
        elif not transactions.on_data(header) and header.last_offset >= start:
            row_offsets, keys = _keys(header, batch)
            if not offsets.has_room(len(keys)):
                return False
            # The header of a compressed set of an old format has only its last offset.
            if header.magic == MAGIC and header.base_offset >= start:
                offsets.put_batch(header.base_offset, keys, row_offsets)
            else:
                first = bisect_left(row_offsets, start)
                keys = keys[first:]
                offsets.put(keys, row_offsets[first:])
            self.stats.records_indexed += len(keys) - keys.count(None)
        if header.last_offset >= start:
            offsets.latest_offset = header.last_offset
        return True

    def _batches(self, source: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches of a segment.

        Raises:
            ApiError: a batch is damaged, and its re-encoded part would get a valid CRC (Kafka's
                cleaner does not validate it). Or a batch claims to extend beyond the segment, and
                the bytes from there on would be lost.
        """
        self._check_not_aborted()
        file = self.fs.open(source.path)
        end = 0
        try:
            for position, header, batch in scan_batches(file, 0, source.size):
                self._check_not_aborted()
                validate_crc(batch, 0, header)
                yield header, batch
                end = position + header.size
        finally:
            file.close()
        if end < source.size:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"{source.path} holds no whole batch at position {end}"
            )

    def _check_not_aborted(self) -> None:
        """Raise if the cleaning was aborted. Called before each file and each batch."""
        if self.log.cleaning.is_aborted:
            raise LogCleaningAborted(f"The cleaning of {self.log.topic_partition} is aborted")

    def _groups(self) -> Iterator[tuple[SourceSegment, ...]]:
        """Groups of adjacent segments that fit into one: by bytes, index entries and offset
        range.
        """
        config = self.plan.config
        group: list[SourceSegment] = []
        for source in self.plan.sources:
            if source.base_offset >= self.end_offset:
                break
            candidates = [*group, source]
            fits = (
                sum(s.size for s in candidates) <= config.segment_bytes
                and sum(s.offset_index_bytes for s in candidates) <= config.segment_index_bytes
                and sum(s.time_index_bytes for s in candidates) <= config.segment_index_bytes
                and source.next_base_offset - 1 - candidates[0].base_offset <= RELATIVE_OFFSET_MAX
            )
            if group and not fits:
                yield tuple(group)
                group = []
            group.append(source)
        if group:
            yield tuple(group)

    def _clean(
        self,
        sources: tuple[SourceSegment, ...],
        retention: BatchRetention,
        transactions: CleanedTransactions,
    ) -> Iterator[None]:
        plan = self.plan
        pool = FilePool(self.fs)
        base_offset = sources[0].base_offset
        target = LogSegment.create(
            pool, plan.directory, base_offset, plan.config, plan.now_ms,
            state_suffix=CLEANED_SUFFIX,
        )  # fmt: skip
        try:
            for source in sources:
                retention.keep_legacy_deletes = source.modified_ms > self._legacy_horizon_ms()
                for header, batch in self._batches(source):
                    self.stats.bytes_read += header.size
                    kept = retention.retain(header, batch)
                    if kept is not None:
                        self._append(target, kept)
                    yield
            self._check_not_aborted()
            for entry in transactions.kept_aborts:
                target.transaction_index.append(entry)
            transactions.kept_aborts.clear()
            target.become_inactive()
            self._force(target)
        finally:
            target.records.close_handle()
        self.fs.set_modified(target.records.path, sources[-1].modified_ms)
        self.cleaned.append(
            CleanedSegment(
                base_offset,
                SegmentFiles.of([self._size_of(path) for path in target.file_paths()]),
                sources,
            )
        )

    def _append(self, target: LogSegment, kept: Buffer) -> None:
        """Append the result of `retain`: one batch, or the v2 batches of one old-format batch."""
        view = memoryview(kept)
        for position, header in iter_headers(view):
            target.append(
                [view[position : position + header.size]], header.size, -1, header.last_offset,
                header.max_timestamp, header.last_offset, self.plan.config.index_interval_bytes,
            )  # fmt: skip
            self.stats.bytes_written += header.size

    def _force(self, target: LogSegment) -> None:
        target.records.flush()
        for path in target.file_paths()[1:]:
            if self.fs.stat(path) is not None:
                file = self.fs.open(path)
                try:
                    file.fsync()
                finally:
                    file.close()

    def _size_of(self, path: str) -> int | None:
        found = self.fs.stat(path)
        return None if found is None else found.size

    def discard(self) -> None:
        """Remove the `.cleaned` files, because the log changed during the cleaning, or the cleaning
        failed.

        A file that cannot be removed now is removed by the next cleaning, or at the next start.
        The directory may be gone, or belong to a new log of the same name.
        """
        with suppress(OSError):
            self._remove_cleaned()

    def _remove_cleaned(self) -> None:
        for entry in self.fs.list(self.plan.directory):
            if entry.name.endswith(CLEANED_SUFFIX):
                self.fs.remove(f"{self.plan.directory}/{entry.name}")


def _keys(header: BatchHeader, batch: memoryview) -> tuple[Sequence[int], list[bytes | None]]:
    """The offsets and keys of a batch of any format."""
    if header.magic == MAGIC:
        return index_keys(batch, header)
    rows = list(batch_records(batch, header))
    return [row.offset for row in rows], [row.key for row in rows]
