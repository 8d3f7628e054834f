"""A broker's parts over real logs, without sockets, tasks or time: the test fires the timers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy.common.cluster_state import (
    CommandResult,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.common.uuid import Uuid
from kafkapy.controller.controller import Controller
from kafkapy.controller.events import Event
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.metadata.telemetry import ClientTelemetry
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.replication.delayed_fetch import FetchParams
from kafkapy.replication.fetch_session import FetchPartition, FetchSessionCache
from kafkapy.replication.partition import Partition
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.dispatcher import Dispatcher
from kafkapy.server.api.fetch_fast_path import FetchFastPath
from kafkapy.server.api.produce_fast_path import ProduceFastPath
from kafkapy.server.api.throttler import Throttler
from kafkapy.server.changes.config_applier import ConfigApplier
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.coordinators.group_service import set_up_groups
from kafkapy.server.coordinators.group_topics import GroupTopics
from kafkapy.server.coordinators.marker_sender import MarkerSender
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
from kafkapy.server.counts.metrics import Metrics, RequestMetrics
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.network.connection_limits import ConnectionLimits
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.listener_changes import ListenerChanges
from kafkapy.server.observability.cluster_metrics import ClusterMetrics
from kafkapy.server.observability.metrics_server import MetricsServer, set_up_metrics
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.replicas.fetch_reader import FetchReader
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.server.security.scram_credentials import ScramCredentials
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_manager import LogManager
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.cores.znodes import run
from tests.harness.plugins.closing import Disk
from tests.harness.scripted import admins
from tests.harness.storage.partitions import LAG_MAX_MS, TOPIC_ID, partition_state

WALL_AHEAD_MS = 1_700_000_000_000


class FakeTimer:
    """A timer that fires when the test fires it."""

    def __init__(self, delay_s: float, due: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.due = due
        self.waits = True

    def cancel(self) -> None:
        self.waits = False


class FakeTimers:
    """`call_later` of an event loop; the test fires the timers."""

    def __init__(self) -> None:
        self._made: list[FakeTimer] = []

    def call_later(self, delay_s: float, due: Callable[[], None]) -> Any:
        timer = FakeTimer(delay_s, due)
        self._made.append(timer)
        return timer

    @property
    def delays_s(self) -> list[float]:
        """The delays of the timers that wait."""
        return [timer.delay_s for timer in self._made if timer.waits]

    def fire(self) -> None:
        """Fire the timers that are waiting now."""
        for timer in [timer for timer in self._made if timer.waits]:
            if timer.waits:
                timer.waits = False
                timer.due()


class FakeController:
    """Records the events for this broker's controller."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.unclean_allowed: list[bool] = []
        self.controller: Controller | None = None
        self.queue_size = 0
        self.event_times = RequestMetrics()

    def submit(self, event: Event) -> None:
        self.events.append(event)

    def allow_unclean_elections(self, allowed: bool) -> None:
        self.unclean_allowed.append(allowed)


class FakeProducerIds:
    """Ids from 4000 on."""

    def __init__(self) -> None:
        self.given = 0

    async def next_id(self) -> int:
        self.given += 1
        return 3999 + self.given


