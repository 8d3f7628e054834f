"""The broker process: the one place where the parts are put together.

`start` lists the steps in order, `stop` the same backwards. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import Any, Final

from kafkapy import __version__
from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.common.uuid import Uuid
from kafkapy.controller.config import ControllerConfig
from kafkapy.coordinator.config import GroupConfig, TransactionConfig
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kafkapy.metadata.acl_authorizer import AclAuthorizer, parse_super_users
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.dynamic_broker_configs import of_listeners_at_start
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuotas
from kafkapy.server.admin.acl_admin import AclAdmin
from kafkapy.server.admin.auto_creator import AutoCreator
from kafkapy.server.admin.config_admin import ConfigAdmin
from kafkapy.server.admin.quota_admin import QuotaAdmin
from kafkapy.server.admin.scram_admin import ScramAdmin
from kafkapy.server.admin.token_admin import TokenAdmin, TokenTimes
from kafkapy.server.admin.topic_admin import TopicAdmin, TopicDefaults
from kafkapy.server.api.dispatcher import Dispatcher
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.server.changes.config_applier import ConfigApplier
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.changes.stored_changes import StoredChanges
from kafkapy.server.changes.token_changes import TokenChangeListener
from kafkapy.server.cluster.cluster_member import ClusterMember
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.server.config.addresses import resolve
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.config.ineffective_configs import warn_of_broker
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig
from kafkapy.server.config.listeners import Listener
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.marker_sender import MarkerSender
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.maintenance import Maintenance
from kafkapy.server.network.acceptor import cannot_bind
from kafkapy.server.network.connection_limits import ConnectionLimits
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.listener_setup import set_up_listeners
from kafkapy.server.replicas.fetch_reader import FetchReader
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.security.node_security import rehearse_login
from kafkapy.server.services import Services
from kafkapy.server.system import Machine
from kafkapy.storage.filesystem import File
from kafkapy.storage.log_manager import LogManager
from kafkapy.zk.stores.store import ZkStore

logger = logging.getLogger("kafka.server.KafkaServer")

PID_FILE: Final = "kafkapy.pid"

NOT_RUNNING, STARTING, RECOVERY, RUNNING = 0, 1, 2, 3
PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN = 6, 7


class Broker:
    """One broker. Fixed: its config and ports. The parts come into being in `start`."""

    def __init__(self, config: KafkaConfig, machine: Machine | None = None) -> None:
        """`machine` is what it stands on, this one by default.

        Raises:
            ConfigError: a listener cannot be secured as the configuration says.
        """
        machine = machine or Machine()
        self.config = config
        self.clock = machine.clock
        self.random = machine.random
        self.failed = asyncio.Event()
        self.is_serving = False
        self._undo = contextlib.AsyncExitStack()
        self._pid_file: tuple[str, File] | None = None
        self._fs = machine.fs
        self._connect = machine.connect
        self._configs = DynamicConfig(config)
        self._services = Services(config, self.clock, MetadataCache())
        services = self._services
        quotas = services.client_quotas
        services.connection_limits = ConnectionLimits(config, machine.fs.open_files_limit())
        self._connections = ConnectionTable(
            config, services.connection_limits, quotas.connections, quotas.creations
        )
        services.connection_limits.on_change = self._connections.close_excess
        services.passwords = DynamicPasswords(config.properties, self.random.bytes)
        self._bind = machine.bind
        self._stored_changes: list[StoredChanges[Any, Any]] = []
        self._insecure: ConfigError | None = None
        try:
            self._secure(config)
        except ConfigError as error:
            if not services.passwords.has_secret:
                raise
            self._insecure = error  # what is missing may be in the dynamic configs

    def _secure(self, config: KafkaConfig) -> None:
        """Set up the listeners of `config`, as it secures them."""
        services = self._services
        listening = set_up_listeners(
            config,
            services.scram_credentials,
            self._connections,
            services.client_quotas.creations,
            self._bind,
            services.tasks.spawn,
            self.clock,
            self.random,
        )
        self._acceptor = listening.acceptor
        services.listener_changes = listening.changes
        services.oauth = listening.oauth
        services.node_security = listening.node_security

    async def start(self) -> None:
        """Become a running broker.

        Raises:
            ConfigError: the configuration, the log directories or the ports do not allow it.
            LogDirFailure: no log directory is usable.
        """
        self._services.metrics.broker_state = STARTING
        self._open_log_dirs()
        self._undo.callback(self._remove_pid_file)
        self._connection = await self._connect(
            self.config, self._fs, self.clock, self._services.metrics.zookeeper
        )
        self._undo.push_async_callback(self._connection.close)
        self._store = ZkStore(self._connection.zookeeper)
        await self._identify()
        await self._load_configs()
        await self._load_acls()
        self._bind_ports()
        await self._services.oauth.start(self._services.tasks.spawn)
        await rehearse_login(self._services.node_security)
        self._load_logs()
        await self._start_tokens()
        self._build()
        await self._member.join(self._acceptor.endpoints(), self._start_coordinators)
        self._acceptor.serve(Dispatcher(self._services, SERVED))
        self.is_serving = True
        await self._member.wait_for_metadata()
        self._maintenance.start()
        await self._start_metrics()
        self._services.metrics.broker_state = RUNNING
        logger.info(
            "[KafkaServer id=%d] started (kafkapy %s)", self._services.broker_id, __version__
        )

    async def stop(self) -> None:
        """Stop cleanly: nobody is cut off in the middle of an answer, everything is on disk."""
        services = self._services
        logger.info("[KafkaServer id=%d] shutting down", services.broker_id)
        services.metrics.broker_state = PENDING_CONTROLLED_SHUTDOWN
        await self._member.hand_over()
        services.metrics.broker_state = SHUTTING_DOWN
        self._acceptor.stop_accepting()
        await self._maintenance.stop()
        self._services.replicas.stop()
        self._services.transactions.stop()
        self._services.verifier.close()
        self._services.groups.stop()
        self._connections.close_all()
        await self._services.tasks.cancel()
        self._services.turns.close()
        if self._metrics_server is not None:
            await self._metrics_server.stop()
        await self._member.leave()
        self._remove_pid_file()
        self._log_manager.shutdown(self._member.broker_epoch)
        await self._member.end_session()
        self._log_manager.unlock()
        if self._pid_file is not None:
            self._pid_file[1].close()
        self._services.metrics.broker_state = NOT_RUNNING
        logger.info("[KafkaServer id=%d] shut down completed", self._services.broker_id)

    async def abandon(self) -> None:
        """After a `start` that was cancelled: be nobody's member. Logs that were opened are left
        to the recovery of the next start."""
        await self._undo.aclose()

    # the steps of start

    def _open_log_dirs(self) -> None:
        config = self.config
        self._log_manager = LogManager(
            self._fs,
            config.log_dirs,
            self._configs.log_defaults(),
            self.clock,
            self.random,
            producers=config.producers(),
        )
        self._log_manager.open()
        warn_of_broker(config.properties)
        self._hold_pid_file(f"{self._log_manager.live_log_dirs[0]}/{PID_FILE}")

    def _hold_pid_file(self, path: str) -> None:
        """Write the pid, and keep the file locked: the lock says whose file it is, until the
        process ends. `kafkapy server stop` finds brokers by it."""
        try:
            lock = self._fs.lock(path)
            if lock is None:
                logger.warning("Another process has locked %s: it cannot hold the pid", path)
                return
            self._pid_file = (path, lock)
            lock.truncate(0)
            lock.pwritev([b"%d\n" % os.getpid()], 0)
        except OSError as error:
            logger.warning("Cannot write %s: %s", path, error)

    async def _identify(self) -> None:
        services = self._services
        await self._store.create_persistent_paths()
        stored = self._log_manager.stored_identity()
        proposed = stored.cluster_id or str(Uuid.random(self.random))
        services.cluster_id = await self._store.get_or_create_cluster_id(proposed)
        services.broker_id = self.config.broker_id
        if services.broker_id < 0:
            services.broker_id = stored.broker_id if stored.broker_id is not None else -1
        if services.broker_id < 0:
            services.broker_id = await self._store.brokers.generate_id(
                self.config.get_int("reserved.broker.max.id")
            )
        self._log_manager.claim(services.broker_id, services.cluster_id)
        logger.info("Cluster ID = %s", services.cluster_id)

    async def _load_configs(self) -> None:
        configs, passwords = self._store.configs, self._services.passwords
        name = str(self._services.broker_id)
        own = await configs.get("brokers", name)
        if (encoded_anew := passwords.encoded_anew(own)) is not None:
            own = encoded_anew
            await configs.begin_broker(name, own)
        default = await configs.get("brokers", "<default>")
        self._configs.set_broker_layers(default=default, broker=passwords.plain(own))
        self._secure_by_dynamic_configs()
        self._configs.topic_overrides.update(await configs.get_all("topics"))
        self._log_manager.update_broker_defaults(self._configs.log_defaults())

    def _secure_by_dynamic_configs(self) -> None:
        """Apply the listener configs in ZooKeeper: logins, and stores. Both are replaced by what
        server.properties says if they are not usable, unless that is not either."""
        layers, insecure = self._configs.layers, self._insecure
        own = of_listeners_at_start(layers.dynamic_broker, stores=insecure is not None)
        if own:
            try:
                self._secure(KafkaConfig({**self.config.properties, **own}))
            except ConfigError as error:
                if insecure is not None:
                    raise
                logger.error("%s; what server.properties says serves instead", error)
        elif insecure is not None:
            raise insecure
        self._services.listener_changes.begin(layers.given())

    def _bind_ports(self) -> None:
        """Before the logs are loaded: a port that is taken is told at once, not after a recovery.

        Raises:
            ConfigError: names the port, and the process that has it.
        """
        self._acceptor.bind()
        host = self.config.get_str("kafkapy.metrics.host")
        port = self.config.get_int("kafkapy.metrics.port")
        if port > 0:
            try:  # it is bound again when there is something to serve
                self._bind(Listener("METRICS", host, port, "PLAINTEXT")).close()
            except OSError as error:
                what = f"kafkapy.metrics.port={port} on {host}"
                raise cannot_bind(what, port, error) from error

    async def _load_acls(self) -> None:
        config, services = self.config, self._services
        if not config.get_str("authorizer.class.name"):
            return
        authorizer = AclAuthorizer(
            parse_super_users(config.get_str("super.users")),
            config.get_bool("allow.everyone.if.no.acl.found"),
        )
        changes = AclChangeListener(self._store, self.clock, authorizer)
        await changes.start()
        services.authorizer = authorizer
        self._stored_changes.append(changes)
        services.acl_admin = AclAdmin(self._store, authorizer, changes)

    def _load_logs(self) -> None:
        self._services.metrics.broker_state = RECOVERY
        self._log_manager.load(self._configs.topic_overrides)

    def _build(self) -> None:
        config, services, clock = self.config, self._services, self.clock
        replicas = ReplicaManager(
            services.broker_id,
            self._log_manager,
            services.metadata,
            clock,
            config.get_int("replica.lag.time.max.ms"),
            asyncio.get_running_loop().call_later,
            ReplicationQuotas(
                services.broker_id,
                config.get_int("replication.quota.window.size.seconds") * 1000,
                config.get_int("replication.quota.window.num"),
            ),
        )
        groups = GroupService(
            GroupCoordinator(GroupConfig.from_values(config.values), self.random, clock),
            replicas,
            clock,
            config,
            asyncio.get_running_loop().call_later,
        )
        replicas.on_fatal = self._on_fatal
        self._log_manager.on_log_dir_failure = lambda _, failure: replicas.log_dir_failed(failure)
        services.replicas = replicas
        services.groups = groups
        services.producer_ids = ProducerIdManager(services.broker_id, self._store)
        self._build_transactions(replicas, groups)
        services.fetch_reader = FetchReader(
            replicas, clock, config.get_str("replica.selector.class")
        )
        services.fetch_sessions = FetchSessionCache(
            config.get_int("max.incremental.fetch.session.cache.slots"), self.random
        )
        services.effective_configs = self._configs
        self._build_admin()
        services.auto_creator = AutoCreator(
            config, services.topic_admin, services.metadata, services.waiter
        )
        services.served = SERVED
        self._build_member(replicas, groups)
        self._maintenance = Maintenance(
            config,
            replicas,
            groups,
            services.transactions,
            services.token_admin,
            services.controller,
            self._fs,
            self._connections,
            clock,
        )

    def _build_member(self, replicas: ReplicaManager, groups: GroupService) -> None:
        config, services, clock = self.config, self._services, self.clock
        listener_changes = services.listener_changes
        controller = services.controller = ControllerTask(
            ControllerConfig(
                services.broker_id,
                config.get_bool("delete.topic.enable"),
                config.get_bool("unclean.leader.election.enable"),
                config.get_int("leader.imbalance.per.broker.percentage"),
            ),
            self._store,
            clock,
            self.random,
        )
        controller.on_fatal = self._on_fatal
        services.control_requests = ControlRequestHandler(
            replicas,
            self._configs,
            self._store,
            services.metadata,
            services.waiter,
            groups.on_partitions_deleted,
        )
        applier = ConfigApplier(
            self._configs,
            services.passwords,
            replicas,
            services.scram_credentials,
            services.client_quotas,
            services.connection_limits,
            listener_changes,
            controller,
            services.tasks.spawn,
        )
        services.config_changes = ConfigChangeListener(self._store, clock, applier.apply)
        self._member = ClusterMember(
            config,
            services.broker_id,
            controller,
            services.control_requests,
            services.config_changes,
            self._stored_changes,
            services.waiter,
            services.metadata,
            replicas,
            services.tasks.spawn,
            services.node_security,
            self._connection,
            self._store,
            clock,
        )
        assert listener_changes.listeners is not None
        listener_changes.listeners.on_change = self._readvertise

    async def _start_coordinators(self) -> None:
        await self._services.groups.start(self._store)
        await self._services.transactions.start(self._store)

    async def _readvertise(self, config: KafkaConfig, endpoints: tuple[Endpoint, ...]) -> None:
        """The broker has other listeners: have its registration, and so everybody, say so."""
        services = self._services
        names = [each.name for each in config.listeners]
        services.client_quotas.creations.have(names)
        services.client_quotas.creations.update(config.properties)
        services.connection_limits.have(names, config.properties)
        await self._member.readvertise(endpoints)

    def _build_transactions(self, replicas: ReplicaManager, groups: GroupService) -> None:
        config, services, clock = self.config, self._services, self.clock
        timeout_ms = config.get_int("request.timeout.ms")
        call_later = asyncio.get_running_loop().call_later

        def nodes() -> NodeClients:
            # Of their own: a verification must not wait for markers that are being replicated.
            return NodeClients(
                services.metadata,
                config.inter_broker_listener,
                str(services.broker_id),
                request_timeout_ms=timeout_ms,
                security=services.node_security,
            )

        services.markers = MarkerWriter(replicas, groups, clock, timeout_ms)
        transactions = services.transactions = TransactionService(
            TransactionCoordinator(TransactionConfig.from_values(config.values), clock),
            replicas,
            clock,
            config,
            call_later,
            producer_ids=services.producer_ids,
            markers=MarkerSender(
                services.broker_id,
                services.metadata,
                services.markers,
                nodes(),
                call_later,
                lambda: services.waiter.is_known,
            ),
            spawn=services.tasks.spawn,
        )
        services.verifier = TransactionVerifier(
            services.broker_id, services.metadata, replicas, transactions, nodes()
        )

        def on_leadership(partition: Partition, leads: bool) -> None:
            groups.on_leadership(partition, leads)
            transactions.on_leadership(partition, leads)

        replicas.on_leadership = on_leadership

    def _build_admin(self) -> None:
        config, services = self.config, self._services
        services.topic_admin = TopicAdmin(
            self._store,
            services.metadata,
            self.random,
            TopicDefaults(
                config.get_int("num.partitions"),
                config.get_int("default.replication.factor"),
                config.get_bool("delete.topic.enable"),
            ),
        )
        services.scram_admin = ScramAdmin(self._store)
        services.quota_admin = QuotaAdmin(self._store, resolve, config.is_embedded)
        services.config_admin = ConfigAdmin(
            self._store,
            services.metadata,
            BROKER_CONFIGS,
            services.broker_id,
            self._configs.log_defaults,
            lambda configs: services.listener_changes.prepare(
                *self._configs.change_of_own(configs)
            ),
            services.passwords,
        )

    async def _start_tokens(self) -> None:
        """Know the tokens that are stored and follow their changes, if there is a secret."""
        services, config, clock = self._services, self.config, self.clock
        if not services.tokens.are_enabled:
            return
        changes = TokenChangeListener(self._store, clock, services.tokens)
        await changes.start()
        self._stored_changes.append(changes)
        times = TokenTimes(
            config.get_int("delegation.token.max.lifetime.ms"),
            config.get_int("delegation.token.expiry.time.ms"),
        )
        services.token_admin = TokenAdmin(
            self._store, services.tokens, changes, clock, self.random, times
        )

    async def _start_metrics(self) -> None:
        self._metrics_server = None
        port = self.config.get_int("kafkapy.metrics.port")
        if port >= 0:
            # Imported only where it is asked for: it is a tenth of the start-up time.
            from kafkapy.server.observability.cluster_metrics import ClusterMetrics
            from kafkapy.server.observability.coordinator_metrics import CoordinatorMetrics
            from kafkapy.server.observability.metrics_server import MetricsCollector, MetricsServer

            services = self._services
            collector = MetricsCollector(
                services.metrics,
                services.replicas,
                services.fetch_sessions,
                services.client_quotas,
                self._connections,
                self.clock,
                (
                    ClusterMetrics(
                        services.controller,
                        services.replicas,
                        services.metrics.zookeeper,
                        lambda: self._member.max_lag,
                    ),
                    CoordinatorMetrics(services.groups, services.transactions),
                ),
            )
            self._metrics_server = MetricsServer(collector)
            await self._metrics_server.start(self.config.get_str("kafkapy.metrics.host"), port)
            logger.info("Metrics on port %d", self._metrics_server.port)

    def _on_fatal(self, fault: BaseException) -> None:
        logger.critical("Shutting down: the broker cannot go on after: %s", fault)
        self.failed.set()

    def _remove_pid_file(self) -> None:
        """The lock stays: a broker that flushes its logs is a broker still."""
        if self._pid_file is not None:
            with contextlib.suppress(OSError):
                self._fs.remove(self._pid_file[0])
