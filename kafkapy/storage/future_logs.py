"""Logs that move to another directory of the same broker (KIP-113, Kafka's future replicas).

The copy grows in `<topic>-<partition>.<id>-future` of the other directory until it is complete.
Then it replaces the log, and the old directory is deleted. If the broker stops during a copy, the
next start begins the copy again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock, Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import encode_partition_metadata
from kafkapy.storage.disk_errors import StorageShortage, convert_disk_errors
from kafkapy.storage.filesystem import FileSystem, write_atomically
from kafkapy.storage.log_dir_loader import LogDir
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.log.LogManager")

CHUNK_BYTES: Final = 1 << 20
UNFLUSHED_BYTES_MAX: Final = 64 << 20
"""The limit of bytes that are flushed when a copy replaces its log. The event loop waits for it: up
to a second on a slow disk."""


class LogDirectories(Protocol):
    """The part of a log manager that this module needs."""

    logs: dict[TopicPartition, UnifiedLog]
    offline_log_dirs: list[str]

    def open_log(
        self, topic_partition: TopicPartition, log_dir: str, directory: str, recovery_point: int = 0
    ) -> UnifiedLog:
        """Open a log that is new, or was just closed, and is flushed up to an offset."""
        ...

    def retire_log(self, log: UnifiedLog) -> None:
        """Stop serving a log: its directory is renamed now, durably, and removed later."""
        ...

    def register_log(self, log: UnifiedLog) -> None:
        """Put a log into service for its partition."""
        ...

    def checkpoint_with_copy(self, copy: UnifiedLog) -> None:
        """Write the checkpoints of the directory of a copy that is about to replace its log."""
        ...

    def checkpoint_all(self) -> None:
        """Write the checkpoints of all directories."""
        ...


class FutureLogs:
    """`logs` has the copies by partition, `preferred_log_dirs` the directories of replicas that do
    not exist yet.
    """

    def __init__(
        self,
        directories: LogDirectories,
        dirs: Mapping[str, LogDir],
        fs: FileSystem,
        clock: Clock,
        random: Random,
    ) -> None:
        """`dirs` has the writable directories, by path."""
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self.preferred_log_dirs: dict[TopicPartition, str] = {}
        self._directories = directories
        self._dirs = dirs
        self._fs = fs
        self._clock = clock
        self._random = random

    def move(self, topic_partition: TopicPartition, path: str) -> None:
        """Move a log to the directory `path`. If the log is there already, its move is cancelled.

        Raises:
            ApiError: LOG_DIR_NOT_FOUND; KAFKA_STORAGE_ERROR for an offline directory;
                INVALID_TOPIC_EXCEPTION if the partition's name is invalid;
                REPLICA_NOT_AVAILABLE if the log does not exist yet; it will be created there.
            LogDirFailure: the directory fails.
        """
        path = path.rstrip("/")
        if path in self._directories.offline_log_dirs:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        if path not in self._dirs:
            raise ApiError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"Log directory {path} is not found in the config"
            )
        current = self._directories.logs.get(topic_partition)
        if current is None:
            log_names.partition_dir_name(topic_partition)
            self.preferred_log_dirs[topic_partition] = path
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE)
        future = self.logs.get(topic_partition)
        if future is not None and future.log_dir != path:
            self.cancel(topic_partition)
        if current.log_dir != path and topic_partition not in self.logs:
            self.logs[topic_partition] = self._open(current, path)
            current.cleaning.pause()
            logger.info("Moving log %s from %s to %s", topic_partition, current.log_dir, path)

    def cancel(self, topic_partition: TopicPartition) -> None:
        """Delete a copy, if there is one. The deletion is durable: if a power cut undid it, the
        next start would begin the move again.

        Raises:
            LogDirFailure: its directory fails.
        """
        future = self.logs.pop(topic_partition, None)
        if future is not None:
            self._resume_cleaning(topic_partition)
            unique, now_ms = self._random.bytes(16).hex(), self._clock.time_ms()
            with convert_disk_errors(future.log_dir):
                self._dirs[future.log_dir].retire(self._fs, future, unique, now_ms)
                self._fs.fsync_dir(future.log_dir)

    def copy(self, topic_partition: TopicPartition, now_ms: int) -> int:
        """Copy the next piece. Returns its size in bytes, 0 if the copy is complete.

        Raises:
            LogDirFailure: one of the two directories fails.
        """
        current, future = self._directories.logs[topic_partition], self.logs[topic_partition]
        _apply_truncation(current, future, now_ms)
        if future.log_end_offset == current.log_end_offset:
            return 0
        found = current.read(future.log_end_offset, CHUNK_BYTES, current.log_end_offset, True)
        return future.append_as_follower(found.records, now_ms).size_bytes

    def replace(self, topic_partition: TopicPartition, now_ms: int) -> UnifiedLog | None:
        """Replace a log with its copy. Returns None if the copy is not complete yet, or too few of
        its bytes are flushed.

        The copy takes over the log's producer state: batches that may be sent again,
        verifications, and markers above the high watermark. The copy's snapshot has none of them.

        Raises:
            LogDirFailure: one of the two directories fails.
        """
        current, future = self._directories.logs[topic_partition], self.logs[topic_partition]
        if future.log_end_offset != current.log_end_offset:
            return None
        with convert_disk_errors(future.log_dir):
            if future.local.unflushed_bytes() > UNFLUSHED_BYTES_MAX:
                return None
        future.close(now_ms)
        future.update_high_watermark(current.high_watermark)
        future.maybe_increment_log_start_offset(current.log_start_offset, "move of its log")
        future.check_descriptors()  # the steps below must not stop half-way
        source = current.log_dir
        log = self._replace_current(future, current)
        log.producers.take_over(current.producers)
        log.first_unstable_offset = current.first_unstable_offset
        for epoch, start_offset in current.epochs.entries():
            # A copy does not have an epoch without records.
            if epoch > log.epochs.latest:
                log.assign_epoch_start(epoch, start_offset)
        log.update_high_watermark(current.high_watermark)
        log.maybe_increment_log_start_offset(current.log_start_offset, "move between directories")
        self._directories.checkpoint_all()
        current.log_dir = source  # for the errors of a flush in progress
        logger.info("Moved log %s from %s to %s", topic_partition, source, log.log_dir)
        return log

    def abandon(self, log_dir: str) -> None:
        """Drop the copies in a failed directory, and the copies of logs in it."""
        for topic_partition, future in list(self.logs.items()):
            current = self._directories.logs.get(topic_partition)
            if log_dir in (future.log_dir, None if current is None else current.log_dir):
                del self.logs[topic_partition]
                self._resume_cleaning(topic_partition)
                future.abandon()

    def close(self) -> None:
        """Close the files. The next start begins the copies again."""
        for future in self.logs.values():
            future.abandon()
        self.logs.clear()

    def resume(self, unfinished_moves: Sequence[TopicPartition], path: str) -> None:
        """Begin the moves to a directory again, after the last stop interrupted them."""
        for topic_partition in unfinished_moves:
            if topic_partition in self._directories.logs:
                self.move(topic_partition, path)

    def _resume_cleaning(self, topic_partition: TopicPartition) -> None:
        """Resume the cleaning of a log whose move was cancelled."""
        current = self._directories.logs.get(topic_partition)
        if current is not None:
            current.cleaning.resume()

    def _open(self, current: UnifiedLog, log_dir: str) -> UnifiedLog:
        topic_partition = current.topic_partition
        unique = self._random.bytes(16).hex()
        directory = f"{log_dir}/{log_names.future_dir_name(topic_partition, unique)}"
        try:
            future = self._directories.open_log(topic_partition, log_dir, directory)
            future.topic_id = current.topic_id
            if not current.topic_id.is_zero:
                path = f"{future.directory}/{log_names.PARTITION_METADATA}"
                with convert_disk_errors(log_dir):
                    write_atomically(self._fs, path, encode_partition_metadata(current.topic_id))
        except StorageShortage:
            # A refused move must not begin at the next start.
            now_ms = self._clock.time_ms()
            self._dirs[log_dir].discard(self._fs, topic_partition, directory, unique, now_ms)
            raise
        return future

    def _replace_current(self, future: UnifiedLog, current: UnifiedLog) -> UnifiedLog:
        """Rename a closed copy to the log's name.

        The copy is renamed before the log is removed, so a crash leaves one or both.
        """
        directories = self._directories
        directory = f"{future.log_dir}/{log_names.partition_dir_name(future.topic_partition)}"
        log_names.check_is_child(future.log_dir, future.directory)
        directories.checkpoint_with_copy(future)
        self._dirs[future.log_dir].release(future)
        with convert_disk_errors(future.log_dir):
            self._fs.rename(future.directory, directory)
            self._fs.fsync_dir(future.log_dir)
        del self.logs[future.topic_partition]
        directories.retire_log(current)
        # From here on, the replica fails with the new directory.
        current.log_dir = future.log_dir
        log = directories.open_log(
            future.topic_partition, future.log_dir, directory, future.log_end_offset
        )
        directories.register_log(log)
        return log


def _apply_truncation(current: UnifiedLog, future: UnifiedLog, now_ms: int) -> None:
    """Apply truncations of a log, at its end or start, to its copy."""
    # Leader epochs do not show it: the new records may have the same epoch.
    end = current.local.truncated_to
    if end is not None:
        if end < future.log_end_offset:
            future.truncate_to(end, now_ms)
        current.local.truncated_to = None
    if future.log_end_offset < current.log_start_offset:
        future.truncate_fully_and_start_at(current.log_start_offset, now_ms)
