"""Checks the consistency of a log directory, for `dump-log --verify` and tests.

Reads every byte and trusts nothing. An empty list of problems means that Apache Kafka would load
the directory without recovery and read every batch.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import (
    MalformedFile,
    read_epochs,
    read_offsets,
    read_partition_metadata,
)
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import FileSystem, read_file
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment, SegmentFiles
from kafkapy.storage.producer_snapshot import decode_snapshot
from kafkapy.storage.segment_recovery import ValidBatches


class Problem(NamedTuple):
    """One fault of one file."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class PartitionReport(NamedTuple):
    """A partition's directory: its contents and its faults."""

    log_start_offset: int
    log_end_offset: int
    problems: list[Problem]


_CHECKPOINTS: Final = (
    log_names.RECOVERY_POINT_CHECKPOINT,
    log_names.HIGH_WATERMARK_CHECKPOINT,
    log_names.LOG_START_CHECKPOINT,
    log_names.CLEANER_CHECKPOINT,
)


def verify_log_dir(fs: FileSystem, log_dir: str) -> list[Problem]:
    """Check the whole log directory of a broker that was stopped cleanly. An unreadable file is a
    problem; the rest of its partition is not checked.

    Raises:
        OSError: the directory cannot be listed.
    """
    problems: list[Problem] = []
    ends: dict[TopicPartition, int] = {}
    for entry in sorted(fs.list(log_dir)):
        if not entry.is_dir or entry.name in log_names.IGNORED_DIRS:
            continue
        try:
            topic_partition, state = log_names.parse_log_dir_name(log_dir, entry.name)
        except ConfigError as error:
            problems.append(Problem(f"{log_dir}/{entry.name}", str(error)))
            continue
        if state:
            continue
        directory = f"{log_dir}/{entry.name}"
        try:
            report = verify_partition(fs, directory)
        except OSError as error:
            problems.append(unreadable(error, directory))
            continue
        ends[topic_partition] = report.log_end_offset
        problems += report.problems
    for name in _CHECKPOINTS:
        path = f"{log_dir}/{name}"
        try:
            offsets = read_offsets(fs, path)
        except MalformedFile as error:
            problems.append(Problem(path, str(error)))
            continue
        except OSError as error:
            problems.append(unreadable(error, path))
            continue
        for topic_partition, offset in offsets.items():
            end = ends.get(topic_partition)
            if end is not None and not 0 <= offset <= end:
                problems.append(
                    Problem(path, f"{topic_partition} has offset {offset}, its log ends at {end}")
                )
    return problems


def unreadable(error: OSError, path: str) -> Problem:
    """The problem of a file, or of `path`, that cannot be read."""
    return Problem(str(error.filename or path), str(error.strerror))


def verify_partition(fs: FileSystem, directory: str) -> PartitionReport:
    """Check one partition's directory.

    Raises:
        OSError: something cannot be read.
    """
    return _PartitionCheck(fs, directory).run()


