"""The controller's commands: partitions become leader or follower, or are stopped
(`kafka.server.ReplicaManager`).

One thread, the event loop's, calls all of this. What a command changes, the purgatories are told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    CommandResult,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
)
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.server.replicas.hosted_partitions import HostedPartitions
from kafkapy.server.replicas.state_change_log import CommandLog
from kafkapy.storage.disk_errors import StorageShortage

logger = logging.getLogger("kafka.server.ReplicaManager")

Overrides = Mapping[str, str]
# Rows of one LeaderAndIsr between which others have their turn; they share the waits for the disk.
_AT_A_TIME: Final = 200
_OFFLINE: Final = ErrorCode.KAFKA_STORAGE_ERROR
_IS_OFFLINE: Final = "as the local replica for the partition is in an offline log directory"


class _Repetition(ApiError):
    """The controller says what it has said before: refused, and no reason to worry."""


class _Applied(NamedTuple):
    """A row that was obeyed. `before` is the leader and leader epoch that it took over from."""

    partition: Partition
    told: LeaderAndIsrPartition
    before: tuple[int, int]
    is_new_epoch: bool


class ReplicaManager(HostedPartitions):
    """Makes hosted partitions what the controller says. `controller_epoch` is the newest heard of,
    for all its commands."""

    controller_epoch: int = 0

    def is_stale_controller(self, controller_epoch: int) -> bool:
        """Whether a newer controller has spoken; remembers the newest, for all its commands."""
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

        Others have their turn in between: the caller lets no other command in until this is done.
        `topic_overrides` has the topic configs of the command's topics, for logs that are made now.
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
        for start in range(0, len(command.partitions), _AT_A_TIME):
            if start:
                await asyncio.sleep(0)
            rows = command.partitions[start : start + _AT_A_TIME]
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
        """Obey some rows, make what came of them durable at once, and only then tell of it."""
        applied: list[_Applied] = []
        with self.log_manager.together():
            for told in rows:
                overrides = topic_overrides.get(told.topic, {})
                error = self._try_to_apply(told, overrides, log, applied)
                result.partition_errors[told.topic_partition] = error
        for told in rows:
            if told.topic_partition in self.offline:
                result.partition_errors[told.topic_partition] = _OFFLINE
        served = [done for done in applied if done.partition.is_served]
        for done in served:
            self._announce(done, log)
        self._call_followers(done.partition for done in served if done.is_new_epoch)
        return served

    def _call_followers(self, began: Iterable[Partition]) -> None:
        """Ask followers to fetch partitions that are led from now on."""
        now_ms = self._clock.monotonic_ms()
        followers: set[int] = set()
        for partition in began:
            if partition.is_leader:
                followers.update(self.awaited_followers.began_to_lead(partition, now_ms))
        for follower in sorted(followers):
            self.fetch_purgatory.check(follower)

    def _try_to_apply(
        self,
        told: LeaderAndIsrPartition,
        overrides: Overrides,
        log: CommandLog,
        applied: list[_Applied],
    ) -> ErrorCode:
        """Obey one row, if it is to be obeyed; the error of its answer."""
        try:
            done = self._apply(told, overrides)
        except ApiError as refusal:
            level = logging.INFO if isinstance(refusal, _Repetition) else logging.WARNING
            log.ignored(told.topic_partition, refusal.message, level)
            return refusal.code
        except LogDirFailure as failure:
            self.log_dir_failed(failure)
            return _OFFLINE
        except ConfigError as problem:
            # Whatever wrote the topic's configs did not check them: it costs that topic alone.
            logger.error("Cannot host %s: %s", told.topic_partition, problem)
            return ErrorCode.INVALID_CONFIG
        if done is not None:
            applied.append(done)
        return ErrorCode.NONE

    def _apply(self, told: LeaderAndIsrPartition, overrides: Overrides) -> _Applied | None:
        """Obey one row; None if it only names the topic's id."""
        partition = self.partitions.get(told.topic, {}).get(told.partition)
        if partition is not None and partition.topic_id.is_zero and not told.topic_id.is_zero:
            self.log_manager.get_or_create_log(told.topic_partition, told.topic_id, {}, False)
            partition.topic_id = told.topic_id
            if told.state.leader_epoch == partition.leader_epoch:
                return None
        self._check_leader_and_isr(told, partition)
        if partition is None:
            partition = self._host(told, overrides)
        before = (partition.leader_id, partition.leader_epoch)
        leads = told.state.leader == self.broker_id
        if leads:
            is_new_epoch = partition.make_leader(told, self._clock.monotonic_ms())
        else:
            is_new_epoch = partition.make_follower(told)
        return _Applied(partition, told, before, is_new_epoch)

    def _announce(self, done: _Applied, log: CommandLog) -> None:
        """Tell who waits, who fetches and who coordinates: the leader epoch is on the disk now."""
        partition, leads = done.partition, done.partition.is_leader
        if done.is_new_epoch:
            starts = log.leader_starts if leads else log.follower_starts
            starts(partition, done.told, done.before)
        self.checked(partition)
        if done.is_new_epoch:
            if leads:
                self.on_unfollow(partition.topic_partition)
            else:
                self.on_follow(partition)
            self.on_leadership(partition, leads)

    def _check_leader_and_isr(
        self, told: LeaderAndIsrPartition, partition: Partition | None
    ) -> None:
        """
        Raises:
            ApiError: the row is not to be obeyed; its message says why as Kafka's log does.
        """
        if told.topic_partition in self.offline:
            raise ApiError(_OFFLINE, _IS_OFFLINE)
        named = not told.topic_id.is_zero
        if partition is not None and named and partition.topic_id != told.topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"since its topic id {told.topic_id} does not match the topic id in memory:"
                f" {partition.topic_id}",
            )
        local_epoch = partition.leader_epoch if partition is not None else NO_EPOCH
        its_epoch = f"since its associated leader epoch {told.state.leader_epoch}"
        if told.state.leader_epoch == local_epoch:
            raise _Repetition(
                ErrorCode.STALE_CONTROLLER_EPOCH, f"{its_epoch} matches the current leader epoch"
            )
        if told.state.leader_epoch < local_epoch:
            raise ApiError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"{its_epoch} is smaller than the current leader epoch {local_epoch}",
            )
        if self.broker_id not in told.replicas:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"as itself is not in assigned replica list {','.join(map(str, told.replicas))}",
            )

    def _host(self, told: LeaderAndIsrPartition, overrides: Overrides) -> Partition:
        try:
            log = self.log_manager.get_or_create_log(
                told.topic_partition, told.topic_id, overrides, told.is_new
            )
        except StorageShortage:
            raise
        except (ApiError, LogDirFailure) as failure:
            # It is in a directory that is offline, or cannot be made: nobody can be served.
            if not isinstance(failure, ApiError) or failure.code is _OFFLINE:
                self.offline.add(told.topic_partition)
            raise
        named = not told.topic_id.is_zero
        if named and not log.topic_id.is_zero and log.topic_id != told.topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"since its topic id {told.topic_id} does not match that of its log:"
                f" {log.topic_id}",
            )
        partition = Partition(
            told.topic_partition, log.topic_id, log, self.broker_id, self._lag_max_ms, self.is_live
        )
        self.partitions.setdefault(told.topic, {})[told.partition] = partition
        return partition

    async def stop_replicas(
        self, command: StopReplicaCommand, correlation_id: int = 0
    ) -> CommandResult:
        """Apply StopReplica: stop serving, and delete the log where told to.

        Others have their turn in between: the caller lets no other command in until this is done.
        """
        result = CommandResult()
        log = CommandLog(self.broker_id, command, correlation_id)
        log.handling()
        if self.is_stale_controller(command.controller_epoch):
            log.stale_controller(self.controller_epoch)
            result.error = ErrorCode.STALE_CONTROLLER_EPOCH
            return result
        for number, told in enumerate(command.partitions, 1):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
            topic_partition = TopicPartition(told.topic, told.partition)
            try:
                self._stop(topic_partition, told)
                error = ErrorCode.NONE
            except ApiError as refusal:
                log.ignored(topic_partition, refusal.message)
                error = refusal.code
            except LogDirFailure as failure:
                self.log_dir_failed(failure)
                error = _OFFLINE
            result.partition_errors[topic_partition] = error
        return result

    def _stop(self, topic_partition: TopicPartition, told: StopReplicaPartition) -> None:
        topic, index = topic_partition
        if topic_partition in self.offline:
            raise ApiError(_OFFLINE, _IS_OFFLINE)
        by_index = self.partitions.get(topic, {})
        partition = by_index.get(index)
        epoch = told.leader_epoch
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
            self.checked(partition)
        if not told.delete:
            return
        if partition is not None:
            del by_index[index]
            if not by_index:
                del self.partitions[topic]
            partition.take_out_of_service()
            self.checked(partition)
            self.on_deleted(topic_partition)
        if self.log_manager.get_log(topic_partition) is not None:
            self.log_manager.delete_log(topic_partition)
