"""Opens a partition's directory: left-overs, segments, recovery, producers (Kafka's `LogLoader`).

After a clean shutdown only the last few batches are read. Otherwise every segment from the recovery
point on is read again, and truncated at its first damage. An offset gap between two of them is
damage too, unless compaction made it (decision 0041).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.common.ports import Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import (
    MalformedFile,
    encode_epochs,
    read_epochs,
    read_partition_metadata,
)
from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.disk_errors import disk_error
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.leader_epoch_cache import UNDEFINED_EPOCH, EpochEntries, LeaderEpochCache
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment, SegmentFiles
from kafkapy.storage.producer_log import DEFAULT_PRODUCER_CONFIG, ProducerConfig, ProducerLog
from kafkapy.storage.producer_snapshot import SnapshotFiles
from kafkapy.storage.segment_recovery import (
    RecoveryResult,
    damage_of,
    epochs_in,
    has_sane_indexes,
    recover_segment,
)
from kafkapy.storage.swap_files import finish_swaps
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger("kafka.log.LogLoader")


@dataclass(slots=True)
class LoadParameters:
    """The checkpoints' values for a log, before it is opened. The defaults are those of a new log.

    `recovery_point` is None when its checkpoint is missing or malformed.
    """

    had_clean_shutdown: bool = True
    recovery_point: int | None = 0
    log_start_offset: int = 0
    producers: ProducerConfig = DEFAULT_PRODUCER_CONFIG


class LogLoader:
    """Loads one log; used once."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        log_dir: str,
        directory: str,
        pool: FilePool,
        config: LogConfig,
        random: Random,
        deletions: DeletionQueue,
        parameters: LoadParameters,
        now_ms: int,
    ) -> None:
        log_names.check_is_child(log_dir, directory)
        self._topic_partition = topic_partition
        self._log_dir = log_dir
        self._directory = directory
        self._pool = pool
        self._config = config
        self._parameters = parameters
        self._now_ms = now_ms
        self._local = LocalLog(pool, directory, config, random, deletions)
        self._unsound_base_offsets: set[int] = set()
        self._compacted: set[int] = set()
        self._recovery_point = parameters.recovery_point or 0
        self._has_gap = False

    def load(self) -> UnifiedLog:
        """Open, recover and return the log.

        Raises:
            LogDirFailure: the disk fails, or a small file of the directory is malformed.
            StorageShortage: descriptors or memory are short.
        """
        try:
            return self._load()
        except (MalformedFile, ApiError) as error:
            raise LogDirFailure(self._log_dir, str(error)) from error
        except OSError as error:
            self._local.close_handles()
            doing = f"while loading {self._topic_partition}"
            raise disk_error(self._log_dir, error, doing) from error

    def _load(self) -> UnifiedLog:
        fs, directory, parameters = self._pool.fs, self._directory, self._parameters
        durable = self._pool.durable
        fs.make_dir(directory)
        self._compacted = finish_swaps(self._pool, directory)
        producers = ProducerLog(self._open_segments(), parameters.producers)
        epoch_path = f"{directory}/{log_names.LEADER_EPOCH_CHECKPOINT}"

        def write(entries: EpochEntries) -> None:
            durable.write(epoch_path, encode_epochs(entries))

        known = self._read_epochs(epoch_path)
        epochs = LeaderEpochCache(known, write)
        self._recover(epochs, producers)
        local = self._local
        epochs.truncate_from_end(local.log_end_offset)
        log_start_offset = max(parameters.log_start_offset, local.segments.first.base_offset)
        if epochs.epoch_for_offset(log_start_offset) == UNDEFINED_EPOCH:
            self._find_epochs(epochs)
        epochs.truncate_from_start(log_start_offset)
        self._load_producers(producers, log_start_offset)
        metadata_path = f"{directory}/{log_names.PARTITION_METADATA}"
        topic_id = read_partition_metadata(fs, metadata_path) or ZERO_UUID
        log = UnifiedLog(
            self._topic_partition, topic_id, self._log_dir, local, epochs, producers,
            log_start_offset, self._now_ms,
        )  # fmt: skip
        if self._has_gap:
            # An accepted gap must lie below the recovery point of the next start.
            log.flush(self._now_ms)
        return log

    def _read_epochs(self, path: str) -> EpochEntries:
        try:
            return read_epochs(self._pool.fs, path)
        except MalformedFile as error:
            logger.warning("%s: reading the leader epochs from the batches", error)
            return []

    def _find_epochs(self, epochs: LeaderEpochCache) -> None:
        """Read the epochs before the first known one from the batch headers.

        `leader-epoch-checkpoint` may be lost. Or a power cut undid a deletion of records, so that
        the log begins before its first epoch. If a follower truncated this log to the part
        without epochs, it could not find where its log diverges from its leader's.
        """
        known = epochs.entries()
        first = known[0][1] if known else self._local.log_end_offset
        found: EpochEntries = []
        for segment in reversed(list(self._local.segments)):
            if segment.base_offset < first:
                entries, is_old = epochs_in(segment)
                found = [(epoch, start) for epoch, start in entries if start < first] + found
                if is_old:
                    break
        if not found:
            return
        epochs.clear()
        for epoch, start_offset in found + known:
            if epoch > epochs.latest:
                epochs.assign(epoch, start_offset)

    def _open_segments(self) -> SnapshotFiles:
        """Open segments with a `.log`, remove indexes without a `.log`, and collect the segments
        whose indexes must be rebuilt.
        """
        fs, directory = self._pool.fs, self._directory
        sizes: dict[int, dict[str, int]] = {}
        snapshots: list[int] = []
        for name, _, size, _ in fs.list(directory):
            parsed = log_names.parse_offset_file_name(name)
            if parsed is None:
                continue
            if parsed[1] == log_names.SNAPSHOT_SUFFIX:
                snapshots.append(parsed[0])
            elif parsed[1] in log_names.SEGMENT_SUFFIXES:
                sizes.setdefault(parsed[0], {})[parsed[1]] = size
        for base_offset, found in sorted(sizes.items()):
            if log_names.LOG_SUFFIX not in found:
                for suffix in found:
                    fs.remove(f"{directory}/{log_names.offset_file_name(base_offset, suffix)}")
                continue
            files = SegmentFiles.of([found.get(suffix) for suffix in log_names.SEGMENT_SUFFIXES])
            segment = LogSegment(
                self._pool, directory, base_offset, self._config, self._now_ms, 0, files
            )
            self._local.segments.add(segment)
            if not has_sane_indexes(
                segment, files.offset_index is not None, files.time_index is not None
            ):
                self._unsound_base_offsets.add(base_offset)
        return SnapshotFiles(fs, directory, snapshots)

    def _recover(self, epochs: LeaderEpochCache, producers: ProducerLog) -> None:
        local, parameters = self._local, self._parameters
        if len(local.segments):
            if parameters.had_clean_shutdown:
                self._load_after_clean_shutdown(producers)
            else:
                self._recover_after_crash(epochs, producers)
        if not len(local.segments):
            self._create_directory(parameters.log_start_offset)
        elif local.log_end_offset < parameters.log_start_offset:
            logger.warning(
                "[%s] ends at offset %d, before its log start offset %d: dropping all of it",
                self._topic_partition,
                local.log_end_offset,
                parameters.log_start_offset,
            )
            local.truncate_fully(parameters.log_start_offset, self._now_ms)
            producers.state.load([])
        end = local.log_end_offset
        # Recovery has read the rest, but only a flush makes it durable.
        point = end if parameters.had_clean_shutdown else self._recovery_point
        local.recovery_point = min(point, end)

    def _create_directory(self, base_offset: int) -> None:
        self._local.new_segment(base_offset, self._now_ms)
        self._local.log_end_offset = base_offset
        self._pool.durable.fsync_dir(self._directory)
        self._pool.durable.fsync_dir(self._log_dir)

    def _load_after_clean_shutdown(self, producers: ProducerLog) -> None:
        """After a clean shutdown, rebuild missing indexes and find the end of the active
        segment.
        """
        segments = self._local.segments
        active = segments.active
        for segment in segments:
            if segment is not active and segment.base_offset in self._unsound_base_offsets:
                self._rebuild_closed_segment(segment, producers)
        if active.base_offset not in self._unsound_base_offsets:
            try:
                self._local.log_end_offset = active.next_offset()
                return
            except ApiError as error:
                logger.warning("[%s] reading the end: %s", self._topic_partition, error)
        recovered = self._rebuild_indexes(active, producers)
        self._truncate_at_damage(active, recovered.valid_bytes, recovered.damage)
        self._local.log_end_offset = recovered.next_offset

    def _rebuild_closed_segment(self, segment: LogSegment, producers: ProducerLog) -> None:
        """Rebuild the indexes of a closed segment. Damage is logged, and nothing is truncated."""
        recovered = self._rebuild_indexes(segment, producers)
        self._local.finish(segment)
        logger.warning(
            "[%s] rebuilt the indexes of %s%s",
            self._topic_partition,
            segment.records.path,
            f"; it is damaged at position {recovered.valid_bytes}: {recovered.damage}"
            if recovered.damage
            else "",
        )

    def _rebuild_indexes(self, segment: LogSegment, producers: ProducerLog) -> RecoveryResult:
        """Rebuild the indexes of a segment, including a corrupt transaction index. If batches
        cannot be read, it stays corrupt, because aborted records must not look committed.
        """
        earlier = None
        if not segment.transaction_index.is_sane() and not damage_of(segment):
            try:
                earlier = producers.at_offset(self._local, segment.base_offset, self._now_ms)
            except ApiError as error:
                logger.error("%s stays corrupt: %s", segment.transaction_index.path, error)
        return recover_segment(segment, self._config.index_interval_bytes, None, earlier)

    def _recover_after_crash(self, epochs: LeaderEpochCache, producers: ProducerLog) -> None:
        """After a crash, read everything from the recovery point on, and truncate where records are
        lost.
        """
        local, parameters = self._local, self._parameters
        segments_to_recover = local.segments.from_offset(self._recovery_point)
        for segment in local.segments:
            if (
                segment.base_offset in self._unsound_base_offsets
                and segment not in segments_to_recover
            ):
                self._rebuild_closed_segment(segment, producers)
        start = max(parameters.log_start_offset, local.segments.first.base_offset)
        first = segments_to_recover[0].base_offset
        producers.rebuild(local, min(start, first), first, self._now_ms)
        for i, segment in enumerate(segments_to_recover):
            if i:
                producers.take_snapshot(segment.base_offset)
            recovered = recover_segment(
                segment, self._config.index_interval_bytes, epochs, producers
            )
            local.log_end_offset = recovered.next_offset
            self._truncate_at_damage(segment, recovered.valid_bytes, recovered.damage)
            following = segments_to_recover[i + 1 :]
            if following and self._has_lost_records(segment, following[0], recovered.damage):
                self._remove_segments(following)
                return
            if segment is not local.segments.active:
                local.finish(segment)

    def _has_lost_records(self, segment: LogSegment, following: LogSegment, damage: str) -> bool:
        """Whether the segments from `following` on must be removed: records before them are lost.

        They are removed after damage, as in Kafka (`LogLoader.recoverLog`), or where offsets go
        back. A gap means that a power cut removed the end of `segment`: the cleaner makes gaps only
        below the recovery point on disk. If that is unknown, or Kafka's cleaner has just replaced
        `segment` (it does not write recovery points), the gap is accepted.
        """
        end = self._local.log_end_offset
        if following.base_offset == end:
            return False
        if damage or following.base_offset < end:
            return True
        if segment.base_offset in self._compacted or self._parameters.recovery_point is None:
            self._has_gap = True
            return False
        return True

    def _truncate_at_damage(self, segment: LogSegment, position: int, damage: str) -> None:
        if not damage:
            return
        logger.warning(
            "[%s] recovery cut %s at position %d: %d bytes dropped (%s)",
            self._topic_partition,
            segment.records.path,
            position,
            segment.size - position,
            damage,
        )
        segment.records.truncate_durably(position)

    def _remove_segments(self, segments: list[LogSegment]) -> None:
        for segment in segments:
            logger.warning(
                "[%s] recovery dropped the segment %s: %d bytes (the log before it ends at %d)",
                self._topic_partition,
                segment.records.path,
                segment.size,
                self._local.log_end_offset,
            )
        self._local.remove(segments)

    def _load_producers(self, producers: ProducerLog, log_start_offset: int) -> None:
        """Remove snapshots without a segment, except the newest, then build the state up to the
        end.
        """
        local, snapshots = self._local, producers.snapshots
        end = local.log_end_offset
        bases = {segment.base_offset for segment in local.segments}
        newest = max((offset for offset in snapshots.offsets if offset <= end), default=end)
        snapshots.remove_unless(lambda offset: offset in bases or offset == newest)
        if not self._parameters.had_clean_shutdown:
            return
        if not snapshots.offsets and end > log_start_offset:
            # As in Kafka: the whole log is not read to find unknown producers.
            for offset in sorted({*sorted(bases)[-2:], end}):
                producers.take_snapshot(offset)
            return
        producers.rebuild(local, log_start_offset, end, self._now_ms)
