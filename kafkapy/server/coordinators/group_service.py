"""Runs the group coordinator, over `__consumer_offsets`."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock, Random
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.groups.consumer.assignment import partitions_of
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.groups.messages import GroupEffects
from kafkapy.coordinator.groups.share.messages import StateRequest
from kafkapy.coordinator.shares.messages import InitializeState, ReadSummary, StateResult
from kafkapy.record.codec import Codec
from kafkapy.replication.partition import Partition
from kafkapy.server.coordinators.coordinator_log import CallLater, CoordinatorLog
from kafkapy.server.coordinators.coordinator_service import CoordinatorService
from kafkapy.server.coordinators.group_topics import GroupTopics
from kafkapy.server.coordinators.share_persister import SharePersister

if TYPE_CHECKING:
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.replicas.replica_manager import ReplicaManager

_UNLESS_OTHERS_FAIL: Final = (ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH)

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")


class GroupService(CoordinatorService[GroupCoordinator, GroupEffects]):
    """Drives one `GroupCoordinator` on the event loop."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        replicas: ReplicaManager,
        clock: Clock,
        config: KafkaConfig,
        call_later: CallLater,
    ) -> None:
        log = CoordinatorLog(
            GROUP_METADATA_TOPIC,
            replicas,
            clock,
            call_later,
            codec=Codec(config.get_int("offsets.topic.compression.codec")),
            timeout_ms=config.get_int("offsets.commit.timeout.ms"),
            load_buffer_bytes=config.get_int("offsets.load.buffer.size"),
            logger=logger,
        )
        super().__init__(coordinator, log, clock, call_later)
        self._persister: SharePersister | None = None

    def set_share_persister(self, persister: SharePersister) -> None:
        """Set the persister for the share groups' requests to the share coordinators."""
        self._persister = persister

    def _finish_loading(self, partition: Partition, end_offset: int) -> None:
        super()._finish_loading(partition, end_offset)
        if partition.log.high_watermark >= end_offset:
            return
        index, epoch = partition.topic_partition.partition, partition.leader_epoch
        self.coordinator.loaded_is_unreplicated(index)
        mark_replicated = self.coordinator.loaded_is_replicated
        self._log.when_replicated(partition, end_offset, lambda: mark_replicated(index, epoch))

    def _appended(self, append: Append, error: ErrorCode, base_offset: int) -> None:
        """Initialize the share partitions whose records are now in the log."""
        super()._appended(append, error, base_offset)
        for state_request in self.coordinator.take_state_requests():
            self._initialize(state_request)

    def _initialize(self, request: StateRequest) -> None:
        """Initialize share partitions. Reports the outcome after the last one succeeds or fails.
        FENCED_STATE_EPOCH is reported if there is no other failure."""
        assert self._persister is not None, "share groups are served with a persister"
        send = self._persister.send
        partitions = list(partitions_of(request.partitions))
        remaining = len(partitions)
        failure, known_epoch = ErrorCode.NONE, 0

        def answered(key: SharePartitionKey, result: StateResult) -> None:
            if result.error is ErrorCode.FENCED_STATE_EPOCH:  # this response has no epoch
                send(ReadSummary(key), summarized)
            else:
                ended(result.error)

        def summarized(result: StateResult) -> None:
            ended(result.error or ErrorCode.FENCED_STATE_EPOCH, result.state_epoch)

        def ended(error: ErrorCode, state_epoch: int = 0) -> None:
            nonlocal remaining, failure, known_epoch
            remaining -= 1
            known_epoch = max(known_epoch, state_epoch)
            if failure in _UNLESS_OTHERS_FAIL:
                failure = error or failure
            if not remaining:
                initialized = self.coordinator.share_states_initialized
                self.run(lambda now_ms: initialized(now_ms, request, failure, known_epoch))

        for topic_id, index in partitions:
            key = SharePartitionKey(request.group_id, topic_id, index)
            send(InitializeState(key, request.state_epoch), partial(answered, key))

    async def expire_offsets(self) -> None:
        """Remove expired offsets. Requests are served between the steps."""
        for effects in self.coordinator.expire_offsets(self._clock.time_ms()):
            self._perform(effects)
            await asyncio.sleep(0)

    def on_partitions_deleted(self, partitions: list[TopicPartition]) -> None:
        """Remove the offsets of deleted partitions."""
        time_ms = self._clock.time_ms()
        self.run(lambda _: self.coordinator.on_partitions_deleted(partitions, time_ms))


def set_up_groups(
    config: KafkaConfig,
    topics: GroupTopics,
    replicas: ReplicaManager,
    clock: Clock,
    random: Random,
    call_later: CallLater,
) -> GroupService:
    """Create the group coordinator of a broker, and its service."""
    group_config = GroupConfig.from_values(config.values)
    coordinator = GroupCoordinator(group_config, random, clock, topics=topics)
    return GroupService(coordinator, replicas, clock, config, call_later)
