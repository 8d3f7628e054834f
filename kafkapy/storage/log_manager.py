"""All logs of one broker over its log directories (Kafka's `LogManager`).

The failure of one directory takes its logs out of service; other logs are unaffected. Called from
one thread; only `FlushTask.fsync` and cleaning may run in another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock, Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import (
    MetaProperties,
    encode_partition_metadata,
    write_clean_shutdown,
    write_offsets,
)
from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.disk_errors import StorageShortage, convert_disk_errors
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import DiskSpace, FileSystem
from kafkapy.storage.flush_task import FlushTask, close_logs
from kafkapy.storage.future_logs import FutureLogs
from kafkapy.storage.log_configs import LogConfigs
from kafkapy.storage.log_dir_loader import LogDir, choose_log, load_log_dir
from kafkapy.storage.log_dirs import LogDirLocks, claim, read_identity
from kafkapy.storage.log_loader import LoadParameters, LogLoader
from kafkapy.storage.producer_log import DEFAULT_PRODUCER_CONFIG, ProducerConfig
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.log.LogManager")

# Logs that are closed together at a shutdown. Closing opens about four files of each.
_LOGS_PER_CLOSE_STEP: Final = 64
# Logs that are checked for old segments in one step, of half a millisecond.
_LOGS_PER_RETENTION_STEP: Final = 50


class LogManager:
    """`logs` has the hosted logs by partition.

    `on_log_dir_failure(log_dir, error)` is called after a failure in a background task. It must
    call `fail_log_dir`, which is the default.
    """

    def __init__(
        self,
        fs: FileSystem,
        log_dirs: Sequence[str],
        broker_defaults: Mapping[str, ConfigValue],
        clock: Clock,
        random: Random,
        *,
        on_log_dir_failure: Callable[[str, LogDirFailure], None] | None = None,
        open_files_max: int | None = None,
        producers: ProducerConfig = DEFAULT_PRODUCER_CONFIG,
    ) -> None:
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self._partitions_by_topic: dict[str, set[TopicPartition]] = {}  # the keys of `logs`
        self.offline_log_dirs: list[str] = []
        self.on_log_dir_failure = on_log_dir_failure or self.fail_log_dir
        self.on_log_deleted: Callable[[UnifiedLog], None] = lambda log: None
        self.on_log_truncated: Callable[[UnifiedLog], None] = lambda log: None
        self._pool = FilePool(fs, open_files_max)
        self._fs = self._pool.fs
        self._configs = LogConfigs(broker_defaults)
        self._clock, self._random = clock, random
        self._producers = producers
        self._locks = LogDirLocks(fs)
        self._dirs = {
            path: LogDir(path, DeletionQueue(fs)) for path in (p.rstrip("/") for p in log_dirs)
        }
        self.future_logs = FutureLogs(self, self._dirs, self._fs, clock, random)

    # start

    @property
    def live_log_dirs(self) -> list[str]:
        return list(self._dirs)

    def open(self) -> None:
        """Create and lock the log directories. One that cannot be written goes offline.

        Raises:
            ConfigError: another broker holds one of them.
            LogDirFailure: no directory is left.
        """
        for path in self.live_log_dirs:
            with self._handle_failures(path):
                self._locks.acquire(path)

    def stored_identity(self) -> MetaProperties:
        """The broker and cluster of the directories, from `meta.properties`.

        Raises:
            ConfigError: they disagree.
        """
        for path in self.live_log_dirs:
            with self._handle_failures(path):
                read_identity(self._fs, [path])
        return read_identity(self._fs, self.live_log_dirs)

    def claim(self, broker_id: int, cluster_id: str) -> None:
        """Write missing `meta.properties` files.

        Raises:
            ConfigError: a directory belongs to another broker or cluster.
        """
        for path in self.live_log_dirs:
            with self._handle_failures(path):
                claim(self._fs, [path], broker_id, cluster_id, self._clock.time_ms())

    def load(self, topic_configs: Mapping[str, Mapping[str, str]]) -> None:
        """Load and recover every log; `topic_configs` are the topics' overrides.

        Raises:
            ConfigError: a directory contains a directory that is not Kafka's.
            LogDirFailure: no directory could be loaded.
        """
        for topic, overrides in topic_configs.items():
            self._configs.set_overrides(topic, overrides)
        unneeded: list[UnifiedLog] = []
        # After a crash, loading would make the same corrections again, so one wait is enough.
        with self.group_commit():
            for path, log_dir in list(self._dirs.items()):
                with self._handle_failures(path):
                    found = load_log_dir(log_dir, self._pool, self._configs.of, self._random,
                                         self._producers, self._clock.time_ms())  # fmt: skip
                    unneeded += filter(None, map(self._register_loaded, found))
                    logger.info("Loaded %d logs in %s", len(found), path)
        # After this, recovery can distinguish a log without an entry from a lost checkpoint.
        self.checkpoint_recovery_points()
        # Recovery may have cut logs below their high watermarks: see `register_log`.
        self.checkpoint_high_watermarks()
        for path, log_dir in list(self._dirs.items()):
            with self._handle_failures(path):
                for log in unneeded:
                    if log.log_dir == path:
                        self.retire_log(log)
                self.future_logs.resume(log_dir.unfinished_moves, path)

    # one log

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        return self.logs.get(topic_partition)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        overrides: Mapping[str, str],
        is_new: bool,
    ) -> UnifiedLog:
        """The hosted log. If there is none, it is created in the directory with the fewest logs.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR when the log may be in an offline directory, or all are
                offline, INVALID_TOPIC_EXCEPTION when no directory can be named after the partition.
            LogDirFailure: the chosen directory fails.
        """
        log = self.logs.get(topic_partition)
        if log is None:
            if self.offline_log_dirs and not (is_new and self._dirs):
                raise ApiError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{topic_partition} is not in a live log directory and may be in an offline "
                    f"one: {', '.join(self.offline_log_dirs)}",
                )
            name = log_names.partition_dir_name(topic_partition)
            self._configs.set_overrides(topic_partition.topic, overrides)
            log = self._create(topic_partition, name)
        if log.topic_id.is_zero and not topic_id.is_zero:
            with convert_disk_errors(log.log_dir):
                path = f"{log.directory}/{log_names.PARTITION_METADATA}"
                self._pool.durable.write(path, encode_partition_metadata(topic_id))
            log.topic_id = topic_id
        return log

    @contextmanager
    def group_commit(self, is_repeated: bool = False) -> Iterator[None]:
        """Make logs that are created or deleted in this context, and new leader epochs, durable at
        its end, with one wait.

        If a directory fails at the end, `on_log_dir_failure` is called, as in a background task.
        `is_repeated`: the writes may be lost, so a lack of descriptors is not a failure.
        """
        durable = self._pool.durable
        try:
            with durable.defer_writes():
                yield
        finally:
            for path in self.live_log_dirs:
                with self._handle_failures(path, is_repeated):
                    durable.commit(path)
            durable.discard_all()

    def _create(self, topic_partition: TopicPartition, name: str) -> UnifiedLog:
        preferred = self._dirs.get(self.future_logs.preferred_log_dirs.get(topic_partition, ""))
        log_dir = preferred or min(self._dirs.values(), key=lambda candidate: candidate.log_count)
        self.remove_checkpoint_entries(topic_partition, log_dir.path)
        directory = f"{log_dir.path}/{name}"
        try:
            log = self.open_log(topic_partition, log_dir.path, directory)
        except (LogDirFailure, StorageShortage):
            # The next attempt may choose another directory; the partition would be in both.
            unique = self._random.bytes(16).hex()
            self._pool.durable.discard_below(directory)
            log_dir.discard(self._fs, topic_partition, directory, unique, self._clock.time_ms())
            raise
        self.future_logs.preferred_log_dirs.pop(topic_partition, None)
        self.register_log(log)
        logger.info("Created log for partition %s in %s", topic_partition, log.directory)
        return log

    def open_log(
        self, topic_partition: TopicPartition, log_dir: str, directory: str, recovery_point: int = 0
    ) -> UnifiedLog:
        """Open a log that is new, or was just closed, and is flushed up to an offset."""
        return LogLoader(
            topic_partition, log_dir, directory, self._pool,
            self._configs.of(topic_partition.topic), self._random, self._dirs[log_dir].deletions,
            LoadParameters(True, recovery_point, 0, self._producers), self._clock.time_ms(),
        ).load()  # fmt: skip

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Take a log, and its copy in another directory, out of service. It is durable, because
        the controller keeps no record of a deleted topic.

        Raises:
            LogDirFailure: a directory fails.
        """
        self.future_logs.cancel(topic_partition)
        log = self._unregister(topic_partition)
        if log is not None:
            self.retire_log(log)

    def register_log(self, log: UnifiedLog) -> None:
        """Put a log into service for its partition."""
        self.logs[log.topic_partition] = log
        topic = log.topic_partition.topic
        self._partitions_by_topic.setdefault(topic, set()).add(log.topic_partition)
        self._dirs[log.log_dir].log_count += 1
        # Refers to the log by its partition: a log that refers to itself would never be freed.
        log.local.on_recovery_point_lowered = partial(
            self._on_recovery_point_lowered, log.topic_partition, log.log_dir
        )
        # Otherwise a crash would restore offsets that the log reaches again with other records: a
        # high watermark above what is replicated, or a log start offset above new records.
        log.on_high_watermark_lowered = partial(self._checkpoint_all_of, log.log_dir)

    def _unregister(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Remove and return the log of a partition, if there is one."""
        log = self.logs.pop(topic_partition, None)
        if log is not None:
            partitions = self._partitions_by_topic[topic_partition.topic]
            partitions.remove(topic_partition)
            if not partitions:
                del self._partitions_by_topic[topic_partition.topic]
        return log

    def _register_loaded(self, log: UnifiedLog) -> UnifiedLog | None:
        """Put a loaded log into service. If two directories have it, return the unneeded one."""
        other = self.logs.get(log.topic_partition)
        chosen, unneeded = (log, None) if other is None else choose_log(other, log)
        self.register_log(log)
        self.logs[log.topic_partition] = chosen
        return unneeded

    def _on_recovery_point_lowered(self, topic_partition: TopicPartition, log_dir: str) -> None:
        """Write the checkpoints that a truncation lowers. Called while the truncation runs."""
        self.checkpoint_recovery_points_of(log_dir)
        log = self.logs.get(topic_partition)
        if log is not None:
            try:
                self.on_log_truncated(log)
            except StorageShortage as shortage:
                raise LogDirFailure(log_dir, shortage.message) from shortage

    def retire_log(self, log: UnifiedLog) -> None:
        """Stop serving a log: its directory is renamed now, durably, and removed later."""
        log.cleaning.pause()
        log_dir, unique = self._dirs[log.log_dir], self._random.bytes(16).hex()
        log_dir.log_count -= 1
        with convert_disk_errors(log.log_dir):
            log_dir.retire(self._fs, log, unique, self._clock.time_ms())
            self._pool.durable.fsync_dir(log.log_dir)
        self.on_log_deleted(log)

    # configs

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply a topic's new overrides. Those of a topic without a log here are only checked.

        Raises:
            ConfigError: one is not allowed; nothing has changed.
        """
        # Not a search of all logs: a broker applies the configs of all topics in a new session.
        logs = [self.logs[each] for each in sorted(self._partitions_by_topic.get(topic, ()))]
        config = self._configs.change(topic, overrides)
        for log in logs:
            log.update_config(config)
        if not logs:
            self._configs.drop(topic)

    def drop_unused_configs(self) -> None:
        """Drop the configs of topics without a log here, after logs were deleted."""
        self._configs.keep(self._partitions_by_topic.keys())

    def update_broker_defaults(self, broker_defaults: Mapping[str, ConfigValue]) -> None:
        """Apply the broker's new defaults to every log."""
        self._configs.set_defaults(broker_defaults)
        for log in self.logs.values():
            log.update_config(self._configs.of(log.topic_partition.topic))

    # checkpoints

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` of every live directory."""
        for path in self.live_log_dirs:
            with self._handle_failures(path, True):
                self.checkpoint_recovery_points_of(path)

    def checkpoint_recovery_points_of(self, log_dir: str) -> None:
        """Write `recovery-point-offset-checkpoint` of one directory. Recovery does not read
        batches below it, so a truncation must lower it, and a cleaning raise it, beforehand.

        Raises:
            OSError: it is not written.
        """
        name = log_names.RECOVERY_POINT_CHECKPOINT
        self._write_offsets(log_dir, name, _recovery_point, self._logs_of(log_dir))

    def checkpoint_log_start_offsets(self) -> None:
        """Write `log-start-offset-checkpoint`, for logs whose start is inside their first
        segment.
        """
        self._checkpoint(log_names.LOG_START_CHECKPOINT, _start_in_segment)

    def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint` of every live directory."""
        self._checkpoint(log_names.HIGH_WATERMARK_CHECKPOINT, _high_watermark)

    def checkpoint_all(self) -> None:
        """Write all three checkpoints."""
        for path in self.live_log_dirs:
            with self._handle_failures(path, True):
                self._checkpoint_all_of(path)

    def _checkpoint_all_of(self, log_dir: str, *copies: UnifiedLog) -> None:
        logs = [*self._logs_of(log_dir), *copies]
        for name, value in _CHECKPOINTS:
            self._write_offsets(log_dir, name, value, logs)

    def remove_checkpoint_entries(self, topic_partition: TopicPartition, log_dir: str) -> None:
        """Remove the checkpoint entries of a log that has left a directory, before a new log of the
        same name is created. After a crash they would be applied to the new log.

        Raises:
            LogDirFailure, StorageShortage: they are not written.
        """
        checkpoints = self._dirs[log_dir].checkpointed_partitions.values()
        if any(topic_partition in partitions for partitions in checkpoints):
            with convert_disk_errors(log_dir):
                self._checkpoint_all_of(log_dir)

    def checkpoint_with_copy(self, copy: UnifiedLog) -> None:
        """Write the checkpoints of the directory of a copy that is about to replace its log. After
        a crash they must have the copy's start, and no entries of logs that have left.

        Raises:
            LogDirFailure, StorageShortage: they are not written.
        """
        with convert_disk_errors(copy.log_dir):
            self._checkpoint_all_of(copy.log_dir, copy)

    def _checkpoint(self, name: str, value: Callable[[UnifiedLog], int | None]) -> None:
        for path in self.live_log_dirs:
            with self._handle_failures(path, True):
                self._write_offsets(path, name, value, self._logs_of(path))

    def _write_offsets(
        self,
        log_dir: str,
        name: str,
        value: Callable[[UnifiedLog], int | None],
        logs: Sequence[UnifiedLog],
    ) -> None:
        offsets = {log.topic_partition: value(log) for log in logs}
        known = {key: offset for key, offset in offsets.items() if offset is not None}
        write_offsets(self._fs, f"{log_dir}/{name}", known)
        self._dirs[log_dir].checkpointed_partitions[name] = frozenset(known)

    def _logs_of(self, log_dir: str) -> list[UnifiedLog]:
        return [log for log in self.logs.values() if log.log_dir == log_dir]

    # background work

    def retention_slices(self, now_ms: int) -> Iterator[int]:
        """Delete old segments, of some logs in each step. Yields the number deleted in each."""
        logs = list(self.logs.values())
        for start in range(0, len(logs), _LOGS_PER_RETENTION_STEP):
            deleted = 0
            # The epochs may be written after the deletions, or not at all: see `LogLoader`.
            with self.group_commit(is_repeated=True):
                for log in logs[start : start + _LOGS_PER_RETENTION_STEP]:
                    # The log may have been deleted since the previous step.
                    if self.logs.get(log.topic_partition) is log:
                        with self._handle_failures(log.log_dir, True):
                            deleted += log.delete_old_segments(now_ms)
            yield deleted

    def expire_producers(self, now_ms: int) -> int:
        """Remove producers and verifications older than `producer.id.expiration.ms`. Returns their
        number.
        """
        return sum(log.producers.expire(now_ms) for log in self.logs.values())

    def flush_due_logs(self, now_ms: int) -> Iterator[FlushTask]:
        """Flush tasks for logs that rolled since their last flush, or whose `flush.ms` has passed,
        and for copies, which must be on disk when they replace their logs.
        Each holds descriptors until it is done, so the next one is created after that.
        """
        copies = self.future_logs.logs
        for log in [*self.logs.values(), *copies.values()]:
            is_copy = copies.get(log.topic_partition) is log
            rolled = log.local.unflushed_segments
            due = log.log_end_offset > log.recovery_point and (
                is_copy or now_ms - log.last_flush_ms >= log.config.flush_ms
            )
            # The log may have been deleted since the previous step.
            is_there = is_copy or self.logs.get(log.topic_partition) is log
            if (rolled or due) and is_there:
                task = None
                with self._handle_failures(log.log_dir, True):
                    task = FlushTask(log, log.flush_handle())
                if task is not None:
                    yield task

    def deletion_slices(self, now_ms: int) -> Iterator[int]:
        """Remove files and directories whose `file.delete.delay.ms` has passed, in slices. Yields
        the number of each slice.
        """
        for path, log_dir in list(self._dirs.items()):
            with self._handle_failures(path, True):
                yield from log_dir.deletions.run(now_ms)

    def volume_bytes(self, log_dir: str) -> DiskSpace:
        """(total, usable) bytes of the volume of a log directory; (-1, -1) if unknown."""
        try:
            return self._fs.disk_space(log_dir)
        except OSError:
            return DiskSpace(-1, -1)

    # failure and stop

    def fail_log_dir(self, log_dir: str, error: Exception) -> None:
        """Take a directory offline with its logs. Its files are not accessed again.

        Raises:
            LogDirFailure: it was the last directory.
        """
        if self._dirs.pop(log_dir, None) is None:
            return
        self.offline_log_dirs.append(log_dir)
        logger.error("Log directory %s is offline: %s", log_dir, error)
        self.future_logs.abandon(log_dir)
        for log in self._logs_of(log_dir):
            self._unregister(log.topic_partition)
            log.abandon()
        self._locks.release(log_dir)
        if not self._dirs:
            raise LogDirFailure(log_dir, f"All log directories are offline, the last by: {error}")

    @contextmanager
    def _handle_failures(self, log_dir: str, is_repeated: bool = False) -> Iterator[None]:
        """Call `on_log_dir_failure` for a failure of `log_dir`. Other directories are unaffected.

        `is_repeated`: the work is repeated later, so neither a lack of descriptors nor unreadable
        batches of one log are a failure. (They must not end the iteration over all logs.)
        """
        try:
            with convert_disk_errors(log_dir):
                yield
        except StorageShortage as shortage:
            if is_repeated:
                logger.warning("Put off: %s", shortage)
            else:
                self.on_log_dir_failure(log_dir, LogDirFailure(log_dir, str(shortage)))
        except LogDirFailure as failure:
            self.on_log_dir_failure(log_dir, failure)
        except ApiError as error:
            if not is_repeated:
                raise
            logger.error("Put off: %s", error.message)

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Close every log cleanly; write the checkpoints and each healthy directory's marker."""
        now_ms = self._clock.time_ms()
        self.future_logs.close()
        for path in self.live_log_dirs:
            logs = [log for log in self.logs.values() if log.log_dir == path]
            with self._handle_failures(path):
                for start in range(0, len(logs), _LOGS_PER_CLOSE_STEP):
                    close_logs(self._fs, logs[start : start + _LOGS_PER_CLOSE_STEP], now_ms)
        for path in self.live_log_dirs:
            with self._handle_failures(path):  # a directory that fails gets no marker
                self._checkpoint_all_of(path)
                marker = f"{path}/{log_names.CLEAN_SHUTDOWN_FILE}"
                write_clean_shutdown(self._fs, marker, broker_epoch)
        self.unlock()

    def unlock(self) -> None:
        """Unlock the log directories. `shutdown` and the end of the process do so, too."""
        self._locks.release_all()


def _recovery_point(log: UnifiedLog) -> int:
    return log.recovery_point


def _start_in_segment(log: UnifiedLog) -> int | None:
    """The start of a log, if it is inside its first segment."""
    start = log.log_start_offset
    return start if start > log.segments.first.base_offset else None


def _high_watermark(log: UnifiedLog) -> int:
    return log.high_watermark


_CHECKPOINTS: Final = (
    (log_names.RECOVERY_POINT_CHECKPOINT, _recovery_point),
    (log_names.LOG_START_CHECKPOINT, _start_in_segment),
    (log_names.HIGH_WATERMARK_CHECKPOINT, _high_watermark),
)
