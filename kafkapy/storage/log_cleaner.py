"""Selects the next compacted log to clean, and commits the result (`LogCleanerManager`).

One cleaning at a time: `next_cleaning` in the loop, `Cleaning.run` in a worker thread (or step by
step), `commit` in the loop. `cleaner-offset-checkpoint` holds the first dirty offset of each log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage.checkpoints import MalformedFile, encode_offsets, read_offsets, write_offsets
from kafkapy.storage.cleaning import CleanedSegment, Cleaning, plan_cleaning
from kafkapy.storage.disk_errors import StorageShortage, convert_disk_errors, disk_error
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.log_names import CLEANED_SUFFIX, CLEANER_CHECKPOINT
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.log.LogCleaner")

DEDUPE_BUFFER_BYTES: Final = 134_217_728


class Candidate(NamedTuple):
    """A log that can be cleaned. `ratio` is that of cleanable bytes to all bytes to read."""

    log: UnifiedLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    cleanable_bytes: int
    ratio: float
    is_overdue: bool

    @property
    def is_due(self) -> bool:
        return self.cleanable_bytes > 0 and (
            self.is_overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio
        )


class LogCleaner:
    """Compacts the logs of a LogManager. `running` is the partition being cleaned, if any."""

    def __init__(
        self, fs: FileSystem, manager: LogManager, buffer_bytes: int = DEDUPE_BUFFER_BYTES
    ) -> None:
        self.running: TopicPartition | None = None
        self._fs = fs
        self._manager = manager
        self._buffer_bytes = buffer_bytes
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}
        self._uncleanable: set[TopicPartition] = set()
        manager.on_log_deleted = self.on_log_deleted
        manager.on_log_truncated = self.on_log_truncated

    def next_cleaning(self, now_ms: int) -> Cleaning | None:
        """Plan a cleaning of the dirtiest log that is due; None if a cleaning is in progress."""
        if self.running is not None:
            return None
        for candidate in sorted(self._due_candidates(now_ms), key=lambda c: c.ratio, reverse=True):
            log = candidate.log
            if not log.cleaning.may_begin:  # its directory has failed since
                continue
            try:
                with convert_disk_errors(log.log_dir):
                    plan = plan_cleaning(
                        log,
                        candidate.first_dirty_offset,
                        candidate.first_uncleanable_offset,
                        now_ms,
                    )
            except StorageShortage as shortage:
                logger.warning("Log %s is not cleaned now: %s", log.topic_partition, shortage)
                return None
            except ApiError as error:
                self._mark_uncleanable(log, error)
                continue
            except LogDirFailure as failure:
                self._manager.on_log_dir_failure(log.log_dir, failure)
                continue
            log.cleaning.begin()
            self.running = log.topic_partition
            return Cleaning(log, plan, self._fs, self._buffer_bytes)
        return None

    def _due_candidates(self, now_ms: int) -> Iterable[Candidate]:
        for log in list(self._manager.logs.values()):
            if (
                log.config.compact
                and log.cleaning.may_begin
                and log.topic_partition not in self._uncleanable
            ):
                try:
                    with convert_disk_errors(log.log_dir):
                        candidate = self._candidate(log, now_ms)
                except StorageShortage as shortage:
                    logger.warning("%s is looked at later: %s", log.topic_partition, shortage)
                    continue
                except ApiError as error:
                    self._mark_uncleanable(log, error)
                    continue
                except LogDirFailure as failure:
                    self._manager.on_log_dir_failure(log.log_dir, failure)
                    continue
                if candidate.is_due:
                    yield candidate

    def _candidate(self, log: UnifiedLog, now_ms: int) -> Candidate:
        dirty = self._first_dirty_offset(log)
        uncleanable = max(dirty, _first_uncleanable_offset(log, dirty, now_ms))
        clean_bytes = cleanable_bytes = 0
        oldest: int | None = None
        for segment, following in pairwise(log.segments):
            if following.base_offset > uncleanable:
                uncleanable = max(dirty, segment.base_offset)
                break
            if segment.base_offset < dirty:
                clean_bytes += segment.size
            if following.base_offset <= dirty:
                continue
            # A segment that a full map left half dirty counts in both numbers, as in Kafka.
            cleanable_bytes += segment.size
            if segment.size and (first := segment.first_timestamp) > 0:
                oldest = first if oldest is None else min(oldest, first)
        total = clean_bytes + cleanable_bytes
        overdue = oldest is not None and now_ms - oldest > log.config.max_compaction_lag_ms
        return Candidate(
            log, dirty, uncleanable, cleanable_bytes, cleanable_bytes / total if total else 0.0,
            overdue,
        )  # fmt: skip

    def _first_dirty_offset(self, log: UnifiedLog) -> int:
        truncated_to = log.cleaning.truncated_to
        if truncated_to is not None:
            self._lower_first_dirty_offset(log, truncated_to)
            log.cleaning.truncated_to = None
        start = log.log_start_offset
        known = self._offsets(log.log_dir).get(log.topic_partition, start)
        if known > log.log_end_offset:
            # New records will reach this offset. Without this note they would count as clean.
            self._set_first_dirty_offset(log, start)
        return known if start <= known <= log.log_end_offset else start

    def on_log_truncated(self, log: UnifiedLog) -> None:
        """Record that a truncated log is dirty from its active segment on
        (`maybeTruncateCheckpoint`).

        Raises:
            LogDirFailure, StorageShortage: it is not recorded.
        """
        self._lower_first_dirty_offset(log, log.segments.active.base_offset)

    def _lower_first_dirty_offset(self, log: UnifiedLog, offset: int) -> None:
        if self._offsets(log.log_dir).get(log.topic_partition, offset) > offset:
            self._set_first_dirty_offset(log, offset)

    def _set_first_dirty_offset(self, log: UnifiedLog, offset: int) -> None:
        """Set and write the first dirty offset of a log. If the write fails, nothing changes."""
        offsets = {**self._offsets(log.log_dir), log.topic_partition: offset}
        self._write(log, offsets)
        self._checkpoints[log.log_dir] = offsets

    def _offsets(self, log_dir: str) -> dict[TopicPartition, int]:
        known = self._checkpoints.get(log_dir)
        if known is None:
            try:
                known = read_offsets(self._fs, f"{log_dir}/{CLEANER_CHECKPOINT}")
            except (MalformedFile, OSError) as error:
                logger.warning("%s: everything counts as dirty", error)
                known = {}
            self._checkpoints[log_dir] = known
        return known

    def on_log_deleted(self, log: UnifiedLog) -> None:
        """Remove a deleted log. A later log of the same name is dirty from its beginning.

        Raises:
            LogDirFailure: its directory fails.
        """
        self._uncleanable.discard(log.topic_partition)
        offsets = self._offsets(log.log_dir)
        if offsets.pop(log.topic_partition, 0):
            # Written together with the deletion, which is already done. If this were refused for
            # lack of a descriptor, the controller would halt the deletion of the topic.
            with convert_disk_errors(log.log_dir):
                path = f"{log.log_dir}/{CLEANER_CHECKPOINT}"
                log.local.pool.durable.write(path, encode_offsets(self._without_deleted(offsets)))

    def _write(self, log: UnifiedLog, offsets: Mapping[TopicPartition, int]) -> None:
        path = f"{log.log_dir}/{CLEANER_CHECKPOINT}"
        with convert_disk_errors(log.log_dir):
            write_offsets(log.local.pool.fs, path, self._without_deleted(offsets))

    def _without_deleted(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in offsets.items() if tp in self._manager.logs}

    def commit(self, cleaning: Cleaning, now_ms: int) -> bool:
        """Replace the segments with the cleaned ones. Returns False if the cleaning was aborted.

        Raises:
            LogDirFailure: the directory fails; the next start finishes or undoes the replacement.
        """
        log = cleaning.log
        if not self._end_cleaning(cleaning):
            return False
        try:
            with convert_disk_errors(
                log.log_dir
            ):  # recovery treats a gap above the recovery point as damage
                self._manager.checkpoint_recovery_points_of(log.log_dir)
            for cleaned in cleaning.cleaned:
                old = [self._source(log, source.base_offset) for source in cleaned.sources]
                log.replace_segments([self._open(log, cleaned)], old, now_ms)
            self._set_first_dirty_offset(log, cleaning.end_offset)
        except StorageShortage as shortage:
            logger.warning("Log %s is cleaned in part only: %s", log.topic_partition, shortage)
            cleaning.discard()
            return False
        _log_cleaned(cleaning, now_ms)
        return True

    def _end_cleaning(self, cleaning: Cleaning) -> bool:
        """End the cleaning, so that another log can be cleaned. Returns False if it was aborted."""
        self.running = None
        log = cleaning.log
        if log.cleaning.end():
            return True
        logger.info("The cleaning for partition %s is aborted", log.topic_partition)
        cleaning.discard()
        return False

    def _source(self, log: UnifiedLog, base_offset: int) -> LogSegment:
        segment = log.segments.get(base_offset)
        assert segment is not None, f"segment {base_offset} of {log.topic_partition} is gone"
        return segment

    def _open(self, log: UnifiedLog, cleaned: CleanedSegment) -> LogSegment:
        return LogSegment(
            log.local.pool, log.directory, cleaned.base_offset, log.config, 0, 0, cleaned.files,
            CLEANED_SUFFIX,
        )  # fmt: skip

    def fail(self, cleaning: Cleaning, error: BaseException) -> None:
        """Handle an error of `cleaning.run`. An unreadable log is not cleaned again.

        After an abort any error is ignored, since files may be removed, renamed or truncated. If
        descriptors or memory were short, the log is cleaned later.

        Raises:
            LogDirFailure: the disk failed.
        """
        log = cleaning.log
        if not self._end_cleaning(cleaning):
            return
        if isinstance(error, OSError):
            found = disk_error(log.log_dir, error)
            if isinstance(found, LogDirFailure):
                raise found from error
            logger.warning("Log %s is not cleaned now: %s", log.topic_partition, found)
        else:
            self._mark_uncleanable(log, error)
        cleaning.discard()

    def _mark_uncleanable(self, log: UnifiedLog, error: BaseException) -> None:
        self._uncleanable.add(log.topic_partition)
        logger.error(
            "Log %s cannot be cleaned any more: %s",
            log.topic_partition,
            str(error) or type(error).__name__,
            exc_info=None if isinstance(error, ApiError) else error,
        )


def _log_cleaned(cleaning: Cleaning, now_ms: int) -> None:
    """Write Kafka's log line, with the MB that were read and the time of both passes."""
    stats = cleaning.stats
    mb = stats.bytes_read / 2**20
    elapsed_s = max(now_ms - cleaning.plan.now_ms, 1) / 1000
    logger.info(
        "Cleaned log %s (dirty section = [%d, %d]): %.1f MB of log processed in %.1f seconds"
        " (%.1f MB/sec), %d bytes written, %d records indexed",
        cleaning.log.topic_partition,
        cleaning.plan.first_dirty_offset,
        cleaning.end_offset,
        mb,
        elapsed_s,
        mb / elapsed_s,
        stats.bytes_written,
        stats.records_indexed,
    )


def _first_uncleanable_offset(log: UnifiedLog, dirty: int, now_ms: int) -> int:
    """The end of the cleanable part: not active, flushed, below the LSO, and older than the lag."""
    bound = min(log.segments.active.base_offset, log.last_stable_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments.from_offset(dirty):
            if segment.newest_ms() > now_ms - lag_ms:
                bound = min(bound, segment.base_offset)
                break
    return bound
