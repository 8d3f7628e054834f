"""This broker as a member of its cluster: registration, controller election, control requests.

`join` and `leave` list the steps. When the ZooKeeper session expires, the broker resigns, registers
again under a new broker epoch, and takes part in the election.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, Feature
from kafkapy.common.errors import KafkapyError
from kafkapy.common.lasting_work import keep_running
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import SessionExpired, Startup
from kafkapy.server.cluster.alter_partition_manager import AlterPartitionManager
from kafkapy.server.cluster.broker_channels import BrokerChannels
from kafkapy.server.cluster.controlled_shutdown_client import (
    ControlledShutdownClient,
    ZooKeeperTimeout,
)
from kafkapy.server.cluster.stale_registration import wait_until_expired
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.interbroker.node_to_controller import NodeToController
from kafkapy.server.replicas.replica_fetchers import ReplicaFetchers

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.server.changes.config_changes import ConfigChangeListener
    from kafkapy.server.changes.stored_changes import ZooKeeperWatcher
    from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.cluster.metadata_connection import MetadataConnection
    from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.security.node_security import NodeSecurity
    from kafkapy.zk.stores.store import ZkStore

logger = logging.getLogger("kafka.server.KafkaServer")

_START_LIMIT_MS: Final = 30_000
_RETRY_BACKOFF_S: Final = 1.0
_CONTROLLED_SHUTDOWN_LIMIT_S: Final = 60.0
_RESIGN_LIMIT_S: Final = 5.0
_CLOSE_LIMIT_S: Final = 0.2


class ClusterMember:
    """The membership of one broker. `broker_epoch` changes with each registration."""

    def __init__(
        self,
        config: KafkaConfig,
        broker_id: int,
        controller: ControllerTask,
        receiver: ControlRequestHandler,
        config_changes: ConfigChangeListener,
        followed: Sequence[ZooKeeperWatcher],
        features: tuple[Feature, ...],
        waiter: MetadataWaiter,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        node_security: NodeSecurity,
        connection: MetadataConnection,
        store: ZkStore,
        clock: Clock,
    ) -> None:
        self.broker_epoch = -1
        self._config = config
        self._broker_id = broker_id
        self._controller = controller
        self._receiver = receiver
        self._config_changes = config_changes
        self._followed = followed
        self._features = features
        self._waiter = waiter
        self._metadata = metadata
        self._spawn = spawn
        self._node_security = node_security
        self._connection = connection
        self._store = store
        self._clock = clock
        self._endpoints: tuple[Endpoint, ...] = ()
        self._expired_session_id: int | None = None  # of the session to replace
        self._replaced_session_id: int | None = None  # of the last one, once registered again
        self._zookeeper_timed_out = False  # found at controlled shutdown
        self._channels = BrokerChannels(
            broker_id,
            config.inter_broker_listener,
            receiver,
            controller.submit,
            request_timeout_ms=config.get_int("controller.socket.timeout.ms"),
            security=node_security,
        )
        self._alter_partition_manager = self._create_alter_partition_manager(replicas)
        self._fetchers = ReplicaFetchers(
            config, replicas, clock, lambda: self.broker_epoch, self._endpoint_of, node_security
        )
        waiter.on_change = self._fetchers.metadata_changed
        replicas.on_follow = self._fetchers.follow
        replicas.on_unfollow = self._fetchers.unfollow
        replicas.on_isr_change = self._alter_partition_manager.submit
        replicas.on_log_dir_failure = lambda: spawn(self._notify_log_dir_failure())
        replicas.may_be_replaced = self._may_be_replaced

    def _create_alter_partition_manager(self, replicas: ReplicaManager) -> AlterPartitionManager:
        config, metadata = self._config, self._metadata
        nodes = NodeClients(
            metadata,
            config.inter_broker_listener,
            str(self._broker_id),
            request_timeout_ms=config.get_int("controller.socket.timeout.ms"),
            security=self._node_security,
        )
        to_controller = NodeToController(metadata, nodes)
        self._receiver.on_controller_change = to_controller.close_others
        return AlterPartitionManager(
            self._broker_id,
            lambda: self.broker_epoch,
            metadata,
            replicas,
            to_controller,
            self._controller.submit,
            self._clock,
        )

    @property
    def max_lag(self) -> int:
        """The largest known lag of a followed partition, in records."""
        return self._fetchers.max_lag

    def _endpoint_of(self, broker_id: int) -> Endpoint | None:
        image = self._metadata.image
        return image.endpoint(broker_id, self._config.inter_broker_listener)

    async def join(
        self, endpoints: tuple[Endpoint, ...], start_coordinators: Callable[[], Awaitable[None]]
    ) -> None:
        """Register, take part in the election, follow the configs.

        Raises:
            BrokerIdTaken: another broker has this id or address.
        """
        self._endpoints = endpoints
        self._connection.on_session_expired(self._session_expired)
        await start_coordinators()
        session_timeout_ms = self._config.get_int("zookeeper.session.timeout.ms")
        await wait_until_expired(self._store.brokers, self._broker_id, session_timeout_ms)
        await self._register()
        self._alter_partition_manager.start()
        await self._controller.start(self._channels, self._rebalance_interval_s())
        await self._config_changes.start()

    async def update_endpoints(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Update the registration with the broker's new endpoints."""
        self._endpoints = endpoints
        try:
            await self._store.brokers.update(self._info(), self._clock.time_ms())
        except KafkapyError as error:  # a new session registers the new endpoints
            logger.error("The registration could not be changed: %s", error)

    def _info(self) -> BrokerInfo:
        rack = self._config.get_str("broker.rack") or None
        return BrokerInfo(self._broker_id, self._endpoints, rack, self._features)

    async def _register(self, previous_session_id: int = 0) -> None:
        info, brokers = self._info(), self._store.brokers
        self.broker_epoch = await brokers.register(info, self._clock.time_ms(), previous_session_id)
        self._receiver.broker_epoch = self.broker_epoch
        if self._endpoints != info.endpoints:  # updated while there was no registration
            await brokers.update(self._info(), self._clock.time_ms())
        logger.info(
            "Registered broker %d with addresses: %s, czxid (broker epoch): %d",
            self._broker_id,
            ",".join(f"{e.listener}://{e.host}:{e.port}" for e in self._endpoints),
            self.broker_epoch,
        )

    def _rebalance_interval_s(self) -> float | None:
        if not self._config.get_bool("auto.leader.rebalance.enable"):
            return None
        return self._config.get_int("leader.imbalance.check.interval.seconds")

    async def _online_topics(self) -> set[str]:
        """The topics whose first partition has a state that can be read."""
        store = self._store
        deleting = set(await store.requests.topic_deletions())
        names = [name for name in await store.topics.names() if name not in deleting]
        topics = await store.topics.get_all(names, {})
        first = [
            TopicPartition(t.topic, min(t.assignment)) for t in topics.values() if t.assignment
        ]
        return {partition.topic for partition in await store.topics.states(first)}

    async def wait_for_metadata(self) -> None:
        """Wait until the metadata has all topics. Metadata requests of clients wait until then.

        A client that gets UNKNOWN_TOPIC_OR_PARTITION may not refresh its metadata for minutes. The
        wait excludes topics that no controller sends: never online, or with unreadable znodes.
        """
        names = await self._online_topics()
        is_complete = await self._waiter.wait_until(
            lambda image: bool(image.brokers) and all(n in image.topics for n in names),
            _START_LIMIT_MS,
        )
        if not is_complete:
            logger.warning("Serving although not all topics are known after %d ms", _START_LIMIT_MS)
        self._waiter.mark_complete()

    def _may_be_replaced(self) -> bool:
        """Whether another broker may lead partitions that this broker leads.

        Without a connection to ZooKeeper, the session may have expired. In a new session, the
        state of the partitions is unknown until LeaderAndIsr is applied.
        """
        return (
            not self._connection.is_connected()
            or self._expired_session_id is not None
            or self._receiver.leader_and_isr_epoch != self._receiver.broker_epoch
        )

    def _session_expired(self) -> None:
        expired = self._connection.zookeeper.session_id
        logger.warning("ZooKeeper session 0x%x expired", expired)
        self._controller.submit(SessionExpired())
        is_rejoining = self._expired_session_id is not None
        self._expired_session_id = expired
        if not is_rejoining:
            self._spawn(keep_running("Rejoining the cluster", self._rejoin, logger))

    async def _rejoin(self) -> None:
        """Rejoin the cluster: a new session, a new broker epoch, another election.

        This loop also replaces a session that expires meanwhile: two loops would end each other's
        sessions. After an error in a later step, the broker stays registered: each registration
        makes the controller elect leaders.
        """
        while (expired := self._expired_session_id) is not None:
            try:
                if self._replaced_session_id != expired:
                    await self._connection.reconnect()
                    await self._register(expired)
                    self._replaced_session_id = expired
                await self._receiver.remove_deleted_topics()
                await self._config_changes.apply_all()
                await self._config_changes.process()
                for each in self._followed:
                    await each.reload()
            except KafkapyError as error:
                logger.error("Cannot join the cluster again, trying once more: %s", error)
                await asyncio.sleep(_RETRY_BACKOFF_S)
                continue
            if self._expired_session_id == expired:
                self._expired_session_id = None
        self._controller.submit(Startup())

    async def _notify_log_dir_failure(self) -> None:
        """Notify the controller, which asks for the lost replicas and elects other leaders."""
        while True:
            try:
                await self._store.requests.notify_log_dir_failure(self._broker_id)
                return
            except KafkapyError as error:
                logger.error("Cannot tell of a failed log directory, trying again: %s", error)
                await asyncio.sleep(_RETRY_BACKOFF_S)

    async def controlled_shutdown(self) -> None:
        """Request controlled shutdown, in which the controller moves this broker's leaders; at most
        60 s."""
        if self._config.is_alone or not self._config.get_bool("controlled.shutdown.enable"):
            return
        client = ControlledShutdownClient(
            self._broker_id,
            self._config,
            self._store,
            self._metadata,
            self._controller.submit,
            self._node_security,
        )
        try:
            await asyncio.wait_for(client.run(self.broker_epoch), _CONTROLLED_SHUTDOWN_LIMIT_S)
        except TimeoutError:
            logger.warning("Stopping without handing over: nobody answered in time")
        except ZooKeeperTimeout as timeout:
            self._zookeeper_timed_out = True
            logger.warning(
                "[KafkaServer id=%d] Stopping without controlled shutdown: %s. What this broker"
                " leads has no leader, and the broker stays registered, until its session expires",
                self._broker_id,
                timeout,
            )

    async def leave(self) -> None:
        """Stop the replica fetchers and resign. `end_session` removes the registration.

        If the controller still waits for ZooKeeper after the limit, the session ends first, which
        ends that wait.
        """
        self._fetchers.stop()
        await self._alter_partition_manager.stop()
        await self._config_changes.stop()
        for each in self._followed:
            await each.stop()
        if not await self._controller.stop(0 if self._zookeeper_timed_out else _RESIGN_LIMIT_S):
            await self.end_session()
            await self._controller.stop()
        await self._channels.close()

    async def end_session(self) -> None:
        """Close the ZooKeeper session; wait only briefly if ZooKeeper did not respond before."""
        await self._connection.close(_CLOSE_LIMIT_S if self._zookeeper_timed_out else None)
