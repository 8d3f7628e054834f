"""The offsets of one log and the operations that move them: the cold half of `UnifiedLog`.

Invariant: `log_start_offset <= high_watermark <= log_end_offset`, `recovery_point <=
log_end_offset`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.storage.cleaning_state import CleaningState
from kafkapy.storage.disk_errors import StorageShortage, disk_error
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.local_log import FlushHandle, LocalLog
from kafkapy.storage.log_append import rules_of
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_offset import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_log import ProducerLog
from kafkapy.storage.retention import deletable_segments

logger = logging.getLogger("kafka.log.UnifiedLog")


class PartitionLog:
    """A log of a topic's partition in directory `directory` of `log_dir`.

    `log_start_offset`: the first offset a reader may ask for. `high_watermark`: all below it is
    replicated. `first_unstable_offset`: where the oldest undecided transaction begins, if any.
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
        self._high_watermark_metadata: LogOffsetMetadata | None = None
        self.update_config(local.config)

    def update_config(self, config: LogConfig) -> None:
        """Follow a new configuration from now on."""
        if not config.compact:
            self.cleaning.abort()
        self.config = self.local.config = config
        self._rules = rules_of(config)

    # where it begins and ends

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
        """Everything below it is known to be on the disk."""
        return self.local.recovery_point

    @property
    def size_bytes(self) -> int:
        return self.local.segments.total_bytes()

    @property
    def last_stable_offset(self) -> int:
        """The bound of read_committed readers: no undecided transaction begins below it."""
        first = self.first_unstable_offset
        high_watermark = self.high_watermark
        return high_watermark if first is None or first > high_watermark else first

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        return self.local.end_metadata()

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        known = self._high_watermark_metadata
        if known is None:
            with self._disk():
                known = self.local.offset_metadata(self.high_watermark)
            self._high_watermark_metadata = known
        return known

    @property
    def last_stable_offset_metadata(self) -> LogOffsetMetadata:
        return self.offset_metadata(self.last_stable_offset)

    def offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """The place of `offset` in the files.

        Raises:
            ApiError: CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        if offset >= self.local.log_end_offset:  # where followers and tailing consumers are
            return self.local.end_metadata()
        if offset == self.high_watermark:
            return self.high_watermark_metadata
        with self._disk():
            return self.local.offset_metadata(offset)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept within the log; what it is then."""
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
        """Hide what lies below `offset`; False if it is hidden already.

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
        with self._disk():
            self.epochs.truncate_from_start(offset)
        return True

    # leader epochs

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch in the log, -1 if it knows none."""
        return self.epochs.latest

    def assign_epoch_start(self, leader_epoch: int, offset: int) -> None:
        """`leader_epoch` begins at `offset`: durable before it has a record."""
        with self._disk():
            self.epochs.assign(leader_epoch, offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) that answers OffsetsForLeaderEpoch; (-1, -1) when undefined."""
        return self.epochs.end_offset_for(leader_epoch, self.local.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that `offset` was written in, -1 if not known."""
        return self.epochs.epoch_for_offset(offset)

    # truncate, roll, delete

    def truncate_to(self, offset: int, now_ms: int = 0) -> None:
        """Drop every record from `offset` on, with the epochs and producer state that knew them;
        and the rest of a batch of which `offset` is in the middle."""
        with self._disk():
            if offset < self.local.segments.first.base_offset:
                self.truncate_fully_and_start_at(offset, now_ms)
                return
            if offset < self.local.log_end_offset:
                logger.info("[%s] truncating to offset %d", self.topic_partition, offset)
                self.local.probe()
                with self._disk(changed=True):
                    self.local.truncate_to(offset, now_ms)
                    self.cleaning.truncate(self.segments.active.base_offset)
                    offset = self.local.log_end_offset
                    self.log_start_offset = min(self.log_start_offset, offset)
                    self.producers.rebuild(self.local, self.log_start_offset, offset, now_ms)
                    self.epochs.truncate_from_end(offset)
            else:
                self.epochs.truncate_from_end(offset)
        self._after_truncation()

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Drop every record; the log begins and ends at `offset`."""
        logger.info("[%s] dropping all; starting at offset %d", self.topic_partition, offset)
        with self._disk():
            self.local.probe()
        with self._disk(changed=True):
            self.local.truncate_fully(offset, now_ms)
            self.cleaning.truncate(offset)
            self.epochs.clear()
            self.producers.snapshots.remove_unless(lambda _: False)
            self.producers.state.load([])
        self.log_start_offset = offset
        self._after_truncation()

    def _after_truncation(self) -> None:
        self._high_watermark_metadata = None
        self.first_unstable_offset = self.producers.state.first_unstable_offset
        self.update_high_watermark(self.high_watermark)

    def roll(self, now_ms: int) -> LogSegment:
        """Begin a new segment where the data ends."""
        end = self.local.log_end_offset
        with self._disk():
            return self._roll(end, end, now_ms)

    def _roll(self, first_offset: int, last_offset: int, now_ms: int) -> LogSegment:
        segment = self.local.roll(first_offset, last_offset, now_ms)
        self.producers.take_snapshot(segment.base_offset)
        return segment

    def delete_old_segments(self, now_ms: int) -> int:
        """Delete what retention no longer keeps; how many segments.

        A log that is being cleaned waits for the next round (`LogCleanerManager.deletableLogs`).
        """
        if self.cleaning.in_progress and not self.cleaning.is_aborted:
            return 0
        with self._disk():
            segments, reason = deletable_segments(
                self.local.segments,
                self.config,
                self.log_start_offset,
                self.high_watermark,
                self.local.log_end_offset,
                now_ms,
            )
            if not segments:
                return 0
            if segments[-1] is self.local.segments.active:
                self.roll(now_ms)
            logger.info(
                "[%s] deleting segments %s: %s",
                self.topic_partition,
                ", ".join(str(segment.base_offset) for segment in segments),
                reason,
            )
            self._drop(segments, now_ms)
        start = self.local.segments.first.base_offset
        self.maybe_increment_log_start_offset(start, "segment deletion")
        return len(segments)

    def replace_segments(
        self, cleaned: Sequence[LogSegment], old: Sequence[LogSegment], now_ms: int
    ) -> None:
        """Put cleaned, flushed segments in the place of the closed ones they were made from."""
        kept = {segment.base_offset for segment in cleaned}
        with self._disk():
            self.local.probe()
        with self._disk(changed=True):
            self.local.replace_segments(cleaned, old, now_ms)
            for segment in old:
                if segment.base_offset not in kept:
                    self.producers.snapshots.remove(segment.base_offset)
        self._high_watermark_metadata = None

    def _drop(self, segments: Sequence[LogSegment], now_ms: int) -> None:
        self.local.delete(segments, now_ms)
        for segment in segments:
            self.producers.snapshots.remove(segment.base_offset)

    # flush and close

    @property
    def unflushed_records(self) -> int:
        return self.local.log_end_offset - self.local.recovery_point

    def flush_handle(self) -> FlushHandle:
        """The handle of a flush: `run_flush` it in any thread, then `mark_flushed`."""
        with self._disk():
            return self.local.flush_handle(self.producers.unflushed)

    def run_flush(self, handle: FlushHandle) -> None:
        """Force it to disk; may run in a worker thread."""
        with self._disk():
            handle.fsync()

    def mark_flushed(self, handle: FlushHandle, now_ms: int) -> None:
        """`handle` is on the disk: the recovery point moves up."""
        self.local.mark_flushed(handle)
        self.last_flush_ms = max(self.last_flush_ms, now_ms)
        done = set(handle.snapshots)
        self.producers.unflushed = [p for p in self.producers.unflushed if p not in done]

    def flush(self, now_ms: int = 0) -> None:
        """Force everything to disk, here and now."""
        with self._disk():
            self._flush(now_ms)

    def _flush(self, now_ms: int) -> None:
        handle = self.local.flush_handle(self.producers.unflushed)
        handle.fsync()
        self.mark_flushed(handle, now_ms)

    def close(self, now_ms: int = 0) -> None:
        """Leave the files as a clean shutdown does: a snapshot, trimmed indexes, all flushed."""
        handle = self.finish()
        if handle is not None:
            self.run_flush(handle)
            self.mark_flushed(handle, now_ms)
        self.local.close_handles()

    def finish(self) -> FlushHandle | None:
        """The first half of `close`: what is to be flushed then, if anything is."""
        with self._disk():
            end = self.local.log_end_offset
            self.local.finish(self.local.segments.active)
            if end not in self.producers.snapshots.offsets:
                self.producers.take_snapshot(end)
            if self.local.unflushed or self.producers.unflushed:
                return self.local.flush_handle(self.producers.unflushed)
            return None

    def abandon(self) -> None:
        """Give the descriptors back without a write: the directory failed."""
        self.cleaning.pause()
        with suppress(OSError):
            self.local.close_handles()

    @contextmanager
    def _disk(self, changed: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(error, changed) from error

    def _failure(self, error: OSError, changed: bool = False) -> LogDirFailure | StorageShortage:
        return disk_error(self.log_dir, error, f"for {self.topic_partition}", changed)
