"""The receiving end of LeaderAndIsr, UpdateMetadata and StopReplica: fenced, then applied in order.

Before LeaderAndIsr is applied, the configs of new topics are read; later commands wait. Stale
commands are for an earlier registration of this broker (broker epoch) or from an earlier controller
(controller epoch, one for all three). Rows with an invalid topic name or partition are refused
here, before they become part of a path, a checkpoint or the metadata.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkapy.common.cluster_state import (
    LEADER_DURING_DELETE,
    CommandResult,
    LeaderAndIsr,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ErrorCode, KafkapyError
from kafkapy.common.topic_partition import TopicPartition, is_topic_name, quoted
from kafkapy.server.replicas.state_change_log import CommandLog
from kafkapy.server.requests.turns import chunks
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ZnodeError

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.metadata.image import TopicImage
    from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
    from kafkapy.server.config.dynamic_config import DynamicConfig
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaApis")

_LOGGED_ROWS = 20
_DELETED = LeaderAndIsr(LEADER_DURING_DELETE, 0, (), 0, 0)
Command = LeaderAndIsrCommand | UpdateMetadataCommand | StopReplicaCommand
_Row = LeaderAndIsrPartition | UpdateMetadataPartition | StopReplicaPartition


class ControlRequestHandler:
    """Applies the controller's commands to the replica manager and the metadata cache.

    `broker_epoch` is that of this broker's registration, set whenever it registers;
    `leader_and_isr_epoch` is the broker epoch in which LeaderAndIsr was last applied;
    `on_controller_change` is called when the metadata names another controller.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        configs: DynamicConfig,
        store: ZkStore,
        metadata: MetadataCache,
        waiter: MetadataWaiter,
        on_partitions_deleted: Callable[[list[TopicPartition]], None],
        metrics: Metrics,
    ) -> None:
        self._replicas = replicas
        self._metrics = metrics
        self._metadata = metadata
        self._waiter = waiter
        self._on_partitions_deleted = on_partitions_deleted
        self._configs = configs
        self._store = store
        self._apply_lock = asyncio.Lock()  # fair: in order of arrival
        self._change_lock = asyncio.Lock()  # for the part of a command that changes replicas
        self._is_stopped = False
        self._own_correlation_ids = itertools.count()
        self._checked_controller_epoch = -1
        self.broker_epoch = self.leader_and_isr_epoch = -1
        self.on_controller_change: Callable[[], None] = lambda: None

    async def apply(self, command: Command, correlation_id: int | None = None) -> CommandResult:
        """Apply one command after all earlier ones. Refusals are in the result.

        `correlation_id` is that of the request; a controller on this broker sends none.
        """
        if correlation_id is None:
            correlation_id = next(self._own_correlation_ids)
        async with self._apply_lock:
            if 0 <= command.broker_epoch < self.broker_epoch:
                logger.info(
                    "Refusing %s from controller %d: its broker epoch %d is older than the current"
                    " broker epoch %d",
                    type(command).__name__,
                    command.controller_id,
                    command.broker_epoch,
                    self.broker_epoch,
                )
                return CommandResult(ErrorCode.STALE_BROKER_EPOCH)
            refused = await _illegal_rows(command)
            if refused:
                legal = [row for row in command.partitions if _key(row) not in refused]
                command = replace(command, partitions=legal)  # type: ignore[arg-type]
            topics_before = self._metadata.image.topics
            result = await self._apply(command, correlation_id)
            if not result.error and not isinstance(command, UpdateMetadataCommand):
                result.partition_errors |= refused
        if isinstance(command, UpdateMetadataCommand) and not result.error:
            await self._remove_deleted_if_new_controller(command.controller_epoch, topics_before)
        return result

    async def stop(self) -> None:
        """Refuse later commands, and wait for the one that is changing replicas. A controller on
        this broker sends commands until it has resigned: a partition that became leader or follower
        then would append to a log that is closed."""
        self._is_stopped = True
        async with self._change_lock:
            pass

    async def _remove_deleted_if_new_controller(
        self, controller_epoch: int, topics_before: Mapping[str, TopicImage]
    ) -> None:
        """Remove known topics that an earlier controller deleted, if the controller is new.

        The earlier controller may have ended before it sent the deletion, and the new one does not
        send it.
        """
        if controller_epoch <= self._checked_controller_epoch:
            return
        try:
            if topics_before:
                await self._remove_deleted(topics_before)
        except KafkapyError as error:
            logger.error("Cannot look for topics that were deleted: %s", error)
        else:
            self._checked_controller_epoch = controller_epoch

    async def remove_deleted_topics(self) -> None:
        """Remove topics that were deleted while this broker had no registration. The controller
        sends only topics that exist; Kafka's brokers keep the others until they restart.
        """
        await self._remove_deleted(self._metadata.image.topics)

    async def _remove_deleted(self, topics_before: Mapping[str, TopicImage]) -> None:
        """Remove known topics that are deleted in ZooKeeper and have not changed since."""
        deleted = await self._store.topics.deleted(topics_before)
        async with self._apply_lock:
            image = self._metadata.image
            rows = [
                UpdateMetadataPartition(name, topic.topic_id, index, _DELETED, ())
                for name, topic in topics_before.items()
                if name in deleted and image.topics.get(name) is topic
                for index in topic.partitions
            ]
            if rows:
                epochs = self._replicas.controller_epoch, self.broker_epoch
                live = list(image.brokers.values())
                command = UpdateMetadataCommand(image.controller_id, *epochs, rows, live)
                self._update_metadata(command, next(self._own_correlation_ids))

    async def _apply(self, command: Command, correlation_id: int) -> CommandResult:
        # The command may be the first in a registration that this broker does not know yet.
        broker_epoch = max(command.broker_epoch, self.broker_epoch)
        if isinstance(command, LeaderAndIsrCommand):
            error = await self._read_new_configs(command)
            if error is not ErrorCode.NONE:
                return CommandResult(error)
        async with self._change_lock:
            if self._is_stopped:
                return CommandResult(ErrorCode.STALE_BROKER_EPOCH)
            match command:
                case LeaderAndIsrCommand():
                    return await self._leader_and_isr(command, broker_epoch, correlation_id)
                case UpdateMetadataCommand():
                    return self._update_metadata(command, correlation_id)
                case StopReplicaCommand():
                    result = await self._replicas.stop_replicas(command, correlation_id)
                    self._metrics.keep_topics(self._replicas.partitions)
                    return result

    async def _leader_and_isr(
        self, command: LeaderAndIsrCommand, broker_epoch: int, correlation_id: int
    ) -> CommandResult:
        """Become leader or follower."""
        # Not a copy: a config may change before the last of many logs is created.
        configs = self._configs.topic_overrides
        result = await self._replicas.become_leader_or_follower(command, configs, correlation_id)
        if not result.error:
            self.leader_and_isr_epoch = broker_epoch
        return result

    async def _read_new_configs(self, command: LeaderAndIsrCommand) -> ErrorCode:
        """Read the current configs of new topics from ZooKeeper, for their logs."""
        topics = {row.topic for row in command.partitions}
        try:
            for chunk in chunks(sorted(topics - self._replicas.partitions.keys())):
                await asyncio.gather(*map(self._read_configs, chunk))
        except KafkapyError as error:
            logger.error("Cannot read the topic configs for a LeaderAndIsr request: %s", error)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    async def _read_configs(self, topic: str) -> None:
        """Read a topic's configs from ZooKeeper. An unreadable znode is logged, and the old configs
        stay: an error would cost the other topics of the request their leaders.
        """
        try:
            found = await self._store.configs.get("topics", topic)
        except ZnodeError as error:
            logger.error("Cannot read the configs of topic %s: %s", topic, error)
            return
        self._configs.topic_overrides[topic] = found

    def _update_metadata(
        self, command: UpdateMetadataCommand, correlation_id: int
    ) -> CommandResult:
        """Replace the metadata image and wake its waiters."""
        log = CommandLog(self._replicas.broker_id, command, correlation_id)
        if self._replicas.is_stale_controller(command.controller_epoch):
            log.stale_controller(self._replicas.controller_epoch)
            return CommandResult(ErrorCode.STALE_CONTROLLER_EPOCH)
        controller_before = self._metadata.image.controller_id
        image, deleted = self._metadata.apply(command)
        log.metadata_updated(len(command.partitions) - len(deleted), len(deleted))
        if deleted:
            self._on_partitions_deleted(deleted)
            for topic in {partition.topic for partition in deleted} - image.topics.keys():
                self._configs.topic_overrides.pop(topic, None)
        if image.controller_id != controller_before:
            self.on_controller_change()
        self._waiter.wake_waiters()
        return CommandResult()


