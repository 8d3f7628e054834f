"""The broker's parts that handlers use, put together by `broker`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkapy.common.ports import Clock
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.cache import MetadataCache
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.server.api.throttler import Throttler
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.network.connection_limits import ConnectionLimits
from kafkapy.server.network.listener_changes import ListenerChanges
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.turns import Turns
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.server.security.node_security import PLAINTEXT
from kafkapy.server.security.scram_credentials import ScramCredentials

if TYPE_CHECKING:
    from kafkapy.metadata.dynamic_passwords import DynamicPasswords
    from kafkapy.server.admin.acl_admin import AclAdmin
    from kafkapy.server.admin.auto_creator import AutoCreator
    from kafkapy.server.admin.config_admin import ConfigAdmin
    from kafkapy.server.admin.quota_admin import QuotaAdmin
    from kafkapy.server.admin.scram_admin import ScramAdmin
    from kafkapy.server.admin.token_admin import TokenAdmin
    from kafkapy.server.admin.topic_admin import TopicAdmin
    from kafkapy.server.changes.config_changes import ConfigChangeListener
    from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.cluster.producer_ids import ProducerIdManager
    from kafkapy.server.config.dynamic_config import DynamicConfig
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.marker_writer import MarkerWriter
    from kafkapy.server.coordinators.transaction_service import TransactionService
    from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
    from kafkapy.server.replicas.fetch_reader import FetchReader
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.requests.served import Served
    from kafkapy.server.security.oauth import OAuth

Node = tuple[int, str, int, str | None]


class Services:
    """Fixed: ids and config. Shared: the parts."""

    broker_id: int
    cluster_id: str
    config: KafkaConfig
    effective_configs: DynamicConfig
    replicas: ReplicaManager
    fetch_reader: FetchReader
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
    control_requests: ControlRequestHandler
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
        self.token_admin: TokenAdmin | None = None  # with a secret
        self.client_quotas = ClientQuotas(config, clock)
        self.connection_limits = ConnectionLimits(config)
        self.throttler = Throttler(self.client_quotas, clock)
        self.listener_changes = ListenerChanges()
        self.authorizer: AclAuthorizer | None = None  # both are there together
        self.acl_admin: AclAdmin | None = None
        self.waiter = MetadataWaiter(metadata)
        self.tasks = BackgroundTasks()
        self.auto_create_topics = config.get_bool("auto.create.topics.enable")
        self.fetch_max_bytes = config.get_int("fetch.max.bytes")
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