class _PartitionCheck:
    """Collects the problems of one directory."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._pool = FilePool(fs)
        self._fs = fs
        self._directory = directory
        self._problems: list[Problem] = []

    def _add_problem(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def run(self) -> PartitionReport:
        sizes: dict[int, dict[str, int]] = {}
        for name, _, size, _ in sorted(self._fs.list(self._directory)):
            parsed = log_names.parse_offset_file_name(name)
            if parsed is None:
                continue
            offset, kind, state = parsed
            if state == log_names.DELETED_SUFFIX:
                continue
            if state:
                self._add_problem(f"{self._directory}/{name}", f"left over with the suffix {state}")
            elif kind == log_names.SNAPSHOT_SUFFIX:
                self._check_snapshot(f"{self._directory}/{name}")
            elif kind in log_names.SEGMENT_SUFFIXES:
                sizes.setdefault(offset, {})[kind] = size
        end = first = min(sizes, default=0)
        for base_offset, found in sorted(sizes.items()):
            if end > base_offset:
                path = f"{self._directory}/{log_names.offset_file_name(base_offset, '.log')}"
                self._add_problem(path, f"the segment before it ends at offset {end}")
            end = max(self._check_segment(base_offset, found), end, base_offset)
        self._check_small_files(end)
        return PartitionReport(first, end, self._problems)

    def _check_snapshot(self, path: str) -> None:
        try:
            decode_snapshot(read_file(self._fs, path))
        except ApiError as error:
            self._add_problem(path, error.message)

    def _check_small_files(self, end: int) -> None:
        path = f"{self._directory}/{log_names.LEADER_EPOCH_CHECKPOINT}"
        try:
            entries = read_epochs(self._fs, path)
            if entries != sorted(entries) or len({start for _, start in entries}) != len(entries):
                self._add_problem(path, "its epochs or start offsets do not ascend")
            if LeaderEpochCache(entries, lambda *_: None).epoch_for_offset(end) != (
                entries[-1][0] if entries else -1
            ):
                self._add_problem(
                    path, f"it has an epoch that begins beyond the log end offset {end}"
                )
            read_partition_metadata(self._fs, f"{self._directory}/{log_names.PARTITION_METADATA}")
        except MalformedFile as error:
            self._add_problem(self._directory, str(error))

    def _check_segment(self, base_offset: int, found: dict[str, int]) -> int:
        """Check a segment. Returns the offset after its last valid batch."""
        sizes = [found.get(suffix) for suffix in log_names.SEGMENT_SUFFIXES]
        name = log_names.offset_file_name(base_offset, "")
        for suffix, size in zip(log_names.SEGMENT_SUFFIXES[:3], sizes, strict=False):
            if size is None:
                self._add_problem(f"{self._directory}/{name}{suffix}", "missing")
        files = SegmentFiles.of(sizes)
        segment = LogSegment(self._pool, self._directory, base_offset, LogConfig(), 0, 0, files)
        positions: list[int] = []
        last_offsets: list[int] = []
        max_timestamps: list[int] = []
        next_offset = base_offset
        if sizes[0] is not None:
            scan = ValidBatches(segment)
            for position, header, _ in scan:
                positions.append(position)
                last_offsets.append(header.last_offset)
                newest = max_timestamps[-1] if max_timestamps else -1
                max_timestamps.append(max(header.max_timestamp, newest))
            next_offset = scan.next_offset
            if scan.damage:
                self._add_problem(
                    segment.records.path, f"damaged at position {scan.position}: {scan.damage}"
                )
            segment.records.close_handle()
        if sizes[1]:
            self._check_offset_index(segment, sizes[1], positions, last_offsets)
        if sizes[2]:
            self._check_time_index(segment, sizes[2], last_offsets, max_timestamps)
        if sizes[3] and not segment.transaction_index.is_sane():
            self._add_problem(segment.transaction_index.path, "corrupt")
        return next_offset

    def _check_offset_index(
        self, segment: LogSegment, size: int, positions: list[int], last_offsets: list[int]
    ) -> None:
        """Check each entry: a batch begins at its position, and that one or a later one ends at its
        offset.
        """
        path = segment.offset_index.path
        if size % 8:
            self._add_problem(path, f"its size {size} is not a multiple of 8")
        before = 0
        for i, (relative, position) in enumerate(segment.offset_index.all_entries()):
            offset = segment.base_offset + relative
            at, batch = bisect_left(positions, position), bisect_left(last_offsets, offset)
            if relative <= before:
                self._add_problem(path, f"entry {i} has offset {offset}, which does not ascend")
            elif at == len(positions) or positions[at] != position:
                self._add_problem(path, f"entry {i}: no batch begins at position {position}")
            elif batch == len(last_offsets) or last_offsets[batch] != offset or batch < at:
                self._add_problem(
                    path, f"entry {i}: no batch from position {position} ends with {offset}"
                )
            else:
                before = relative
                continue
            return

    def _check_time_index(
        self, segment: LogSegment, size: int, last_offsets: list[int], max_timestamps: list[int]
    ) -> None:
        """Check each entry: it has the greatest timestamp up to the batch that ends with its
        offset.
        """
        path = segment.time_index.path
        if size % 12:
            self._add_problem(path, f"its size {size} is not a multiple of 12")
        before = -1
        for i, (timestamp, relative) in enumerate(segment.time_index.all_entries()):
            offset = segment.base_offset + relative
            batch = bisect_left(last_offsets, offset)
            if timestamp <= before:
                self._add_problem(
                    path, f"entry {i} has timestamp {timestamp}, which does not ascend"
                )
            elif batch == len(last_offsets) or last_offsets[batch] != offset:
                self._add_problem(path, f"entry {i}: no batch ends with offset {offset}")
            elif max_timestamps[batch] != timestamp:
                self._add_problem(
                    path,
                    f"entry {i} says {timestamp}, the batches up to offset {offset} say "
                    f"{max_timestamps[batch]}",
                )
            else:
                before = timestamp
                continue
            return
