"""The broker process: creates and connects the parts, starts and stops them.

`start` lists the steps in order, `stop` in reverse. All other logic is in the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from kafkapy import __version__
from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.common.uuid import Uuid
from kafkapy.controller.config import ControllerConfig
from kafkapy.metadata.acl_authorizer import AclAuthorizer, parse_super_users
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.dynamic_broker_configs import listener_configs_at_start
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.metadata.telemetry import ClientTelemetry
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.replication.replication_quota import ReplicationQuotas
from kafkapy.server.admin.acl_admin import AclAdmin
from kafkapy.server.admin.auto_creator import AutoCreator
from kafkapy.server.admin.config_admin import ConfigAdmin
from kafkapy.server.admin.quota_admin import QuotaAdmin
from kafkapy.server.admin.scram_admin import ScramAdmin
from kafkapy.server.admin.token_admin import TokenAdmin, TokenTimes
from kafkapy.server.admin.topic_admin import TopicAdmin, TopicDefaults
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.dispatcher import Dispatcher
from kafkapy.server.api.throttler import Throttler
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.server.changes.config_applier import ConfigApplier
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.changes.stored_changes import ZooKeeperWatcher
from kafkapy.server.changes.token_changes import TokenChangeListener
from kafkapy.server.cluster.cluster_features import ClusterFeatures, supported_features
from kafkapy.server.cluster.cluster_member import ClusterMember
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.server.config.addresses import resolve
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.config.ineffective_configs import warn_of_broker_configs
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.config.listeners import Listener
from kafkapy.server.coordinators.group_service import GroupService, set_up_groups
from kafkapy.server.coordinators.group_topics import GroupTopics
from kafkapy.server.coordinators.share_setup import set_up_shares
from kafkapy.server.coordinators.transaction_setup import set_up_transactions
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.maintenance import Maintenance
from kafkapy.server.network.acceptor import bind_error
from kafkapy.server.network.connection_limits import ConnectionLimits
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.listener_setup import set_up_listeners
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.replicas.fetch_reader import FetchReader
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.server.security.node_security import check_login
from kafkapy.server.security.scram_credentials import ScramCredentials
from kafkapy.server.system import PID_FILE, Machine, PidFile
from kafkapy.storage.log_manager import LogManager
from kafkapy.zk.stores.store import ZkStore

if TYPE_CHECKING:
    from kafkapy.server.observability.metrics_server import BrokerMetrics

logger = logging.getLogger("kafka.server.KafkaServer")

NOT_RUNNING, STARTING, RECOVERY, RUNNING = 0, 1, 2, 3
PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN = 6, 7


class Broker:
    """One broker. Its config and `Machine` are fixed. `start` creates most of the parts."""

    def __init__(self, config: KafkaConfig, machine: Machine | None = None) -> None:
        """`machine` has the clock, the file system and so on; the default is this machine.

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
        self._fs = machine.fs
        self._pid_file = PidFile(machine.fs)
        self._connect = machine.connect
        self._configs = DynamicConfig(config)
        self._metadata = MetadataCache()
        self._waiter = MetadataWaiter(self._metadata)
        self._metrics = Metrics()
        self._slices = SliceScheduler()
        self._tasks = BackgroundTasks()
        self._tokens = DelegationTokens(config.token_secret, self.clock)
        self._token_admin: TokenAdmin | None = None  # None without a secret key
        self._scram_credentials = ScramCredentials(self._tokens)
        self._telemetry = ClientTelemetry(config.get_int("telemetry.max.bytes"), self.random)
        self._exporter: BrokerMetrics | None = None  # None without a metrics port
        self._authorizer: AclAuthorizer | None = None  # set together with _acl_admin
        self._acl_admin: AclAdmin | None = None
        self._quotas = quotas = ClientQuotas(config, self.clock)
        self._connection_limits = ConnectionLimits(config, machine.fs.open_files_limit())
        self._connections = ConnectionTable(
            config, self._connection_limits, quotas.connections, quotas.creations
        )
        self._connection_limits.on_change = self._connections.close_excess
        self._connection_limits.spawn = self._tasks.spawn
        self._passwords = DynamicPasswords(config.properties, self.random.bytes)
        self._bind = machine.bind
        self._features = ClusterFeatures(supported_features(config))
        self._followed: list[ZooKeeperWatcher] = [self._features]
        self._security_error: ConfigError | None = None
        try:
            self._set_up_listeners(config)
        except ConfigError as error:
            if not self._passwords.has_secret:
                raise
            self._security_error = error  # the dynamic configs may have the missing settings

    def _set_up_listeners(self, config: KafkaConfig) -> None:
        """Set up the listeners of `config` with its security settings."""
        parts = set_up_listeners(
            config,
            self._scram_credentials,
            self._connections,
            self._quotas.creations,
            self._bind,
            self._tasks.spawn,
            self.clock,
            self.random,
        )
        self._acceptor = parts.acceptor
        self._listener_changes = parts.changes
        self._oauth = parts.oauth
        self._node_security = parts.node_security

    async def start(self) -> None:
        """Become a running broker.

        Raises:
            ConfigError: the configuration, the log directories or the ports do not allow it.
            LogDirFailure: no log directory is usable.
        """
        self._metrics.broker_state = STARTING
        self._open_log_dirs()
        self._undo.callback(self._pid_file.remove)
        self._connection = await self._connect(
            self.config, self._fs, self.clock, self._metrics.zookeeper
        )
        self._undo.push_async_callback(self._connection.close)
        self._connection.on_failure(self._on_fatal)
        self._store = ZkStore(self._connection.zookeeper)
        await self._identify()
        await self._load_configs()
        await self._load_acls()
        self._bind_ports()
        await self._oauth.start(self._tasks.spawn)
        await check_login(self._node_security)
        self._load_logs()
        await self._start_tokens()
        self._build()
        await self._member.join(self._acceptor.endpoints(), self._start_coordinators)
        await self._features.start(self._store)
        self._set_up_metrics()
        self._acceptor.serve(self._dispatcher())
        self.is_serving = True
        await self._member.wait_for_metadata()
        self._maintenance.start()
        if self._exporter is not None:
            await self._exporter.start(self.config)
        self._metrics.broker_state = RUNNING
        logger.info("[KafkaServer id=%d] started (kafkapy %s)", self._broker_id, __version__)

    async def stop(self) -> None:
        """Stop cleanly: responses under way are sent in full, and the logs are flushed to disk."""
        logger.info("[KafkaServer id=%d] shutting down", self._broker_id)
        self._metrics.broker_state = PENDING_CONTROLLED_SHUTDOWN
        await self._member.controlled_shutdown()
        self._metrics.broker_state = SHUTTING_DOWN
        await self._control_requests.stop()
        self._acceptor.stop_accepting()
        await self._maintenance.stop()
        self.replicas.stop()
        self._verifier.close()
        for coordinator in (self._transactions, self._shares, self._groups):
            coordinator.stop()
        self._connections.close_all()
        await self._tasks.cancel()
        self._slices.close()
        if self._exporter is not None:
            await self._exporter.server.stop()
        await self._member.leave()
        self._pid_file.remove()
        self._log_manager.shutdown(self._member.broker_epoch)
        await self._member.end_session()
        self._log_manager.unlock()
        self._pid_file.close()
        self._metrics.broker_state = NOT_RUNNING
        logger.info("[KafkaServer id=%d] shut down completed", self._broker_id)

    async def abandon(self) -> None:
        """Leave the cluster after a cancelled `start`. The next start recovers the logs."""
        await self._undo.aclose()

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
        warn_of_broker_configs(config.properties)
        self._pid_file.hold(f"{self._log_manager.live_log_dirs[0]}/{PID_FILE}")

    async def _identify(self) -> None:
        await self._store.create_persistent_paths()
        stored = self._log_manager.stored_identity()
        proposed = str(Uuid.random(self.random))  # matches no used log directory
        self._cluster_id = await self._store.get_or_create_cluster_id(proposed)
        self._broker_id = self.config.broker_id
        if self._broker_id < 0:
            self._broker_id = stored.broker_id if stored.broker_id is not None else -1
        if self._broker_id < 0:
            self._broker_id = await self._store.brokers.generate_id(
                self.config.get_int("reserved.broker.max.id")
            )
        self._log_manager.claim(self._broker_id, self._cluster_id)
        logger.info("Cluster ID = %s", self._cluster_id)

    async def _load_configs(self) -> None:
        configs, passwords = self._store.configs, self._passwords
        name = str(self._broker_id)
        own = await configs.get("brokers", name)
        if (reencoded := passwords.reencoded(own)) is not None:
            own = reencoded
            await configs.set_before_start(name, own)
        default = await configs.get("brokers", "<default>")
        self._configs.set_broker_layers(default=default, broker=passwords.plain(own))
        self._apply_dynamic_listeners()
        self._configs.topic_overrides.update(await configs.get_all("topics"))
        self._log_manager.update_broker_defaults(self._configs.log_defaults())

    def _apply_dynamic_listeners(self) -> None:
        """Apply listener configs from ZooKeeper; TLS stores only if server.properties is unusable.
        Unusable ones are ignored. Raises ConfigError if both are unusable."""
        layers, security_error = self._configs.layers, self._security_error
        own = listener_configs_at_start(layers.dynamic_broker, stores=security_error is not None)
        if own:
            try:
                self._set_up_listeners(KafkaConfig({**self.config.properties, **own}))
            except ConfigError as error:
                if security_error is not None:
                    raise
                logger.error("%s; what server.properties says serves instead", error)
        elif security_error is not None:
            raise security_error
        self._listener_changes.load_stored(layers.configured())

    def _bind_ports(self) -> None:
        """Bind the ports before the logs are loaded: a port in use is reported before the recovery.

        Raises:
            ConfigError: names the port, and the process that has it.
        """
        self._acceptor.bind()
        host = self.config.get_str("kafkapy.metrics.host")
        port = self.config.get_int("kafkapy.metrics.port")
        if port > 0:
            try:  # a check; bound again when the metrics are served
                self._bind(Listener("METRICS", host, port, "PLAINTEXT")).close()
            except OSError as error:
                raise bind_error(f"kafkapy.metrics.port={port} on {host}", port, error) from error

    async def _load_acls(self) -> None:
        config = self.config
        if not config.get_str("authorizer.class.name"):
            return
        authorizer = AclAuthorizer(
            parse_super_users(config.get_str("super.users")),
            config.get_bool("allow.everyone.if.no.acl.found"),
        )
        changes = AclChangeListener(self._store, self.clock, authorizer)
        await changes.start()
        self._authorizer = authorizer
        self._followed.append(changes)
        self._acl_admin = AclAdmin(self._store, authorizer, changes)

    def _load_logs(self) -> None:
        self._metrics.broker_state = RECOVERY
        self._log_manager.load(self._configs.topic_overrides)

    def _build(self) -> None:
        config, clock = self.config, self.clock
        replicas = ReplicaManager(
            self._broker_id,
            self._log_manager,
            self._metadata,
            clock,
            config.get_int("replica.lag.time.max.ms"),
            asyncio.get_running_loop().call_later,
            ReplicationQuotas(
                self._broker_id,
                config.get_int("replication.quota.window.size.seconds") * 1000,
                config.get_int("replication.quota.window.num"),
            ),
        )
        call_later = asyncio.get_running_loop().call_later
        topics = GroupTopics(self._metadata, self._waiter, clock.time_ms())
        groups = set_up_groups(config, topics, replicas, clock, self.random, call_later)
        replicas.on_fatal = self._on_fatal
        self._log_manager.on_log_dir_failure = lambda _, failure: replicas.log_dir_failed(failure)
        self.replicas, self._groups = replicas, groups
        self._producer_ids = ProducerIdManager(self._broker_id, self._store)
        self._transactions, self._markers, self._verifier = set_up_transactions(
            config,
            self._broker_id,
            replicas,
            groups,
            self._producer_ids,
            self._metadata,
            self._waiter,
            self._node_security,
            clock,
            asyncio.get_running_loop().call_later,
            lambda: self._features.transaction_version,
            self._tasks.spawn,
        )
        self._shares = set_up_shares(
            *(config, replicas, groups, self._metadata, topics),
            *(self._node_security, clock, self._slices),
        )
        self._fetch_reader = FetchReader(replicas, clock, config.get_str("replica.selector.class"))
        self._fetch_sessions = FetchSessionCache(
            config.get_int("max.incremental.fetch.session.cache.slots"), self.random
        )
        self._build_admin()
        self._build_member(replicas, groups)
        self._maintenance = Maintenance(
            config,
            replicas,
            groups,
            self._transactions,
            self._shares.service,
            self._token_admin,
            self.controller,
            self._fs,
            self._connections,
            clock,
        )

    def _build_member(self, replicas: ReplicaManager, groups: GroupService) -> None:
        config, clock = self.config, self.clock
        listener_changes = self._listener_changes
        controller = self.controller = ControllerTask(
            ControllerConfig(
                self._broker_id,
                config.get_bool("delete.topic.enable"),
                bool(self._configs.log_defaults().get("unclean.leader.election.enable")),
                config.get_int("leader.imbalance.per.broker.percentage"),
            ),
            self._store,
            clock,
            self.random,
        )
        controller.on_fatal = self._on_fatal
        self._control_requests = ControlRequestHandler(
            replicas,
            self._configs,
            self._store,
            self._metadata,
            self._waiter,
            groups.on_partitions_deleted,
            self._metrics,
        )
        applier = ConfigApplier(
            self._configs,
            self._passwords,
            replicas,
            self._scram_credentials,
            self._quotas,
            self._connection_limits,
            listener_changes,
            controller,
            self._telemetry,
            groups.coordinator.configure_group,
            self._tasks.spawn,
        )
        self._config_changes = ConfigChangeListener(self._store, clock, applier.apply)
        self._member = ClusterMember(
            config,
            self._broker_id,
            controller,
            self._control_requests,
            self._config_changes,
            self._followed,
            self._features.supported,
            self._waiter,
            self._metadata,
            replicas,
            self._tasks.spawn,
            self._node_security,
            self._connection,
            self._store,
            clock,
        )
        assert listener_changes.listeners is not None
        listener_changes.listeners.on_change = self._update_listeners

    async def _start_coordinators(self) -> None:
        for service in (self._groups, self._transactions, self._shares.service):
            await service.start(self._store)

    async def _update_listeners(self, config: KafkaConfig, endpoints: tuple[Endpoint, ...]) -> None:
        """Register changed listeners. The limits are the current ones: `config` may be older."""
        names, configs = [each.name for each in config.listeners], self._configs.layers.configured()
        self._quotas.creations.set_listeners(names)
        self._quotas.creations.update(configs)
        self._connection_limits.set_listeners(names, configs)
        await self._member.update_endpoints(endpoints)

    def _dispatcher(self) -> Dispatcher:
        """The dispatcher with all request handlers."""
        config, clock, slices = self.config, self.clock, self._slices
        cluster = ClusterView(self._cluster_id, self._broker_id, self._metadata)
        authorization, throttler = Authorization(self._authorizer), Throttler(self._quotas, clock)
        auto_create_topics = config.get_bool("auto.create.topics.enable")
        produce = handler_table.produce_paths(
            self.replicas,
            self._metrics,
            clock,
            slices,
            self._verifier,
            cluster,
            throttler,
            authorization,
        )
        fetch = handler_table.fetch_paths(
            self.replicas,
            self._metrics,
            self._fetch_reader,
            self._fetch_sessions,
            clock,
            throttler,
            self._metadata,
            cluster,
            authorization,
            config.get_int("fetch.max.bytes"),
        )
        handlers = {
            ApiKey.PRODUCE: produce.general,
            ApiKey.FETCH: fetch.general,
            **handler_table.logs(self.replicas, clock),
            **handler_table.groups(self._groups, self._metadata, authorization, self._features),
            **handler_table.share_members(
                self._shares, self._features, authorization, cluster, self._metrics, throttler
            ),
            **handler_table.cluster(
                cluster,
                handler_table.coordinators(self._groups, self._transactions, self._shares),
                self._waiter,
                self._creator,
                auto_create_topics,
                authorization,
                self._quotas,
                slices,
                self._tasks,
                self._features,
                self._exporter is not None,
            ),
            **handler_table.telemetry(self._exporter and self._exporter.client_metrics, clock),
            **handler_table.in_background(self._tasks, *self._background_areas(authorization)),
        }
        return Dispatcher(
            handler_table.table(handlers, authorization, auto_create_topics, self._metadata),
            self._metrics.requests,
            throttler,
            slices,
            produce.fast,
            fetch.fast,
        )

    def _background_areas(
        self, authorization: Authorization
    ) -> list[handler_table.BackgroundHandlers]:
        """The handlers that wait for ZooKeeper, the controller or other brokers, by area."""
        config, metadata, waiter, slices = self.config, self._metadata, self._waiter, self._slices
        changes, controller, tasks = self._config_changes, self.controller, self._tasks
        tokens = TokenRequests(self._acceptor.security_protocol, self._token_admin)
        return [
            handler_table.transactions(
                self._transactions,
                self._groups,
                metadata,
                self._verifier,
                self._markers,
                self._producer_ids,
                self._creator,
            ),
            handler_table.share_offsets(self._shares, self._features, authorization, tasks, slices),
            handler_table.topics(
                self._topic_admin,
                config.get_bool("delete.topic.enable"),
                controller,
                metadata,
                waiter,
                self._configs,
                authorization,
                self._quotas,
                slices,
            ),
            handler_table.configs(
                self._config_admin, self._configs, changes, metadata, self._broker_id, slices
            ),
            handler_table.acls(self._acl_admin, slices),
            handler_table.quotas(self._quota_admin, changes, slices),
            handler_table.scram(self._scram_admin, changes, controller, slices),
            handler_table.delegation_tokens(tokens, self._tokens, authorization, tasks),
            handler_table.controller(controller, metadata, waiter, self.clock, self._features),
            handler_table.control_requests(self._control_requests, config.inter_broker_listener),
        ]

    def _build_admin(self) -> None:
        config = self.config
        defaults = TopicDefaults.from_config(config)
        self._topic_admin = TopicAdmin(self._store, self._metadata, self.random, defaults)
        config_lock = asyncio.Lock()
        self._scram_admin = ScramAdmin(self._store, config_lock)
        self._quota_admin = QuotaAdmin(self._store, config_lock, resolve, config.is_alone)
        self._config_admin = ConfigAdmin(
            self._store,
            config_lock,
            self._metadata,
            lambda: self._configs.layers,
            self._broker_id,
            self._configs.log_defaults,
            lambda configs: self._listener_changes.prepare(*self._configs.own_change(configs)),
            self._passwords,
        )
        waiter, slices = self._waiter, self._slices
        self._creator = AutoCreator(config, self._topic_admin, self._metadata, waiter, slices)
        self._shares.set_topic_creator(self._creator.create, self._tasks.spawn)

    async def _start_tokens(self) -> None:
        """Load the stored delegation tokens and follow their changes, if a secret key is set."""
        config, clock = self.config, self.clock
        if not self._tokens.are_enabled:
            return
        changes = TokenChangeListener(self._store, clock, self._tokens)
        await changes.start()
        self._followed.append(changes)
        self._token_admin = TokenAdmin(
            self._store, self._tokens, changes, clock, self.random, TokenTimes.from_config(config)
        )

    def _set_up_metrics(self) -> None:
        """Create the metrics of the broker and of clients, if a metrics port is configured."""
        if self.config.get_int("kafkapy.metrics.port") < 0:
            return
        # Imported only with a metrics port: the import takes a tenth of the start-up time.
        from kafkapy.server.observability.metrics_server import set_up_metrics

        self._exporter = set_up_metrics(
            self._metrics,
            self.replicas,
            self._fetch_sessions,
            self._quotas,
            self._connections,
            self.controller,
            lambda: self._member.max_lag,
            self._groups,
            self._transactions,
            self._telemetry,
            self.clock,
            self._slices,
        )

    def _on_fatal(self, fault: BaseException) -> None:
        logger.critical("Shutting down: the broker cannot go on after: %s", fault)
        self.failed.set()
