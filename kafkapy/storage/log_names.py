"""Names of files and directories of a log directory (`LogFileUtils`, `UnifiedLog`)."""

from __future__ import annotations

import re
from typing import Final

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition, is_topic_name, validate_topic_name

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
STRAY_DIR_SUFFIX: Final = "-stray"

META_PROPERTIES: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

IGNORED_DIRS: Final = frozenset({"remote-log-index-cache", "__cluster_metadata-0"})

_FILE_NAME_MAX: Final = 255
# Patterns are compiled on first use: most commands use none.
_SUFFIXED: Final = r"(?s:(.+-.+)\.\S+(-delete|-future|-stray))"
_OFFSET_FILE: Final = r"([0-9]+)(\.[a-z]+)(\.deleted|\.cleaned|\.swap)?"


class IllegalTopicDirectory(ConfigError):
    """A directory is named like one of a partition, but its topic name is invalid."""


def offset_file_name(offset: int, suffix: str) -> str:
    """A file named by a base offset: 20 digits and the suffix."""
    return f"{offset:020d}{suffix}"


def parse_offset_file_name(name: str) -> tuple[int, str, str] | None:
    """(offset, kind, state or '') of a segment or snapshot file; None for any other file."""
    match = re.fullmatch(_OFFSET_FILE, name)
    if match is None:
        return None
    return int(match[1]), match[2], match[3] or ""


def parse_log_dir_name(directory: str, name: str) -> tuple[TopicPartition, str]:
    """The partition of a directory in the log directory, and its state suffix or ''.

    Raises:
        IllegalTopicDirectory: the name before the partition is no valid topic name.
        ConfigError: the name is not of Kafka's form; a foreign directory aborts the start.
    """
    plain, state = name, ""
    if name.endswith((DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)):
        match = re.fullmatch(_SUFFIXED, name)
        plain, state = (match[1], match[2]) if match is not None else ("", "")
    topic, dash, partition = plain.rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        raise ConfigError(
            f"Directory {directory}/{name} is not named <topic>-<partition> (or "
            "<topic>-<partition>.<id>-delete): a log directory (log.dirs) may hold nothing but "
            "Kafka's own directories. Move it elsewhere and start again."
        )
    if not is_topic_name(topic):
        raise IllegalTopicDirectory(
            f"Directory {name!r} in {directory} is named after a topic that cannot be"
        )
    return TopicPartition(topic, int(partition)), state


def partition_dir_name(partition: TopicPartition) -> str:
    """The name of a partition's directory.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, no directory can have the name.
    """
    _validate(partition)
    name = str(partition)
    if len(name) > _FILE_NAME_MAX:
        # The file system's error would look like a failed disk.
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"the directory name of {name} is longer than {_FILE_NAME_MAX} characters",
        )
    return name


def check_is_child(log_dir: str, path: str) -> None:
    """Check that a path to create, rename or remove is directly in a log directory.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION if it is not.
    """
    parent, _, name = path.rpartition("/")
    if parent != log_dir or name in ("", ".", ".."):
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{path!r} is not directly in the log directory {log_dir}",
        )


def _validate(partition: TopicPartition) -> None:
    validate_topic_name(partition.topic)
    if partition.partition < 0:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition} has a negative partition index"
        )


def delete_dir_name(partition: TopicPartition, unique_hex: str) -> str:
    """The name of a directory whose partition is deleted, shortened to the file system's limit.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, as `partition_dir_name`.
    """
    return _unique_dir_name(partition, unique_hex, DELETE_DIR_SUFFIX)


def future_dir_name(partition: TopicPartition, unique_hex: str) -> str:
    """The name of a directory that will replace the partition's; shortened likewise.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, as `partition_dir_name`.
    """
    return _unique_dir_name(partition, unique_hex, FUTURE_DIR_SUFFIX)


def _unique_dir_name(partition: TopicPartition, unique_hex: str, state: str) -> str:
    _validate(partition)
    suffix = f"-{partition.partition}.{unique_hex}{state}"
    return partition.topic[: _FILE_NAME_MAX - len(suffix)] + suffix
