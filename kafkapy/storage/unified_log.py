"""One partition's log, appended to and read (Kafka's `UnifiedLog`). Hot file.

A method that touches the disk raises LogDirFailure when the disk fails; the log must not be used
after that.

Invariant: `log_start_offset <= high_watermark <= log_end_offset >= recovery_point`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.record.batch_header import CONTROL_BIT, MAGIC, BatchHeader, first_16_bytes
from kafkapy.record.control import ControlRecordType
from kafkapy.record.long_preparation import PreparationResult
from kafkapy.record.validation import (
    PRODUCE_VERSION_ZSTD,
    prepare_client_batch,
    prepare_internal_batch,
)
from kafkapy.storage import time_lookup
from kafkapy.storage.cleaning_state import CleaningState
from kafkapy.storage.damage import Batches, batches_after
from kafkapy.storage.disk_errors import StorageShortage, disk_error
from kafkapy.storage.file_records import FileRegion
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.local_log import FetchDataInfo, FlushHandle, LocalLog, SegmentRead
from kafkapy.storage.log_append import (
    LEADER_EPOCH_MAX,
    AppendOrigin,
    LogAppendInfo,
    UnexpectedAppendOffset,
    appended_marker,
    duplicate_info,
    fetched_batches,
    marker_of,
    rules_of,
    too_large,
)
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_offset import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment, Search, TimestampOffset, first_record
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_log import ProducerLog
from kafkapy.storage.retention import deletable_segments
from kafkapy.storage.transaction_index import AbortedTransaction

logger = logging.getLogger("kafka.log.UnifiedLog")


class UnifiedLog:
    """The log of one partition, in `directory` of `log_dir`.

    `log_start_offset` is the first offset that can be read. Everything below `high_watermark` is
    replicated. `first_unstable_offset` is the start of the oldest undecided transaction, if any.
    `on_high_watermark_lowered` is called when a truncation has lowered the high watermark.
    """

    __slots__ = (
        "_high_watermark_metadata",
        "_rules",
        "cleaning",
        "config",
        "epochs",
        "first_unstable_offset",
        "high_watermark",
        "last_flush_ms",
        "local",
        "log_dir",
        "log_start_offset",
        "on_high_watermark_lowered",
        "producers",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log_dir: str,
        local: LocalLog,
        epochs: LeaderEpochCache,
        producers: ProducerLog,
        log_start_offset: int,
        now_ms: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log_dir = log_dir
        self.local = local
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.first_unstable_offset = producers.state.first_unstable_offset
        self.last_flush_ms = now_ms
        self.cleaning = CleaningState()
        self.on_high_watermark_lowered: Callable[[], None] = lambda: None
        self._high_watermark_metadata: LogOffsetMetadata | None = None
        self.update_config(local.config)

    def update_config(self, config: LogConfig) -> None:
        """Set a new configuration."""
        if not config.compact:
            self.cleaning.abort()
        self.config = self.local.config = config
        self._rules = rules_of(config)

    # offsets, size and directory

    @property
    def directory(self) -> str:
        return self.local.directory

    @property
    def segments(self) -> LogSegments:
        return self.local.segments

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """The recovery point: everything below it is on disk."""
        return self.local.recovery_point

    @property
    def size_bytes(self) -> int:
        return self.local.segments.total_bytes()

    @property
    def last_stable_offset(self) -> int:
        """The bound of read_committed readers: no undecided transaction begins below it."""
        first, high_watermark = self.first_unstable_offset, self.high_watermark
        if first is None or first > high_watermark:
            return high_watermark
        return max(first, self.log_start_offset)  # its start may be deleted

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        known = self._high_watermark_metadata
        if known is None:
            with self._convert_disk_errors():
                known = self.local.offset_metadata(self.high_watermark)
            self._high_watermark_metadata = known
        return known

    def offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """The position of `offset` in the files.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        if offset >= self.local.log_end_offset:  # usual for followers and tailing consumers
            return self.local.end_metadata()
        if offset == self.high_watermark:
            return self.high_watermark_metadata
        with self._convert_disk_errors():
            return self.local.offset_metadata(offset)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, limited to the log's range. Returns the result."""
        local = self.local
        end = local.log_end_offset
        offset = end if offset >= end else max(offset, self.log_start_offset)
        if offset != self.high_watermark:
            self._high_watermark_metadata = None
        self.high_watermark = offset
        if self.first_unstable_offset is not None:
            self.producers.state.on_high_watermark(offset)
            self.first_unstable_offset = self.producers.state.first_unstable_offset
        return offset

    def maybe_increment_log_start_offset(self, offset: int, reason: str) -> bool:
        """Raise the log start offset to `offset`. Returns False if it is there already.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE above the high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition "
                f"{self.topic_partition} since it is larger than the high watermark "
                f"{self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        logger.info("[%s] log start offset is now %d: %s", self.topic_partition, offset, reason)
        with self._convert_disk_errors():
            self.epochs.truncate_from_start(offset)
        return True

    # leader epochs

    def check_descriptors(self) -> None:
        """Raise StorageShortage if no descriptor is left, before a change that needs one."""
        with self._convert_disk_errors():
            self.local.check_descriptors()

    def assign_epoch_start(self, leader_epoch: int, offset: int) -> None:
        """Record durably that `leader_epoch` begins at `offset`, before any record of it."""
        with self._convert_disk_errors():
            self.epochs.assign(leader_epoch, offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetsForLeaderEpoch; (-1, -1) if undefined."""
        return self.epochs.end_offset_for(leader_epoch, self.local.log_end_offset)

    # truncate, roll, delete

    def truncate_to(self, offset: int, now_ms: int = 0) -> None:
        """Drop every batch that does not lie wholly below `offset`, with its epochs and producer
        state. After an ApiError nothing has changed."""
        with self._convert_disk_errors():
            if offset < self.local.segments.first.base_offset:
                self.truncate_fully_and_start_at(offset, now_ms)
                return
            if offset < self.local.log_end_offset:
                logger.info("[%s] truncating to offset %d", self.topic_partition, offset)
                end = self.local.check_truncation(offset)
                self.producers.check_rebuild(self.local, self.log_start_offset, end)
                self.local.check_descriptors()
                with self._convert_disk_errors(changed=True):
                    self.local.truncate_to(offset, now_ms)
                    self.cleaning.record_truncation(self.segments.active.base_offset)
                    offset = self.local.log_end_offset
                    self.log_start_offset = min(self.log_start_offset, offset)
                    self.producers.rebuild(self.local, self.log_start_offset, offset, now_ms)
                    self.epochs.truncate_from_end(offset)
            else:
                self.epochs.truncate_from_end(offset)
        self._after_truncation()

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Drop every record. The log begins and ends at `offset` then."""
        logger.info("[%s] dropping all; starting at offset %d", self.topic_partition, offset)
        self.check_descriptors()
        with self._convert_disk_errors(changed=True):
            self.local.truncate_fully(offset, now_ms)
            self.cleaning.record_truncation(offset)
            self.epochs.clear()
            self.producers.snapshots.remove_unless(lambda _: False)
            self.producers.state.load([])
        self.log_start_offset = offset
        self._after_truncation()

    def _after_truncation(self) -> None:
        self._high_watermark_metadata = None
        self.first_unstable_offset = self.producers.state.first_unstable_offset
        before = self.high_watermark
        if self.update_high_watermark(before) < before:
            with self._convert_disk_errors(changed=True):
                self.on_high_watermark_lowered()

    def roll(self, now_ms: int) -> LogSegment:
        """Begin a new segment where the data ends."""
        end = self.local.log_end_offset
        with self._convert_disk_errors():
            return self._roll(end, end, now_ms)

    def _roll(self, first_offset: int, last_offset: int, now_ms: int) -> LogSegment:
        segment = self.local.roll(first_offset, last_offset, now_ms)
        self.producers.take_snapshot(segment.base_offset)
        return segment

    def delete_old_segments(self, now_ms: int) -> int:
        """Delete the segments that retention does not keep. Returns their number.

        A log that is being cleaned waits for the next round (`LogCleanerManager.deletableLogs`).
        """
        if self.cleaning.in_progress and not self.cleaning.is_aborted:
            return 0
        with self._convert_disk_errors():
            segments, reason = deletable_segments(
                self.local.segments, self.config, self.log_start_offset, self.high_watermark,
                self.local.log_end_offset, now_ms,
            )  # fmt: skip
            if not segments:
                return 0
            if segments[-1] is self.local.segments.active:
                self.roll(now_ms)
            bases = ", ".join(str(segment.base_offset) for segment in segments)
            logger.info("[%s] deleting segments %s: %s", self.topic_partition, bases, reason)
            self.local.delete(segments, now_ms)
            for segment in segments:
                self.producers.snapshots.remove(segment.base_offset)
        start = self.local.segments.first.base_offset
        self.maybe_increment_log_start_offset(start, "segment deletion")
        return len(segments)

    def replace_segments(
        self, cleaned: Sequence[LogSegment], old: Sequence[LogSegment], now_ms: int
    ) -> None:
        """Replace closed segments with the cleaned, flushed ones made from them."""
        kept = {segment.base_offset for segment in cleaned}
        self.check_descriptors()
        with self._convert_disk_errors(changed=True):
            self.local.replace_segments(cleaned, old, now_ms)
            for segment in old:
                if segment.base_offset not in kept:
                    self.producers.snapshots.remove(segment.base_offset)
        self._high_watermark_metadata = None

    # flush and close

    def flush_handle(self) -> FlushHandle:
        """The handle of a flush. Call `run_flush` in any thread, then `mark_flushed`."""
        with self._convert_disk_errors():
            return self.local.flush_handle(self.producers.unflushed)

    def run_flush(self, handle: FlushHandle) -> None:
        """Force a handle's files to disk. May run in a worker thread."""
        with self._convert_disk_errors():
            handle.fsync()

    def mark_flushed(self, handle: FlushHandle, now_ms: int) -> None:
        """Advance the recovery point after the flush of `handle`."""
        self.last_flush_ms = max(self.last_flush_ms, now_ms)
        if self.local.mark_flushed(handle):
            done = set(handle.snapshots)
            self.producers.unflushed = [p for p in self.producers.unflushed if p not in done]

    def flush(self, now_ms: int = 0) -> None:
        """Force everything to disk in this thread."""
        with self._convert_disk_errors(changed=True):
            self.local.flush_now(self.producers.unflushed)
        self.last_flush_ms, self.producers.unflushed = max(self.last_flush_ms, now_ms), []

    def close(self, now_ms: int = 0) -> None:
        """Leave the files as a clean shutdown does: a snapshot, trimmed indexes, all flushed."""
        self.finish()
        while self.is_unflushed:
            self.run_flush(handle := self.flush_handle())
            self.mark_flushed(handle, now_ms)
        self.local.close_handles()

    def finish(self) -> None:
        """The first half of `close`. Flushes follow while the log `is_unflushed`."""
        with self._convert_disk_errors():
            self.local.finish(self.local.segments.active)
            if self.log_end_offset not in self.producers.snapshots.offsets:
                self.producers.take_snapshot(self.log_end_offset)

    @property
    def is_unflushed(self) -> bool:
        return self.local.is_unflushed or bool(self.producers.unflushed)

    def abandon(self) -> None:
        """Close the files without writing, because the directory failed."""
        self.cleaning.pause()
        with suppress(OSError):
            self.local.close_handles()

    @contextmanager
    def _convert_disk_errors(self, changed: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(error, changed) from error

    def _failure(self, error: OSError, changed: bool = False) -> LogDirFailure | StorageShortage:
        return disk_error(self.log_dir, error, f"for {self.topic_partition}", changed)

    # append

    def append_as_leader(
        self,
        records: memoryview | bytes,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int = PRODUCE_VERSION_ZSTD,
        fast_only: bool = False,
        preparation: PreparationResult | None = None,
    ) -> LogAppendInfo:
        """Check a producer's batch, unless `preparation` did, assign offsets and append it. A batch
        that repeats one of the last five is not appended: the result has the offsets in the log.

        Raises:
            NeedsThread: the append would take long, and `fast_only` is set.
            ApiError: `record.validation`, `producer_state` or the segment size refuses the batch.
        """
        local, rules, base_offset = self.local, self._rules, self.local.log_end_offset
        try:
            if preparation is not None:
                prepared = preparation.take(rules, now_ms, produce_version)
            elif origin is AppendOrigin.CLIENT:
                records = memoryview(records)
                prepared = prepare_client_batch(records, rules, now_ms, produce_version, fast_only)
            else:
                prepared = prepare_internal_batch(records, rules, now_ms)
            header = prepared.header
            if (size := len(prepared.records)) > self.config.segment_bytes:
                raise too_large(self.topic_partition, size, self.config)
            marker = None
            if header.producer_id >= 0:
                marker = marker_of(header, prepared.records)
                cached = self.producers.check(header, marker, origin is AppendOrigin.CLIENT)
                if cached is not None:
                    return duplicate_info(cached, self.log_start_offset, leader_epoch, header, size)
            if leader_epoch > self.epochs.latest:
                self.epochs.assign(leader_epoch, base_offset)
            if marker is not None and marker.control_type is ControlRecordType.ABORT:
                local.check_descriptors()  # its index entry is written after the append
            last_offset = base_offset + header.last_offset_delta
            max_timestamp = header.max_timestamp
            segment = self._segment_for(size, max_timestamp, base_offset, last_offset, now_ms)
            head = first_16_bytes(base_offset, header.batch_length, leader_epoch)
            segment.append(
                [head, memoryview(prepared.records)[16:]],
                size, base_offset, last_offset, max_timestamp, last_offset,
                self.config.index_interval_bytes,
            )  # fmt: skip
            local.log_end_offset = last_offset + 1
            if header.producer_id >= 0:
                self.producers.append(header, base_offset, marker, segment)
                self.first_unstable_offset = self.producers.state.first_unstable_offset
        except OSError as error:
            raise self._failure(error, local.log_end_offset != base_offset) from error
        if local.log_end_offset - local.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return LogAppendInfo(
            base_offset, last_offset, max_timestamp, prepared.log_append_time,
            self.log_start_offset, leader_epoch, header.record_count, size,
        )  # fmt: skip

    def append_as_follower(
        self, records: memoryview | bytes, now_ms: int, leader_epoch: int = LEADER_EPOCH_MAX
    ) -> LogAppendInfo:
        """Append a leader's batches unchanged, as one set (`fetched_batches`). The set may exceed
        `segment.bytes`, which may have been lowered. (Kafka's follower never catches up then.)

        Raises:
            ApiError: CORRUPT_MESSAGE.
            UnexpectedAppendOffset: the records begin before the log end offset.
        """
        batches = self._fetched_batches(records, now_ms, leader_epoch)
        local, base_offset = self.local, self.local.log_end_offset
        if not batches:
            return LogAppendInfo(
                base_offset, base_offset - 1, -1, -1, self.log_start_offset, -1, 0, 0
            )
        first, last, attributes = batches[0][1], batches[-1][1], 0
        size = batches[-1][0] + last.size
        newest, record_count, last_offset = first, 0, last.last_offset
        try:
            for _, header in batches:
                attributes |= header.attributes
                if header.max_timestamp > newest.max_timestamp:
                    newest = header
                record_count += max(header.record_count, 0)
            max_timestamp = newest.max_timestamp
            segment = self._segment_for(size, max_timestamp, first.base_offset, last_offset, now_ms)
            if attributes & CONTROL_BIT:
                local.check_descriptors()
            for _, header in batches:  # after the roll, which may fail
                if header.magic < MAGIC:
                    self.epochs.clear()
                elif header.partition_leader_epoch > self.epochs.latest:
                    local.check_descriptors()  # the epoch may be written later (`defer_writes`)
                    self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            segment.append(
                [memoryview(records)[:size]], size, -1, last_offset, max_timestamp,
                newest.last_offset, self.config.index_interval_bytes,
            )  # fmt: skip
            local.log_end_offset = last_offset + 1
            for position, header in batches:
                if header.producer_id >= 0:
                    marker = appended_marker(header, records, position)
                    self.producers.append(header, header.base_offset, marker, segment)
            if self.producers.state.producers:
                self.first_unstable_offset = self.producers.state.first_unstable_offset
        except OSError as error:
            raise self._failure(error, local.log_end_offset != base_offset) from error
        if local.log_end_offset - local.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return LogAppendInfo(
            first.base_offset, last_offset, newest.max_timestamp, -1, self.log_start_offset,
            last.partition_leader_epoch, record_count, size,
        )  # fmt: skip

    def _fetched_batches(
        self, records: memoryview | bytes, now_ms: int, leader_epoch: int
    ) -> list[tuple[int, BatchHeader]]:
        """The batches to append. After DeleteRecords a log may start inside a batch, and a new
        replica gets the whole batch: an empty log that starts there is reset to the batch's base
        offset (`Partition.appendRecordsToFollowerOrFutureReplica`). The caller raises the log start
        offset again.
        """
        try:
            return fetched_batches(records, self.local.log_end_offset, leader_epoch)
        except UnexpectedAppendOffset as error:
            if not self.log_start_offset == self.local.log_end_offset < error.next_offset:
                raise
            self.truncate_fully_and_start_at(error.first_offset, now_ms)
            return fetched_batches(records, self.local.log_end_offset, leader_epoch)

    def _segment_for(
        self, size: int, max_timestamp: int, first_offset: int, last_offset: int, now_ms: int
    ) -> LogSegment:
        segment = self.local.segments.active
        if segment.should_roll(size, max_timestamp, last_offset, now_ms, self.config):
            return self._roll(first_offset, last_offset, now_ms)
        return segment

    # read

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound: int,
        min_one_message: bool,
        include_aborted: bool = False,
        in_place: bool = False,
    ) -> FetchDataInfo:
        """Batches of one segment, from the one that holds `start_offset` up to `upper_bound`.

        With `min_one_message` the first batch is returned even if it is larger than `max_bytes`.
        `in_place`: the batches will be sent, so a long span stays in its file, as a `FileRegion`.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        if not self.log_start_offset <= start_offset <= self.local.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition "
                f"{self.topic_partition}, but we only have log segments from offset "
                f"{self.log_start_offset} to {self.local.log_end_offset}.",
            )
        found: SegmentRead | None = None
        if start_offset < upper_bound:
            end = self.offset_metadata(upper_bound)
            try:
                found = self.local.read(start_offset, max_bytes, end, min_one_message, in_place)
            except OSError as error:
                raise self._failure(error) from error
            if found is not None:
                info = FetchDataInfo(found.records, found.metadata)
                info.first_entry_incomplete = found.first_entry_incomplete
                if include_aborted:
                    with self._convert_disk_errors():
                        info.aborted_transactions = self.local.aborted_in(found, upper_bound)
                return info
            start_offset = upper_bound
        aborted: list[AbortedTransaction] | None = [] if include_aborted else None
        return FetchDataInfo(b"", self.offset_metadata(start_offset), aborted)

    def batches_after_damage(self, offset: int, end_offset: int) -> Batches:
        """The first batches that can be found behind bytes at `offset` that cannot be batches."""
        with self._convert_disk_errors():
            return batches_after(self.local, offset, end_offset)

    def read_tail(self, offset: int, max_bytes: int) -> bytes | FileRegion | None:
        """All bytes from `offset` on, if a recent batch begins there and they fit `max_bytes`;
        otherwise None, and the caller must use `read`.
        """
        segment = self.local.segments.active
        position = segment.recent_position(offset)
        if position is None or segment.records.size - position > max_bytes:
            return None
        try:
            return segment.records.region(position, segment.records.size - position)
        except OSError as error:
            raise self._failure(error) from error

    def aborted_transactions(self, start: int, stop: int) -> list[AbortedTransaction]:
        """The aborted transactions with data in [start, stop), by first offset."""
        with self._convert_disk_errors():
            return self.local.aborted_transactions(start, stop)

    def offset_for_timestamp(
        self, timestamp: int, upper_bound: int, search: Search = first_record, start_offset: int = 0
    ) -> TimestampOffset | None:
        """The first record below `upper_bound` whose timestamp is at least `timestamp`."""
        start_offset = max(start_offset, self.log_start_offset)
        with self._convert_disk_errors():
            found = time_lookup.first_at_or_after(self.local, timestamp, start_offset, search)
        return found if found is not None and found.offset < upper_bound else None

    def offsets_before(self, timestamp: int | None, now_ms: int) -> list[int]:
        """Base offsets of segments written by `timestamp`, newest first, for ListOffsets v0."""
        with self._convert_disk_errors():
            return time_lookup.offsets_before(self.local, timestamp, self.log_start_offset, now_ms)

    def offset_of_max_timestamp(self, search: Search, start_offset: int) -> TimestampOffset | None:
        """The first record with the greatest timestamp of the log."""
        with self._convert_disk_errors():
            return time_lookup.record_of_max_timestamp(self.local, search, start_offset)
