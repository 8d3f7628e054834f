"""Runs the share coordinator, over `__share_group_state`."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.shares.messages import ShareEffects
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.record.codec import Codec
from kafkapy.server.coordinators.coordinator_log import CallLater, CoordinatorLog
from kafkapy.server.coordinators.coordinator_service import CoordinatorService

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.coordinator.share.ShareCoordinator")


class ShareService(CoordinatorService[ShareCoordinator, ShareEffects]):
    """Drives one `ShareCoordinator` on the event loop."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        replicas: ReplicaManager,
        clock: Clock,
        config: KafkaConfig,
        call_later: CallLater,
    ) -> None:
        log = CoordinatorLog(
            SHARE_GROUP_STATE_TOPIC,
            replicas,
            clock,
            call_later,
            codec=Codec(config.get_int("share.coordinator.state.topic.compression.codec")),
            timeout_ms=config.get_int("share.coordinator.write.timeout.ms"),
            load_buffer_bytes=config.get_int("share.coordinator.load.buffer.size"),
            logger=logger,
        )
        super().__init__(coordinator, log, clock, call_later)
        self._replicas = replicas

    def _finish_loading(self, partition: Partition, end_offset: int) -> None:
        super()._finish_loading(partition, end_offset)
        index, epoch = partition.topic_partition.partition, partition.leader_epoch
        replicated_up_to = self.coordinator.replicated_up_to
        replicated_up_to(index, epoch, partition.log.high_watermark)
        self._log.when_replicated(
            partition, end_offset, lambda: replicated_up_to(index, epoch, end_offset)
        )

    async def maintain(self) -> None:
        """Write due snapshots, and delete records that are no longer needed."""
        for effects in self.coordinator.maintain():
            self._perform(effects)
            await asyncio.sleep(0)  # with many snapshots, requests are served between the slices
        for index in self.coordinator.led_partitions:
            offset = self.coordinator.prunable_offset(index)
            try:
                partition = self._replicas.get(SHARE_GROUP_STATE_TOPIC, index)
                if offset > partition.log.log_start_offset:
                    partition.delete_records(min(offset, partition.log.high_watermark))
            except ApiError as error:
                logger.warning("Cannot prune partition %d: %s", index, error.message)
            except LogDirFailure as failure:
                self._replicas.log_dir_failed(failure)
