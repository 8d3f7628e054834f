"""Loads every log of one log directory at start (Kafka's `LogManager.loadLogs`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from kafkapy.common.errors import ApiError, ConfigError, LogDirFailure
from kafkapy.common.ports import Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import MalformedFile, read_clean_shutdown, read_offsets
from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_loader import LoadParameters, LogLoader
from kafkapy.storage.producer_log import ProducerConfig
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.log.LogManager")


@dataclass(slots=True)
class LogDir:
    """One live log directory with the number of its logs in service (`log_count`).

    `checkpointed_partitions`: the partitions in each checkpoint on disk, by its name.
    """

    path: str
    deletions: DeletionQueue
    log_count: int = 0
    checkpointed_partitions: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    unfinished_moves: list[TopicPartition] = field(default_factory=list)
    """Logs whose move to this directory was interrupted by the broker's stop."""

    def release(self, log: UnifiedLog) -> None:
        """Close a log's files, because its directory is about to be renamed."""
        log.local.close_handles()
        self.deletions.discard_files(log.directory)

    def retire(self, fs: FileSystem, log: UnifiedLog, unique_hex: str, now_ms: int) -> None:
        """Rename a log's directory now and remove it later. Raises OSError."""
        path = f"{self.path}/{log_names.delete_dir_name(log.topic_partition, unique_hex)}"
        log_names.check_is_child(self.path, log.directory)
        self.release(log)
        fs.rename(log.directory, path)
        self.deletions.add_directory(path, now_ms + log.config.file_delete_delay_ms)
        logger.info("Log for partition %s is renamed to %s", log.topic_partition, path)

    def discard(
        self,
        fs: FileSystem,
        topic_partition: TopicPartition,
        directory: str,
        unique_hex: str,
        now_ms: int,
    ) -> None:
        """Rename the directory of a log that could not be created, and remove it later. If the
        rename fails, the directory stays.
        """
        path = f"{self.path}/{log_names.delete_dir_name(topic_partition, unique_hex)}"
        try:
            if fs.stat(directory) is None:
                return
            fs.rename(directory, path)
        except OSError as error:
            logger.warning("%s: %s", directory, error)
        else:
            self.deletions.add_directory(path, now_ms)


def load_log_dir(
    log_dir: LogDir,
    pool: FilePool,
    config_of: Callable[[str], LogConfig],
    random: Random,
    producers: ProducerConfig,
    now_ms: int,
) -> list[UnifiedLog]:
    """Load the partitions of `log_dir`, and continue interrupted deletions.

    The clean-shutdown marker is removed first: a crash while loading must not look clean.

    Raises:
        LogDirFailure: the disk fails, or a required checkpoint cannot be read.
        ConfigError: the directory contains a directory that is not Kafka's.
    """
    fs, path = pool.fs, log_dir.path
    try:
        names = [entry.name for entry in fs.list(path) if entry.is_dir]
        partitions = _partitions(path, sorted(names))
        marker = f"{path}/{log_names.CLEAN_SHUTDOWN_FILE}"
        clean = read_clean_shutdown(fs, marker) is not None
        if clean:
            fs.remove(marker)
            fs.fsync_dir(path)
        elif partitions:
            logger.info("Attempting recovery for all logs in %s: no clean shutdown file", path)
        points = _checkpoint_or_none(pool, log_dir, log_names.RECOVERY_POINT_CHECKPOINT)
        starts = _checkpoint_or_none(pool, log_dir, log_names.LOG_START_CHECKPOINT) or {}
        watermarks = _checkpoint_or_none(pool, log_dir, log_names.HIGH_WATERMARK_CHECKPOINT) or {}
    except OSError as error:
        raise LogDirFailure(path, f"I/O error while loading {path}: {error}") from error
    logs: list[UnifiedLog] = []
    for name, topic_partition, state in partitions:
        directory = f"{path}/{name}"
        if state:
            delay_ms = config_of(topic_partition.topic).file_delete_delay_ms
            _queue_leftover(log_dir, topic_partition, directory, state, now_ms, delay_ms)
            continue
        parameters = LoadParameters(
            clean,
            None if points is None else points.get(topic_partition, 0),
            starts.get(topic_partition, 0),
            producers,
        )
        loader = LogLoader(
            topic_partition, path, directory, pool, config_of(topic_partition.topic), random,
            log_dir.deletions, parameters, now_ms,
        )  # fmt: skip
        log = _load_or_fail(loader, path)
        log.update_high_watermark(watermarks.get(topic_partition, 0))
        logs.append(log)
    return logs


