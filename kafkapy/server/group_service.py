"""The shell of the group coordinator, over `__consumer_offsets`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.coordinator.group_coordinator import GroupCoordinator
from kafkapy.coordinator.messages import GroupEffects
from kafkapy.record.compression import Codec
from kafkapy.server.coordinator_log import CallLater, CoordinatorLog
from kafkapy.server.coordinator_service import CoordinatorService

if TYPE_CHECKING:
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.replica_manager import ReplicaManager

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
