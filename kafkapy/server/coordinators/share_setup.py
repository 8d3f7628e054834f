"""Creates a broker's parts for share groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.replication.shares.share_sessions import ShareSessions
from kafkapy.server.coordinators.share_configs import ShareConfigs
from kafkapy.server.coordinators.share_fetches import ShareFetches
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.coordinators.share_partitions import SharePartitions
from kafkapy.server.coordinators.share_persister import SharePersister
from kafkapy.server.coordinators.share_service import ShareService
from kafkapy.server.interbroker.node_clients import NodeClients

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.replication.partition import Partition
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.group_topics import GroupTopics
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.requests.turns import SliceScheduler
    from kafkapy.server.security.node_security import NodeSecurity


CreateTopics = Callable[[list[str], int], Awaitable[object]]
Spawn = Callable[[Coroutine[Any, Any, None]], None]
_WAIT_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Shares:
    """A broker's parts for share groups: its coordinator, the client of all share coordinators, and
    the parts that serve members."""

    groups: GroupService
    replicas: ReplicaManager
    metadata: MetadataCache
    service: ShareService
    persister: SharePersister
    configs: ShareConfigs
    sessions: ShareSessions
    partitions: SharePartitions
    fetches: ShareFetches
    offsets: ShareOffsets
    fetch_bytes_max: int

    def set_topic_creator(self, create: CreateTopics, spawn: Spawn) -> None:
        """Create `__share_group_state` when it is needed."""

        async def create_topic(created: Callable[[], None]) -> None:
            try:
                await create([SHARE_GROUP_STATE_TOPIC], _WAIT_MS)
            finally:
                created()

        self.persister.create_topic = lambda created: spawn(create_topic(created))

    def stop(self) -> None:
        """Stop serving share groups."""
        self.partitions.close()
        self.persister.close()
        self.offsets.close()
        self.service.stop()


def set_up_shares(
    config: KafkaConfig,
    replicas: ReplicaManager,
    groups: GroupService,
    metadata: MetadataCache,
    topics: GroupTopics,
    security: NodeSecurity,
    clock: Clock,
    slices: SliceScheduler,
) -> Shares:
    """Create the parts of one broker. They follow the leadership of its replicas."""
    broker_id, call_later = replicas.broker_id, asyncio.get_running_loop().call_later
    coordinator = ShareCoordinator(ShareConfig.from_values(config.values), clock, topics)
    service = ShareService(coordinator, replicas, clock, config, call_later)

    def nodes() -> NodeClients:
        return NodeClients(
            metadata,
            config.inter_broker_listener,
            str(broker_id),
            request_timeout_ms=config.get_int("request.timeout.ms"),
            security=security,
        )

    persister = SharePersister(broker_id, metadata, service, nodes(), call_later)
    configs = ShareConfigs(config, groups.coordinator.own_configs, clock)
    partitions = SharePartitions(replicas, persister, configs, clock, call_later, slices)
    groups.set_share_persister(persister)
    previous = replicas.on_leadership

    def on_leadership(partition: Partition, leads: bool) -> None:
        previous(partition, leads)
        service.on_leadership(partition, leads)
        partitions.on_leadership(partition)

    replicas.on_leadership = on_leadership
    return Shares(
        groups,
        replicas,
        metadata,
        service,
        persister,
        configs,
        ShareSessions(config.get_int("group.share.max.share.sessions")),
        partitions,
        ShareFetches(replicas, partitions, configs, clock),
        ShareOffsets(groups, persister, metadata, nodes(), slices),
        config.get_int("fetch.max.bytes"),
    )