def _partitions(path: str, names: list[str]) -> list[tuple[str, TopicPartition, str]]:
    """The directories of partitions: name, partition and state."""
    found = []
    for name in names:
        if name in log_names.IGNORED_DIRS:
            continue
        try:
            found.append((name, *log_names.parse_log_dir_name(path, name)))
        except log_names.IllegalTopicDirectory as error:
            logger.warning("%s: it is left alone", error)
    return found


def _load_or_fail(loader: LogLoader, log_dir: str) -> UnifiedLog:
    """Load a log. If it cannot be opened, its directory fails: otherwise the log would be created
    empty.
    """
    try:
        return loader.load()
    except StorageShortage as shortage:
        raise LogDirFailure(log_dir, str(shortage)) from shortage


def _queue_leftover(
    log_dir: LogDir,
    topic_partition: TopicPartition,
    directory: str,
    state: str,
    now_ms: int,
    delete_delay_ms: int,
) -> None:
    """Continue a deletion, and start a move again. Other states are ignored."""
    if state == log_names.DELETE_DIR_SUFFIX:
        log_dir.deletions.add_directory(directory, now_ms + delete_delay_ms)
    elif state == log_names.FUTURE_DIR_SUFFIX:
        log_dir.deletions.add_directory(directory, now_ms)
        log_dir.unfinished_moves.append(topic_partition)


def _checkpoint_or_none(
    pool: FilePool, log_dir: LogDir, name: str
) -> dict[TopicPartition, int] | None:
    """A checkpoint, or None if it is missing, empty or malformed.

    The broker starts without it. Recovery reads the logs from their beginning, logs start at their
    first segment, and the replicas compute the high watermark again.
    """
    path = f"{log_dir.path}/{name}"
    found = pool.fs.stat(path)
    if found is None or found.size == 0:
        return None
    try:
        offsets = read_offsets(pool.fs, path)
    except MalformedFile as error:
        logger.warning("%s: starting without it", error)
        return None
    log_dir.checkpointed_partitions[name] = frozenset(offsets)
    return offsets


def choose_log(first: UnifiedLog, second: UnifiedLog) -> tuple[UnifiedLog, UnifiedLog]:
    """Choose between the logs of one partition in two directories. Returns the log to use, and the
    other one.

    The other log remains if a creation failed before the log had a topic id, or if the broker
    crashed just after a copy had replaced its log. (Kafka refuses to start.)

    Raises:
        ConfigError: either may be the log to use.
    """
    for log, other in ((first, second), (second, first)):
        if (other.topic_id.is_zero and other.log_end_offset == 0) or _has_all_of(log, other):
            return log, other
    raise ConfigError(
        f"Partition {first.topic_partition} is in both {first.directory} and {second.directory}: "
        "move one of them out of the log directories (log.dirs)"
    )


def _has_all_of(log: UnifiedLog, other: UnifiedLog) -> bool:
    """Whether `log` has the last batch of `other`, and so the batches before it. If one of them
    has no records, both must have the same end and topic.
    """
    end = other.log_end_offset
    if max(log.log_start_offset, other.log_start_offset) == log.log_end_offset == end:
        return log.topic_id == other.topic_id and log.log_start_offset <= other.log_start_offset
    if not max(log.log_start_offset, other.log_start_offset) < end <= log.log_end_offset:
        return False
    try:
        last, same = (one.read(end - 1, 0, end, True).records for one in (other, log))
    except ApiError:
        return False
    return bytes(last) == bytes(same)