class Parts:
    """Broker 1's parts in `directory` (or several), with `properties`."""

    def __init__(
        self,
        *directories: Path,
        fs: FileSystem | None = None,
        properties: dict[str, str] | None = None,
    ) -> None:
        self.clock = ManualClock(1_000_000, WALL_AHEAD_MS)
        self.timers = FakeTimers()
        self.config = KafkaConfig({"broker.id": "1", **(properties or {})})
        self.configs = DynamicConfig(self.config)
        self.metadata = MetadataCache()
        self.fs = fs or Disk()
        paths = [str(directory) for directory in directories]
        random = SeededRandom()
        self.logs = LogManager(
            self.fs,
            paths,
            self.configs.log_defaults(),
            self.clock,
            random,
            producers=self.config.producers(),
        )
        self.logs.open()
        self.logs.load({})
        self.replicas = ReplicaManager(
            1, self.logs, self.metadata, self.clock, LAG_MAX_MS, self.timers.call_later
        )
        self.metrics = Metrics()
        self.slices = SliceScheduler()
        self.tasks = BackgroundTasks()
        self.waiter = MetadataWaiter(self.metadata)
        self.client_quotas = ClientQuotas(self.config, self.clock)
        self.throttler = Throttler(self.client_quotas, self.clock)
        self.connection_limits = ConnectionLimits(self.config)
        self.listener_changes = ListenerChanges()
        self.scram_credentials = ScramCredentials(
            DelegationTokens(self.config.token_secret, self.clock)
        )
        self.passwords = DynamicPasswords(self.config.properties, random.bytes)
        self.authorizer: AclAuthorizer | None = None
        self.groups = set_up_groups(
            self.config,
            GroupTopics(self.metadata, self.waiter, self.clock.time_ms()),
            self.replicas,
            self.clock,
            random,
            self.timers.call_later,
        )
        self.shares: Any = SimpleNamespace(maintain=lambda: None)
        self.features: Any = SimpleNamespace(has_consumer_groups=True, has_share_groups=True)
        self._transact()
        self.logs.on_log_dir_failure = lambda _, failure: self.replicas.log_dir_failed(failure)
        self.fetch_reader = FetchReader(self.replicas, self.clock)
        self.fetch_sessions = FetchSessionCache(10, random)
        self.telemetry = ClientTelemetry(1 << 20, random)
        self.controller = FakeController()
        self.max_lag = 0

    def _transact(self) -> None:
        """Create the parts of transactions; requests to other brokers get no answer."""
        config, clock = self.config, self.clock
        self.producer_ids: Any = FakeProducerIds()
        nodes = NodeClients(self.metadata, "PLAINTEXT", "1", request_timeout_ms=1000)
        self.markers = MarkerWriter(self.replicas, self.groups, clock, 1000)
        self.transactions = TransactionService(
            TransactionCoordinator(TransactionConfig.from_values(config.values), clock),
            self.replicas,
            clock,
            config,
            self.timers.call_later,
            producer_ids=self.producer_ids,
            markers=MarkerSender(
                1, self.metadata, self.markers, nodes, self.timers.call_later, lambda: True
            ),
            spawn=run,
        )
        self.verifier = TransactionVerifier(
            1, self.metadata, self.replicas, self.transactions, nodes, clock,
            self.timers.call_later,
        )  # fmt: skip

        def on_leadership(partition: Partition, leads: bool) -> None:
            self.groups.on_leadership(partition, leads)
            self.transactions.on_leadership(partition, leads)

        self.replicas.on_leadership = on_leadership

    @property
    def cluster(self) -> ClusterView:
        return ClusterView("cluster", 1, self.metadata)

    @property
    def authorization(self) -> Authorization:
        return Authorization(self.authorizer)

    @property
    def produce_paths(self) -> handler_table.Paths[ProduceFastPath]:
        return handler_table.produce_paths(
            self.replicas,
            self.metrics,
            self.clock,
            self.slices,
            self.verifier,
            self.cluster,
            self.throttler,
            self.authorization,
        )

    @property
    def fetch_paths(self) -> handler_table.Paths[FetchFastPath]:
        return handler_table.fetch_paths(
            self.replicas,
            self.metrics,
            self.fetch_reader,
            self.fetch_sessions,
            self.clock,
            self.throttler,
            self.metadata,
            self.cluster,
            self.authorization,
            self.config.get_int("fetch.max.bytes"),
        )

    def handlers(self) -> handler_table.Handlers:
        """The handlers of logs and groups, with the parts as they are now."""
        return {
            ApiKey.PRODUCE: self.produce_paths.general,
            ApiKey.FETCH: self.fetch_paths.general,
            **handler_table.logs(self.replicas, self.clock),
            **handler_table.groups(self.groups, self.metadata, self.authorization, self.features),
        }

    def dispatcher(self) -> Dispatcher:
        """A dispatcher with these handlers."""
        return Dispatcher(
            handler_table.table(self.handlers(), self.authorization, True, self.metadata),
            self.metrics.requests,
            self.throttler,
            self.slices,
            self.produce_paths.fast,
            self.fetch_paths.fast,
        )

    def cluster_metrics(self) -> ClusterMetrics:
        """Metrics of this broker's controller, replicas and ZooKeeper session."""
        return ClusterMetrics(
            self.controller,
            self.replicas,
            self.metrics.zookeeper,
            lambda: self.max_lag,
        )

    def metrics_server(self) -> MetricsServer:
        """A server of all metrics; there are no connections."""
        return set_up_metrics(
            self.metrics,
            self.replicas,
            self.fetch_sessions,
            self.client_quotas,
            ConnectionTable(self.config),
            self.controller,
            lambda: self.max_lag,
            self.groups,
            self.transactions,
            self.telemetry,
            self.clock,
            SliceScheduler(),
        ).server

    def config_applier(self) -> ConfigApplier:
        """An applier of dynamic configs to these parts."""
        return ConfigApplier(
            self.configs,
            self.passwords,
            self.replicas,
            self.scram_credentials,
            self.client_quotas,
            self.connection_limits,
            self.listener_changes,
            self.controller,
            self.telemetry,
            self.groups.coordinator.configure_group,
            self.tasks.spawn,
        )

    def control_request_handler(self, store: ZkStore) -> ControlRequestHandler:
        """A handler of the controller's requests to these parts."""
        return ControlRequestHandler(
            self.replicas,
            self.configs,
            store,
            self.metadata,
            self.waiter,
            self.groups.on_partitions_deleted,
            self.metrics,
        )

    def apply_leader_and_isr(
        self, *rows: LeaderAndIsrPartition, controller_epoch: int = 1, **overrides: str
    ) -> CommandResult:
        """Apply a LeaderAndIsr command; `overrides` are configs of all its topics."""
        configs = {name.replace("_", "."): value for name, value in overrides.items()}
        command = LeaderAndIsrCommand(1, controller_epoch, 1, list(rows))
        overrides = {row.topic: configs for row in rows}
        return run(self.replicas.become_leader_or_follower(command, overrides))

    def lead(self, topic: str = "t", index: int = 0, **state: Any) -> Partition:
        """Make broker 1 the leader of a partition."""
        self.apply_leader_and_isr(partition_state(topic=topic, partition=index, **state))
        return self.replicas.partitions[topic][index]

    def coordinate(self, **state: Any) -> Partition:
        """Lead the one partition of `__consumer_offsets`."""
        self.groups.coordinator.set_num_partitions(1)
        return self.lead(GROUP_METADATA_TOPIC, **state)

    def lead_transactions(self, **state: Any) -> Partition:
        """Lead the one partition of `__transaction_state`."""
        self.transactions.coordinator.set_num_partitions(1)
        return self.lead(TRANSACTION_STATE_TOPIC, **state)

    def coordinate_on_other_broker(self) -> None:
        """Move the leadership of the partition of `__consumer_offsets` to broker 2."""
        row = partition_state(2, (1, 2), None, 9, 9, GROUP_METADATA_TOPIC)
        assert not any(self.apply_leader_and_isr(row).partition_errors.values())

    def fetch_as_follower(self, partition: Partition, end_offset: int, broker_id: int = 2) -> None:
        """A follower fetches at `end_offset`, so it has everything before."""
        topic, index = partition.topic_partition
        wanted = FetchPartition(topic, TOPIC_ID, index, end_offset, 1)
        params = FetchParams(broker_id, 0, 1, 1, 0, 17, replica_epoch=70 + broker_id)
        self.fetch_reader.fetch(params, [wanted], lambda rows: None)

    def announce(
        self, *topics: str, leader: int = 1, epoch: int = 1, topic_id: Uuid = TOPIC_ID
    ) -> None:
        """Put topics of one partition into the metadata."""
        rows = [
            UpdateMetadataPartition(
                topic, topic_id, 0, partition_state(leader=leader, isr=(abs(leader),)).state, (1,)
            )
            for topic in topics
        ]
        brokers = [admins.broker(1), admins.broker(2)]
        self.metadata.apply(UpdateMetadataCommand(1, epoch, 1, rows, brokers))
