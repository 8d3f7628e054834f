"""What handlers may use of the broker: one object with the parts, put together by `broker`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from kafkapy.common.ports import Clock
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.image import MetadataImage
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.server.client_quotas import ClientQuotas
from kafkapy.server.connection_limits import ConnectionLimits
from kafkapy.server.delegation_tokens import DelegationTokens
from kafkapy.server.listener_changes import ListenerChanges
from kafkapy.server.metrics import Metrics
from kafkapy.server.node_security import PLAINTEXT
from kafkapy.server.scram_credentials import ScramCredentials
from kafkapy.server.throttler import Throttler
from kafkapy.server.turns import Turns

if TYPE_CHECKING:
    from kafkapy.metadata.dynamic_passwords import DynamicPasswords
    from kafkapy.server.acl_admin import AclAdmin
    from kafkapy.server.acl_changes import AclChangeListener
    from kafkapy.server.auto_creator import AutoCreator
    from kafkapy.server.command_receiver import CommandReceiver
    from kafkapy.server.config_admin import ConfigAdmin
    from kafkapy.server.config_changes import ConfigChangeListener
    from kafkapy.server.controller_task import ControllerTask
    from kafkapy.server.dynamic_config import DynamicConfig
    from kafkapy.server.fetcher import Fetcher
    from kafkapy.server.group_service import GroupService
    from kafkapy.server.handlers import Served
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.marker_writer import MarkerWriter
    from kafkapy.server.oauth import OAuth
    from kafkapy.server.producer_ids import ProducerIdManager
    from kafkapy.server.quota_admin import QuotaAdmin
    from kafkapy.server.replica_manager import ReplicaManager
    from kafkapy.server.scram_admin import ScramAdmin
    from kafkapy.server.token_admin import TokenAdmin
    from kafkapy.server.token_changes import TokenChangeListener
    from kafkapy.server.topic_admin import TopicAdmin
    from kafkapy.server.transaction_service import TransactionService
    from kafkapy.server.transaction_verifier import TransactionVerifier

logger = logging.getLogger("kafka.server.KafkaApis")

Node = tuple[int, str, int, str | None]


class Services:
    """Fixed: ids and config. Shared: the parts. `spawn` runs a coroutine as a task of the
    broker."""

    broker_id: int
    cluster_id: str
    config: KafkaConfig
    effective_configs: DynamicConfig
    replicas: ReplicaManager
    fetcher: Fetcher
    fetch_sessions: FetchSessionCache
    topic_admin: TopicAdmin
    config_admin: ConfigAdmin
    scram_admin: ScramAdmin
    quota_admin: QuotaAdmin
    config_changes: ConfigChangeListener
    auto_creator: AutoCreator
    groups: GroupService
    transactions: TransactionService
    markers: MarkerWriter
    verifier: TransactionVerifier
    producer_ids: ProducerIdManager
    oauth: OAuth
    passwords: DynamicPasswords
    commands: CommandReceiver
    controller: ControllerTask
    served: Mapping[int, Served]

    def __init__(self, config: KafkaConfig, clock: Clock, metadata: MetadataCache) -> None:
        self.config = config
        self.clock = clock
        self.metadata = metadata
        self.metrics = Metrics()
        self.turns = Turns()
        self.node_security = PLAINTEXT  # of connections to other brokers
        self.tokens = DelegationTokens(config.token_secret, clock)
        self.scram_credentials = ScramCredentials(self.tokens)
        self.token_changes: TokenChangeListener | None = None  # both are there with a secret
        self.token_admin: TokenAdmin | None = None
        self.client_quotas = ClientQuotas(config, clock)
        self.connection_limits = ConnectionLimits(config)
        self.throttler = Throttler(self.client_quotas, clock)
        self.listener_changes = ListenerChanges()
        self.authorizer: AclAuthorizer | None = None  # the three are there together
        self.acl_changes: AclChangeListener | None = None
        self.acl_admin: AclAdmin | None = None
        self.knows_metadata = False
        self.on_metadata: Callable[[], None] = lambda: None
        self.max_lag: Callable[[], int] = lambda: 0
        self.auto_create_topics = config.get_bool("auto.create.topics.enable")
        self.fetch_max_bytes = config.get_int("fetch.max.bytes")
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self._waiters: dict[asyncio.Future[None], Callable[[MetadataImage], bool]] = {}
        self._nodes: dict[str, tuple[int, list[Node]]] = {}

    def nodes(self, listener: str) -> list[Node]:
        """(id, host, port, rack) of every live broker that has `listener`, by id."""
        image = self.metadata.image
        cached = self._nodes.get(listener)
        if cached is not None and cached[0] == image.version:
            return cached[1]
        nodes = []
        for broker_id, broker in sorted(image.brokers.items()):
            endpoint = broker.endpoint(listener)
            if endpoint is not None:
                nodes.append((broker_id, endpoint.host, endpoint.port, broker.rack))
        self._nodes[listener] = (image.version, nodes)
        return nodes

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background; its failure is logged, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A background task failed", exc_info=task.exception())

    async def cancel_tasks(self) -> None:
        """End what still runs in the background."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # waiting for metadata

    def metadata_known(self) -> None:
        """The metadata is that of the cluster, not of a broker that has just started."""
        self.knows_metadata = True
        self.metadata_changed()

    def metadata_changed(self) -> None:
        """A new image is there: wake those whose condition it meets."""
        self.on_metadata()
        image = self.metadata.image
        for future, holds in list(self._waiters.items()):
            if not future.done() and holds(image):
                future.set_result(None)

    async def when_metadata(self, holds: Callable[[MetadataImage], bool], timeout_ms: int) -> bool:
        """Wait until the metadata meets a condition; False if `timeout_ms` passes first."""
        if holds(self.metadata.image):
            return True
        if timeout_ms <= 0:
            return False
        future = asyncio.get_running_loop().create_future()
        self._waiters[future] = holds
        try:
            await asyncio.wait_for(future, timeout_ms / 1000)
        except TimeoutError:
            return False
        finally:
            del self._waiters[future]
        return True

    async def topics_ready(self, names: list[str], timeout_ms: int, partitions: int = 1) -> bool:
        """Wait until each topic has at least `partitions` partitions and all have leaders."""

        def ready(image: MetadataImage) -> bool:
            topics = [image.topics.get(name) for name in names]
            return all(
                topic is not None
                and len(topic.partitions) >= partitions
                and all(p.leader >= 0 for p in topic.partitions.values())
                for topic in topics
            )

        return await self.when_metadata(ready, timeout_ms)

    async def topics_gone(self, names: list[str], timeout_ms: int) -> bool:
        """Wait until no topic of these names is left."""
        return await self.when_metadata(
            lambda image: not any(name in image.topics for name in names), timeout_ms
        )
