"""The partitions of this broker, and the requests that wait for them
(`kafka.server.ReplicaManager`).

Produce and fetch look up partitions here. The controller's commands make a partition leader or
follower, or stop it. Only the event loop's thread calls this module. Each change (an append, a
follower's fetch, a command, a failed disk) checks the purgatories.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.cluster_state import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    BrokerInfo,
    CommandResult,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
)
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.replication.awaited_followers import AwaitedFollowers
from kafkapy.replication.isr import IsrChange
from kafkapy.replication.partition import Partition
from kafkapy.replication.refused_batches import UnhostedRefusals
from kafkapy.replication.replication_quota import ReplicationQuotas
from kafkapy.server.replicas.isr_counts import IsrCounts
from kafkapy.server.replicas.state_change_log import CommandLog
from kafkapy.server.replicas.timed_purgatory import CallLater, TimedPurgatory
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.log_append import AppendOrigin, LogAppendInfo
from kafkapy.storage.log_manager import LogManager

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.record.long_preparation import PreparationResult

logger = logging.getLogger("kafka.server.ReplicaManager")

Overrides = Mapping[str, str]
# Rows of one request that are applied together, to share the waits for the disk. Other work on the
# loop runs in between.
_ROWS_AT_ONCE: Final = 200
_OFFLINE: Final = ErrorCode.KAFKA_STORAGE_ERROR
_IS_OFFLINE: Final = "as the local replica for the partition is in an offline log directory"


class _RepeatedRow(ApiError):
    """A row is refused because the controller has repeated it. This is not a fault."""


class _Applied(NamedTuple):
    """A row that was applied. `before` is the previous leader and leader epoch."""

    partition: Partition
    row: LeaderAndIsrPartition
    before: tuple[int, int]
    is_new_epoch: bool


class ReplicaManager:
    """Hosts partitions, and applies the controller's commands to them.

    Fixed: broker id, log manager, clock. Shared with handlers: `partitions[topic][index]`, the
    purgatories, the replication quotas. `controller_epoch` is the newest one in any command. The
    `on_*` functions notify others: coordinators of leadership, the controller of a failed log
    directory.
    """

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        metadata: MetadataCache,
        clock: Clock,
        lag_max_ms: int,
        call_later: CallLater,
        quotas: ReplicationQuotas | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.log_manager = log_manager
        self.partitions: dict[str, dict[int, Partition]] = {}
        self.offline: set[TopicPartition] = set()
        self.controller_epoch = 0
        self.isr_counts = IsrCounts()
        self.awaited_followers = AwaitedFollowers()
        self.produce_purgatory = TimedPurgatory("Produce", clock, call_later)
        self.fetch_purgatory = TimedPurgatory("Fetch", clock, call_later)
        self.delete_records_purgatory = TimedPurgatory("DeleteRecords", clock, call_later)
        self.quotas = quotas or ReplicationQuotas(broker_id)
        self.on_leadership: Callable[[Partition, bool], None] = lambda partition, leads: None
        self.on_follow: Callable[[Partition], None] = lambda partition: None
        self.on_unfollow: Callable[[TopicPartition], None] = lambda topic_partition: None
        self.on_isr_change: Callable[[Partition, IsrChange], None] = lambda partition, change: None
        self.on_log_dir_failure: Callable[[], None] = lambda: None
        self.on_fatal: Callable[[LogDirFailure], None] = lambda failure: None
        self.may_be_replaced: Callable[[], bool] = lambda: False
        self._metadata = metadata
        self._clock = clock
        self._lag_max_ms = lag_max_ms
        self._lacked_descriptors = False
        self._refused = UnhostedRefusals()

    def all_partitions(self) -> Iterator[Partition]:
        for by_index in self.partitions.values():
            yield from by_index.values()

    @property
    def live_brokers(self) -> Mapping[int, BrokerInfo]:
        """The live brokers, as the controller lists them."""
        return self._metadata.image.brokers

    def is_live(self, broker_id: int) -> bool:
        return broker_id in self._metadata.image.brokers

    def get(self, topic: str, index: int) -> Partition:
        """The hosted partition.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER when another broker has it, else
                UNKNOWN_TOPIC_OR_PARTITION.
        """
        by_index = self.partitions.get(topic)
        partition = by_index.get(index) if by_index is not None else None
        if partition is not None:
            return partition
        if (topic, index) in self.offline:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic}-{index} is in an offline log directory",
            )
        if self._metadata.image.partition(topic, index) is not None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def append(
        self,
        topic: str,
        index: int,
        records: memoryview | bytes,
        acks: int,
        produce_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        fast_only: bool = False,
        ahead: PreparationResult | None = None,
        topic_id: Uuid | None = None,
    ) -> tuple[LogAppendInfo, Partition]:
        """Append to a partition that this broker leads, and check the requests that wait for it.
        With `topic_id`, a partition of another topic of the same name is refused.

        Raises:
            ApiError: the refusal for this partition's row.
        """
        by_index = self.partitions.get(topic)
        partition = by_index.get(index) if by_index is not None else None
        if partition is None:
            try:
                partition = self.get(topic, index)
            except ApiError as refusal:
                raise self.refuse(topic, index, records, refusal) from None
        if self._refused.by_partition:
            keys = ((topic, index), (partition.topic_id, index))
            self._refused.move_to(keys, partition.refused_batches, self._clock.monotonic_ms())
        if topic_id not in (None, partition.topic_id) and not partition.topic_id.is_zero:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        log = partition.log
        high_watermark = log.high_watermark
        try:
            clock = self._clock
            info = partition.append_as_leader(
                records, acks, clock.time_ms(), clock.monotonic_ms(), produce_version, origin,
                fast_only, ahead,
            )  # fmt: skip
        except LogDirFailure as failure:
            self.log_dir_failed(failure)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)) from failure
        self._check_purgatories(partition, log.high_watermark > high_watermark)
        return info, partition

    def refuse(
        self, topic: str | Uuid, index: int, records: memoryview | bytes, error: ApiError
    ) -> ApiError:
        """Refuse a batch with `error`, for the caller to raise, and its producer's next ones."""
        return self._refused.refuse((topic, index), records, error, self._clock.monotonic_ms())

    def _check_purgatories(self, partition: Partition, committed: bool) -> None:
        """Check waiting requests after records were appended or replicated. Produce requests are
        checked only if records were `committed`: checking all of them after each append would be
        quadratic.
        """
        if committed and self.produce_purgatory.size:
            self.produce_purgatory.check(partition.topic_partition)
        if self.fetch_purgatory.size:
            self.fetch_purgatory.check(partition.topic_partition)
        if self.delete_records_purgatory.size:
            self.delete_records_purgatory.check(partition.topic_partition)

    def check_delayed_requests(self, partition: Partition) -> None:
        """Check all requests that wait for a partition: its end, high watermark or leader may have
        changed.
        """
        self._check_purgatories(partition, committed=True)

    def update_high_watermark(self, partition: Partition) -> None:
        """Update the high watermark after a change of a config that bounds it."""
        if partition.is_leader:
            partition.maybe_increment_high_watermark(self._clock.monotonic_ms())
        self.check_delayed_requests(partition)

    # in-sync replicas

    def on_follower_fetch(
        self, partition: Partition, broker_id: int, high_watermark: int, broker_epoch: int
    ) -> None:
        """Handle the fetch of a follower: the high watermark, `high_watermark` before, may have
        moved, and the follower may have caught up.
        """
        if partition.log.high_watermark > high_watermark:
            self.check_delayed_requests(partition)
        elif self.delete_records_purgatory.size:
            # Its log start offset may have moved. A fetch waits for no follower's position: with
            # thousands of partitions in a session, a check for each would be quadratic.
            self.delete_records_purgatory.check(partition.topic_partition)
        if broker_id not in partition.isr:
            change = partition.propose_expansion(broker_id, broker_epoch)
            if change is not None:
                logger.info(
                    "[Partition %s broker=%d] Expanding ISR to %s",
                    partition.topic_partition,
                    self.broker_id,
                    ",".join(map(str, change.isr)),
                )
                self.on_isr_change(partition, change)

    def shrink_isrs(self) -> None:
        """Propose to remove ISR members that lag for too long. Called every half lag time."""
        now_ms = self._clock.monotonic_ms()
        for partition in list(self.all_partitions()):
            change = partition.propose_shrinking(now_ms)
            if change is not None:
                logger.info(
                    "[Partition %s broker=%d] Shrinking ISR from %s to %s",
                    partition.topic_partition,
                    self.broker_id,
                    ",".join(map(str, sorted(partition.isr))),
                    ",".join(map(str, change.isr)),
                )
                self.on_isr_change(partition, change)

    # log directories

    def log_dir_failed(self, failure: LogDirFailure) -> None:
        """Take every partition of a failed directory offline. Other partitions are unaffected.

        Calls `on_fatal` if it was the last directory, else `on_log_dir_failure`.
        """
        if failure.log_dir not in self.log_manager.live_log_dirs:
            return
        logger.error("Stopping serving logs in dir %s: %s", failure.log_dir, failure)
        offline = [p for p in self.all_partitions() if p.log.log_dir == failure.log_dir]
        for partition in offline:
            topic, index = partition.topic_partition
            self.offline.add(partition.topic_partition)
            del self.partitions[topic][index]
        former_leaders = [partition for partition in offline if partition.take_out_of_service()]
        logger.warning(
            "Broker %d stopped serving %d partitions in failed log directory %s",
            self.broker_id,
            len(offline),
            failure.log_dir,
        )
        try:
            self.log_manager.fail_log_dir(failure.log_dir, failure)
        except LogDirFailure as last:
            self.on_fatal(last)
        else:
            self.on_log_dir_failure()
        # Only now: the callbacks must find the directory gone.
        for partition in offline:
            self.on_unfollow(partition.topic_partition)
        for partition in former_leaders:
            self.on_leadership(partition, False)
        for partition in offline:
            self.check_delayed_requests(partition)

    def request_missing_replicas(self) -> None:
        """Notify the controller if replicas could not be hosted or led for lack of descriptors.

        The controller considers them offline, like those of a failed directory, until it sends
        LeaderAndIsr again. (Kafka's broker fails the directory, and recovers when it is restarted.)
        """
        if self._lacked_descriptors:
            self._lacked_descriptors = False
            self.on_log_dir_failure()

    def stop(self) -> None:
        """Answer all waiting requests, because the broker stops."""
        self.produce_purgatory.complete_all()
        self.fetch_purgatory.complete_all()
        self.delete_records_purgatory.complete_all()

    # commands of the controller

    def is_stale_controller(self, controller_epoch: int) -> bool:
        """Whether a newer controller has sent a command. Stores the newest epoch."""
        if controller_epoch < self.controller_epoch:
            return True
        self.controller_epoch = controller_epoch
        return False

    async def become_leader_or_follower(
        self,
        command: LeaderAndIsrCommand,
        topic_overrides: Mapping[str, Overrides],
        correlation_id: int = 0,
    ) -> CommandResult:
        """Apply LeaderAndIsr, partition by partition, in the order of Kafka's checks.

        Yields to other tasks in between: the caller must serialise commands. `topic_overrides` has
        the configs of the command's topics, for logs that are created now.
        """
        result = CommandResult()
        log = CommandLog(self.broker_id, command, correlation_id)
        log.handling()
        if self.is_stale_controller(command.controller_epoch):
            log.stale_controller(self.controller_epoch)
            result.error = ErrorCode.STALE_CONTROLLER_EPOCH
            return result
        started_ms = self._clock.monotonic_ms()
        changed = {True: 0, False: 0}
        for start in range(0, len(command.partitions), _ROWS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            rows = command.partitions[start : start + _ROWS_AT_ONCE]
            for done in self._apply_together(rows, topic_overrides, log, result):
                changed[done.partition.is_leader] += done.is_new_epoch
        log.stopped_fetchers(leaders=changed[True], followers=changed[False])
        log.finished(self._clock.monotonic_ms() - started_ms)
        return result

    def _apply_together(
        self,
        rows: Sequence[LeaderAndIsrPartition],
        topic_overrides: Mapping[str, Overrides],
        log: CommandLog,
        result: CommandResult,
    ) -> list[_Applied]:
        """Apply some rows, make the result durable, then announce it."""
        applied: list[_Applied] = []
        with self.log_manager.group_commit():
            for row in rows:
                overrides = topic_overrides.get(row.topic, {})
                error = self._try_to_apply(row, overrides, log, applied)
                result.partition_errors[row.topic_partition] = error
        for done in applied:
            self._announce(done, log)
        for row in rows:
            if row.topic_partition in self.offline:
                result.partition_errors[row.topic_partition] = _OFFLINE
        served = [done for done in applied if done.partition.is_served]
        self._wake_followers(done.partition for done in served if done.is_new_epoch)
        return served

    def _wake_followers(self, partitions: Iterable[Partition]) -> None:
        """Answer the waiting fetches of followers, so that they fetch partitions with a new
        leader."""
        now_ms = self._clock.monotonic_ms()
        followers: set[int] = set()
        for partition in partitions:
            if partition.is_leader:
                followers.update(self.awaited_followers.await_followers(partition, now_ms))
        for follower in sorted(followers):
            self.fetch_purgatory.check(follower)

    def _try_to_apply(
        self,
        row: LeaderAndIsrPartition,
        overrides: Overrides,
        log: CommandLog,
        applied: list[_Applied],
    ) -> ErrorCode:
        """Apply one row unless it is refused; returns the error of its answer."""
        try:
            done = self._apply(row, overrides)
        except ApiError as refusal:
            self._lacked_descriptors |= isinstance(refusal, StorageShortage)
            level = logging.INFO if isinstance(refusal, _RepeatedRow) else logging.WARNING
            log.ignored(row.topic_partition, refusal.message, level)
            return refusal.code
        except LogDirFailure as failure:
            self.log_dir_failed(failure)
            return _OFFLINE
        except ConfigError as problem:
            # The topic's configs were stored without a check. Only this topic is affected.
            logger.error("Cannot host %s: %s", row.topic_partition, problem)
            return ErrorCode.INVALID_CONFIG
        if done is not None:
            applied.append(done)
        return ErrorCode.NONE

    def _apply(self, row: LeaderAndIsrPartition, overrides: Overrides) -> _Applied | None:
        """Apply one row. Returns None if the row only adds the topic's id."""
        partition = self.partitions.get(row.topic, {}).get(row.partition)
        if partition is not None and partition.topic_id.is_zero and not row.topic_id.is_zero:
            self.log_manager.get_or_create_log(row.topic_partition, row.topic_id, {}, False)
            partition.topic_id = row.topic_id
            if row.state.leader_epoch == partition.leader_epoch:
                return None
        self._check_leader_and_isr(row, partition)
        if partition is None:
            partition = self._create_partition(row, overrides)
        before = (partition.leader_id, partition.leader_epoch)
        leads = row.state.leader == self.broker_id
        if leads:
            is_new_epoch = partition.make_leader(row, self._clock.monotonic_ms())
        else:
            is_new_epoch = partition.make_follower(row)
        return _Applied(partition, row, before, is_new_epoch)

    def _announce(self, done: _Applied, log: CommandLog) -> None:
        """Notify waiting requests, fetchers and coordinators. The leader epoch is already on disk.
        The answer of a request may detect a failed disk, whose replicas are then neither led nor
        followed.
        """
        partition, leads = done.partition, done.partition.is_leader
        if not partition.is_served:
            return
        if done.is_new_epoch:
            starts = log.leader_starts if leads else log.follower_starts
            starts(partition, done.row, done.before)
        self.check_delayed_requests(partition)
        if done.is_new_epoch and partition.is_served:
            if leads:
                self.on_unfollow(partition.topic_partition)
            else:
                self.on_follow(partition)
            self.on_leadership(partition, leads)

    def _check_leader_and_isr(
        self, row: LeaderAndIsrPartition, partition: Partition | None
    ) -> None:
        """Check whether a row may be applied.

        Raises:
            ApiError: the row is refused, with the reason in the words of Kafka's log.
        """
        if row.topic_partition in self.offline:
            raise ApiError(_OFFLINE, _IS_OFFLINE)
        named = not row.topic_id.is_zero
        if partition is not None and named and partition.topic_id != row.topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"since its topic id {row.topic_id} does not match the topic id in memory:"
                f" {partition.topic_id}",
            )
        local_epoch = partition.leader_epoch if partition is not None else NO_EPOCH
        its_epoch = f"since its associated leader epoch {row.state.leader_epoch}"
        if row.state.leader_epoch == local_epoch:
            raise _RepeatedRow(
                ErrorCode.STALE_CONTROLLER_EPOCH, f"{its_epoch} matches the current leader epoch"
            )
        if row.state.leader_epoch < local_epoch:
            raise ApiError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"{its_epoch} is smaller than the current leader epoch {local_epoch}",
            )
        if self.broker_id not in row.replicas:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"as itself is not in assigned replica list {','.join(map(str, row.replicas))}",
            )

    def _create_partition(self, row: LeaderAndIsrPartition, overrides: Overrides) -> Partition:
        try:
            log = self.log_manager.get_or_create_log(
                row.topic_partition,
                row.topic_id,
                overrides,
                row.is_new,
            )
        except StorageShortage:
            raise
        except (ApiError, LogDirFailure) as failure:
            # The log is in an offline directory, or cannot be created: it cannot be served.
            if not isinstance(failure, ApiError) or failure.code is _OFFLINE:
                self.offline.add(row.topic_partition)
            raise
        named = not row.topic_id.is_zero
        if named and not log.topic_id.is_zero and log.topic_id != row.topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"since its topic id {row.topic_id} does not match that of its log: {log.topic_id}",
            )
        partition = Partition(
            row.topic_partition, log.topic_id, log, self.broker_id, self._lag_max_ms,
            self.is_live, self.may_be_replaced,
        )  # fmt: skip
        self.partitions.setdefault(row.topic, {})[row.partition] = partition
        return partition

    async def stop_replicas(
        self, command: StopReplicaCommand, correlation_id: int = 0
    ) -> CommandResult:
        """Apply StopReplica: stop serving partitions, and delete their logs if requested.

        Yields to other tasks in between: the caller must serialise commands.
        """
        result = CommandResult()
        log = CommandLog(self.broker_id, command, correlation_id)
        log.handling()
        if self.is_stale_controller(command.controller_epoch):
            log.stale_controller(self.controller_epoch)
            result.error = ErrorCode.STALE_CONTROLLER_EPOCH
            return result
        for start in range(0, len(command.partitions), _ROWS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            self._stop_together(command.partitions[start : start + _ROWS_AT_ONCE], log, result)
        return result

    def _stop_together(
        self, rows: Sequence[StopReplicaPartition], log: CommandLog, result: CommandResult
    ) -> None:
        """Stop some replicas. Deletions are durable before the response: after it, the controller
        removes the topic, and a log that came back after a power failure would stay."""
        log_dirs: dict[TopicPartition, str] = {}
        with self.log_manager.group_commit():
            for row in rows:
                topic_partition = TopicPartition(row.topic, row.partition)
                held = self.log_manager.get_log(topic_partition)
                try:
                    self._stop(topic_partition, row)
                    error = ErrorCode.NONE
                    if row.delete and held is not None:
                        log_dirs[topic_partition] = held.log_dir
                except ApiError as refusal:
                    log.ignored(topic_partition, refusal.message)
                    error = refusal.code
                except LogDirFailure as failure:
                    self.log_dir_failed(failure)
                    self._mark_half_deleted(topic_partition)
                    error = _OFFLINE
                result.partition_errors[topic_partition] = error
        self.log_manager.drop_unused_configs()
        live = self.log_manager.live_log_dirs
        for topic_partition, log_dir in log_dirs.items():
            if log_dir not in live:
                self._mark_half_deleted(topic_partition)
                result.partition_errors[topic_partition] = _OFFLINE

    def _mark_half_deleted(self, topic_partition: TopicPartition) -> None:
        """Mark a log as offline that is no longer served, but may come back with its disk. The
        controller sends the request again after a lost response, and the next response must not say
        that the log is deleted.
        """
        if self.log_manager.get_log(topic_partition) is None:
            self.offline.add(topic_partition)

    def _stop(self, topic_partition: TopicPartition, row: StopReplicaPartition) -> None:
        topic, index = topic_partition
        if topic_partition in self.offline:
            raise ApiError(_OFFLINE, _IS_OFFLINE)
        by_index = self.partitions.get(topic, {})
        partition = by_index.get(index)
        epoch = row.leader_epoch
        if partition is not None:
            fenced = epoch not in (EPOCH_DURING_DELETE, NO_EPOCH) and epoch < partition.leader_epoch
            if fenced:
                raise ApiError(
                    ErrorCode.FENCED_LEADER_EPOCH,
                    f"since its associated leader epoch {epoch} is smaller than the current leader"
                    f" epoch {partition.leader_epoch}",
                )
            self.on_unfollow(topic_partition)
            if partition.is_leader:
                partition.is_leader = False
                self.on_leadership(partition, False)
            self.check_delayed_requests(partition)
            if not partition.is_served:  # the answer of a request has detected a failed disk
                raise ApiError(_OFFLINE, _IS_OFFLINE)
        if not row.delete:
            return
        if partition is not None:
            del by_index[index]
            if not by_index:
                del self.partitions[topic]
            partition.take_out_of_service()
            self.check_delayed_requests(partition)
        if self.log_manager.get_log(topic_partition) is not None:
            self.log_manager.delete_log(topic_partition)