async def _illegal_rows(command: Command) -> dict[TopicPartition, ErrorCode]:
    """Rows with an invalid topic name or partition, each with its error. The first 20 are logged.
    Yields to the event loop after each piece of the rows."""
    is_legal: dict[str, bool] = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    rows: Sequence[_Row] = command.partitions
    for number, chunk in enumerate(chunks(rows)):
        if number:
            await asyncio.sleep(0)
        for row in chunk:
            if row.topic not in is_legal:
                is_legal[row.topic] = is_topic_name(row.topic)
            if not is_legal[row.topic]:
                refused[_key(row)] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif row.partition < 0:
                refused[_key(row)] = ErrorCode.INVALID_PARTITIONS
    request_name, controller_id = type(command).__name__, command.controller_id
    for (name, index), error in itertools.islice(refused.items(), _LOGGED_ROWS):
        is_name = error is ErrorCode.INVALID_TOPIC_EXCEPTION
        invalid = f"the invalid topic name {quoted(name)}"
        description = invalid if is_name else f"partition {index} of topic {name}"
        logger.warning(
            "Refusing rows of %s from controller %d: %s", request_name, controller_id, description
        )
    if len(refused) > _LOGGED_ROWS:
        more = len(refused) - _LOGGED_ROWS
        logger.warning(
            "Refusing %d rows more of %s from controller %d", more, request_name, controller_id
        )
    return refused


def _key(row: _Row) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
