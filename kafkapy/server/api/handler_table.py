"""Creates the handlers of a broker by area, each with the parts that it uses.

Only `broker` creates all areas.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, Union

from kafkapy.common.ports import Clock
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import Message
from kafkapy.replication.fetch_session import FetchSessionCache
from kafkapy.server.admin.acl_admin import AclAdmin
from kafkapy.server.admin.auto_creator import AutoCreator
from kafkapy.server.admin.broker_loggers import BrokerLoggers
from kafkapy.server.admin.config_admin import ConfigAdmin
from kafkapy.server.admin.quota_admin import QuotaAdmin
from kafkapy.server.admin.scram_admin import ScramAdmin
from kafkapy.server.admin.topic_admin import TopicAdmin
from kafkapy.server.api import handlers
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorization_rules import RULES, Rule, metadata_rule, with_rules
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.fetch_answer import FetchResponses
from kafkapy.server.api.fetch_fast_path import FetchFastPath
from kafkapy.server.api.group_rules import GROUP_RULES
from kafkapy.server.api.handler_support import refusal, run_async
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.api.produce_answer import ProduceResponses
from kafkapy.server.api.produce_fast_path import ProduceFastPath
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServedApi, Handle, ServedApi
from kafkapy.server.api.share_requests import ShareRequests
from kafkapy.server.api.throttler import Throttler
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.api.topic_ids import with_known_ids, with_names
from kafkapy.server.api.transaction_rules import TRANSACTION_RULES
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.coordinators.share_setup import Shares
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.replicas.fetch_reader import FetchReader
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import OutcomeOrWork, ResponseCoroutine
from kafkapy.server.requests.request_handler import Caller
from kafkapy.server.requests.turns import SliceScheduler, Work
from kafkapy.server.security.delegation_tokens import DelegationTokens

if TYPE_CHECKING:
    from kafkapy.server.api.served import Refuse
    from kafkapy.server.observability.client_metrics import ClientMetrics

_TELEMETRY_APIS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
_CANCELLABLE: Final = frozenset(
    {
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    }
)
"""These APIs are read-only and may take minutes. They are cancelled when the client disconnects."""

# In a table, each handler takes requests of its own API.
AnyHandle = Handle[Any, Message]  # type: ignore[explicit-any]
BackgroundHandle = Callable[  # type: ignore[explicit-any]
    [RequestContext, Any],
    Union[OutcomeOrWork[Message], ResponseCoroutine[Message | Work[Message]]],  # noqa: UP007
]
Handlers = dict[int, AnyHandle]
BackgroundHandlers = dict[int, BackgroundHandle]
"""Handlers that may return coroutines."""


F = TypeVar("F")


class Paths(NamedTuple, Generic[F]):
    """The general path of an API's requests, and the factory of a connection's fast path."""

    general: AnyHandle
    fast: Callable[[RequestContext, Caller], F]


def produce_paths(
    replicas: ReplicaManager,
    metrics: Metrics,
    clock: Clock,
    slices: SliceScheduler,
    verifier: TransactionVerifier,
    cluster: ClusterView,
    throttler: Throttler,
    authorization: Authorization,
) -> Paths[ProduceFastPath]:
    """Produce, key 0."""
    responses = ProduceResponses(metrics, cluster)
    general = handlers.produce.Handler(replicas, metrics, clock, slices, verifier, responses)
    authorizer = authorization.authorizer
    fast = partial(
        ProduceFastPath,
        replicas,
        metrics,
        clock,
        verifier,
        responses,
        cluster,
        throttler,
        authorizer,
    )
    return Paths(general.handle, fast)


def fetch_paths(
    replicas: ReplicaManager,
    metrics: Metrics,
    reader: FetchReader,
    sessions: FetchSessionCache,
    clock: Clock,
    throttler: Throttler,
    metadata: MetadataCache,
    cluster: ClusterView,
    authorization: Authorization,
    max_bytes: int,
) -> Paths[FetchFastPath]:
    """Fetch, key 1."""
    responses = FetchResponses(replicas, metrics, cluster)
    follower_responses = FetchResponses(replicas, metrics, cluster, is_for_followers=True)
    general = handlers.fetch.Handler(
        replicas,
        reader,
        sessions,
        metadata,
        clock,
        authorization,
        throttler,
        responses,
        follower_responses,
        max_bytes,
    )
    fast = partial(
        FetchFastPath,
        replicas,
        metrics,
        reader,
        sessions,
        clock,
        follower_responses,
        max_bytes,
        authorization.authorizer,
    )
    return Paths(general.handle, fast)


def logs(replicas: ReplicaManager, clock: Clock) -> Handlers:
    """Offsets and records of partitions, and the directories that hold them."""
    return {
        ApiKey.LIST_OFFSETS: partial(handlers.list_offsets.handle, replicas, clock),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: partial(handlers.offset_for_leader_epoch.handle, replicas),
        ApiKey.DELETE_RECORDS: partial(handlers.delete_records.handle, replicas, clock),
        ApiKey.DESCRIBE_PRODUCERS: partial(handlers.describe_producers.handle, replicas),
        ApiKey.ALTER_REPLICA_LOG_DIRS: partial(handlers.alter_replica_log_dirs.handle, replicas),
        ApiKey.DESCRIBE_LOG_DIRS: partial(handlers.describe_log_dirs.handle, replicas.log_manager),
    }


def groups(
    groups: GroupService,
    metadata: MetadataCache,
    authorization: Authorization,
    features: ClusterFeatures,
) -> Handlers:
    """Consumer groups and their offsets."""
    return {
        ApiKey.JOIN_GROUP: partial(handlers.join_group.handle, groups),
        ApiKey.SYNC_GROUP: partial(handlers.sync_group.handle, groups),
        ApiKey.HEARTBEAT: partial(handlers.heartbeat.handle, groups),
        ApiKey.LEAVE_GROUP: partial(handlers.leave_group.handle, groups),
        ApiKey.LIST_GROUPS: partial(handlers.list_groups.handle, groups),
        ApiKey.DESCRIBE_GROUPS: partial(handlers.describe_groups.handle, groups),
        ApiKey.OFFSET_COMMIT: partial(handlers.offset_commit.handle, groups, metadata),
        ApiKey.OFFSET_FETCH: partial(handlers.offset_fetch.handle, groups, metadata, authorization),
        ApiKey.OFFSET_DELETE: partial(
            handlers.offset_delete.handle, groups, metadata, authorization
        ),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: partial(
            handlers.consumer_group_heartbeat.handle, groups, features, authorization
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: partial(
            handlers.consumer_group_describe.handle, groups, features
        ),
    }


def share_members(
    shares: Shares,
    features: ClusterFeatures,
    authorization: Authorization,
    cluster: ClusterView,
    metrics: Metrics,
    throttler: Throttler,
) -> Handlers:
    """Members of share groups, and the state of share partitions."""
    requests = ShareRequests(shares, features, authorization)
    groups = shares.groups
    max_bytes = shares.fetch_bytes_max
    fetch = handlers.share_fetch.Handler(requests, cluster, metrics, max_bytes, throttler)
    service = shares.service
    return {
        ApiKey.SHARE_GROUP_HEARTBEAT: partial(
            handlers.share_group_heartbeat.handle, groups, features, authorization
        ),
        ApiKey.SHARE_GROUP_DESCRIBE: partial(
            handlers.share_group_describe.handle, groups, features
        ),
        ApiKey.SHARE_FETCH: fetch.handle,
        ApiKey.SHARE_ACKNOWLEDGE: handlers.share_acknowledge.Handler(requests, cluster).handle,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: partial(
            handlers.initialize_share_group_state.handle, service, features
        ),
        ApiKey.READ_SHARE_GROUP_STATE: partial(
            handlers.read_share_group_state.handle, service, features
        ),
        ApiKey.WRITE_SHARE_GROUP_STATE: partial(
            handlers.write_share_group_state.handle, service, features
        ),
        ApiKey.DELETE_SHARE_GROUP_STATE: partial(
            handlers.delete_share_group_state.handle, service, features
        ),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: partial(
            handlers.read_share_group_state_summary.handle, service, features
        ),
    }


def share_offsets(
    shares: Shares,
    features: ClusterFeatures,
    authorization: Authorization,
    tasks: BackgroundTasks,
    slices: SliceScheduler,
) -> BackgroundHandlers:
    """Offsets of share groups, and the deletion of groups of all kinds."""
    groups, offsets = shares.groups, shares.offsets
    parts = (offsets, shares.metadata, features, authorization, slices)
    return {
        ApiKey.DELETE_GROUPS: partial(handlers.delete_groups.handle, groups, offsets, tasks.spawn),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: handlers.describe_share_group_offsets.Handler(
            *parts
        ).handle,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: handlers.alter_share_group_offsets.Handler(*parts).handle,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: handlers.delete_share_group_offsets.Handler(
            *parts
        ).handle,
    }


def transactions(
    transactions: TransactionService,
    groups: GroupService,
    metadata: MetadataCache,
    verifier: TransactionVerifier,
    markers: MarkerWriter,
    producer_ids: ProducerIdManager,
    creator: AutoCreator,
) -> BackgroundHandlers:
    """Transactions and producer ids."""
    return {
        ApiKey.INIT_PRODUCER_ID: partial(
            handlers.init_producer_id.handle, transactions, producer_ids
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN: partial(
            handlers.add_partitions_to_txn.handle, transactions, metadata
        ),
        ApiKey.ADD_OFFSETS_TO_TXN: partial(
            handlers.add_offsets_to_txn.handle, transactions, groups, metadata, creator
        ),
        ApiKey.END_TXN: partial(handlers.end_txn.handle, transactions),
        ApiKey.WRITE_TXN_MARKERS: partial(handlers.write_txn_markers.handle, markers),
        ApiKey.TXN_OFFSET_COMMIT: partial(
            handlers.txn_offset_commit.handle, groups, metadata, verifier
        ),
        ApiKey.DESCRIBE_TRANSACTIONS: partial(handlers.describe_transactions.handle, transactions),
        ApiKey.LIST_TRANSACTIONS: partial(handlers.list_transactions.handle, transactions),
    }


def coordinators(
    groups: GroupService, transactions: TransactionService, shares: Shares
) -> Mapping[int, handlers.find_coordinator.PartitionFor]:
    """Functions from a key to its coordinator's partition, by FindCoordinator's key types."""
    return {
        0: groups.coordinator.partition_for,
        1: transactions.coordinator.partition_for,
        2: shares.service.coordinator.partition_for,
    }


def cluster(
    cluster: ClusterView,
    partition_for: Mapping[int, handlers.find_coordinator.PartitionFor],
    waiter: MetadataWaiter,
    creator: AutoCreator,
    auto_create_topics: bool,
    authorization: Authorization,
    quotas: ClientQuotas,
    slices: SliceScheduler,
    tasks: BackgroundTasks,
    features: ClusterFeatures,
    has_telemetry: bool,
) -> Handlers:
    """Descriptions of the cluster and its APIs, coordinators, and SASL requests outside of a
    login.
    """
    description = handlers.metadata.Handler(
        cluster, waiter, creator, auto_create_topics, authorization, quotas, slices, tasks
    )
    offered = {
        key: row for key, row in SERVED.items() if has_telemetry or key not in _TELEMETRY_APIS
    }
    finder = handlers.find_coordinator.Handler(
        cluster, partition_for, waiter, creator, quotas, slices, tasks
    )
    return {
        ApiKey.METADATA: description.handle,
        ApiKey.FIND_COORDINATOR: finder.handle,
        ApiKey.DESCRIBE_CLUSTER: partial(handlers.describe_cluster.handle, cluster),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: partial(
            handlers.describe_topic_partitions.handle, cluster, authorization
        ),
        ApiKey.API_VERSIONS: partial(handlers.api_versions.handle, offered, cluster, features),
        ApiKey.SASL_HANDSHAKE: handlers.sasl_handshake.handle,
        ApiKey.SASL_AUTHENTICATE: handlers.sasl_authenticate.handle,
    }


def telemetry(metrics: ClientMetrics | None, clock: Clock) -> Handlers:
    """Metrics of clients; none if the broker exports no metrics."""
    if metrics is None:
        return {}
    return {
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: partial(
            handlers.get_telemetry_subscriptions.handle, metrics.telemetry, clock
        ),
        ApiKey.PUSH_TELEMETRY: partial(handlers.push_telemetry.handle, metrics, clock),
    }


def topics(
    admin: TopicAdmin,
    is_deletion_enabled: bool,
    controller: ControllerTask,
    metadata: MetadataCache,
    waiter: MetadataWaiter,
    configs: DynamicConfig,
    authorization: Authorization,
    quotas: ClientQuotas,
    slices: SliceScheduler,
) -> BackgroundHandlers:
    """Creation, expansion and deletion of topics."""
    creation = handlers.create_topics.Handler(admin, controller, waiter, configs, quotas, slices)
    expansion = handlers.create_partitions.Handler(admin, controller, waiter, quotas, slices)
    deletion = handlers.delete_topics.Handler(
        admin, is_deletion_enabled, controller, metadata, waiter, authorization, quotas, slices
    )
    return {
        ApiKey.CREATE_TOPICS: creation.handle,
        ApiKey.CREATE_PARTITIONS: expansion.handle,
        ApiKey.DELETE_TOPICS: deletion.handle,
    }


def configs(
    admin: ConfigAdmin,
    configs: DynamicConfig,
    changes: ConfigChangeListener,
    metadata: MetadataCache,
    broker_id: int,
    slices: SliceScheduler,
) -> BackgroundHandlers:
    """Configs of resources."""
    loggers = BrokerLoggers(broker_id)
    description = handlers.describe_configs.Handler(
        configs, changes, metadata, broker_id, loggers, slices
    )
    return {
        ApiKey.DESCRIBE_CONFIGS: description.handle,
        ApiKey.ALTER_CONFIGS: partial(handlers.alter_configs.handle, admin, changes, slices),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(
            handlers.incremental_alter_configs.handle, admin, loggers, changes, slices
        ),
        ApiKey.LIST_CONFIG_RESOURCES: partial(
            handlers.list_config_resources.handle, configs, changes, metadata
        ),
    }


def acls(admin: AclAdmin | None, slices: SliceScheduler) -> BackgroundHandlers:
    """Access control entries."""
    return {
        ApiKey.DESCRIBE_ACLS: partial(handlers.describe_acls.handle, admin),
        ApiKey.CREATE_ACLS: partial(handlers.create_acls.handle, admin, slices),
        ApiKey.DELETE_ACLS: partial(handlers.delete_acls.handle, admin, slices),
    }


def quotas(
    admin: QuotaAdmin, changes: ConfigChangeListener, slices: SliceScheduler
) -> BackgroundHandlers:
    """Client quotas."""
    return {
        ApiKey.DESCRIBE_CLIENT_QUOTAS: partial(
            handlers.describe_client_quotas.handle, admin, slices
        ),
        ApiKey.ALTER_CLIENT_QUOTAS: partial(
            handlers.alter_client_quotas.handle, admin, changes, slices
        ),
    }


def scram(
    admin: ScramAdmin,
    changes: ConfigChangeListener,
    controller: ControllerTask,
    slices: SliceScheduler,
) -> BackgroundHandlers:
    """SCRAM credentials."""
    return {
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: partial(
            handlers.describe_user_scram_credentials.handle, admin, slices
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: partial(
            handlers.alter_user_scram_credentials.handle, admin, changes, controller, slices
        ),
    }


def delegation_tokens(
    requests: TokenRequests,
    tokens: DelegationTokens,
    authorization: Authorization,
    tasks: BackgroundTasks,
) -> BackgroundHandlers:
    """Delegation tokens."""
    return {
        ApiKey.CREATE_DELEGATION_TOKEN: partial(
            handlers.create_delegation_token.handle, requests, tokens, authorization, tasks
        ),
        ApiKey.RENEW_DELEGATION_TOKEN: partial(handlers.renew_delegation_token.handle, requests),
        ApiKey.EXPIRE_DELEGATION_TOKEN: partial(handlers.expire_delegation_token.handle, requests),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: partial(
            handlers.describe_delegation_token.handle, requests, tokens, authorization
        ),
    }


def controller(
    controller: ControllerTask,
    metadata: MetadataCache,
    waiter: MetadataWaiter,
    clock: Clock,
    features: ClusterFeatures,
) -> BackgroundHandlers:
    """Requests to the controller: elections, reassignments, and requests of brokers."""
    election = handlers.elect_leaders.Handler(controller, metadata, waiter, clock)
    return {
        ApiKey.ELECT_LEADERS: election.handle,
        ApiKey.UPDATE_FEATURES: partial(handlers.update_features.handle, features, controller),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: partial(
            handlers.alter_partition_reassignments.handle, controller
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: partial(
            handlers.list_partition_reassignments.handle, controller
        ),
        ApiKey.ALTER_PARTITION: partial(handlers.alter_partition.handle, controller),
        ApiKey.CONTROLLED_SHUTDOWN: partial(handlers.controlled_shutdown.handle, controller),
        ApiKey.ALLOCATE_PRODUCER_IDS: partial(handlers.allocate_producer_ids.handle, controller),
    }


def control_requests(
    receiver: ControlRequestHandler, inter_broker_listener: str
) -> BackgroundHandlers:
    """Commands of the controller to this broker."""
    return {
        ApiKey.LEADER_AND_ISR: partial(
            handlers.leader_and_isr.handle, receiver, inter_broker_listener
        ),
        ApiKey.STOP_REPLICA: partial(handlers.stop_replica.handle, receiver),
        ApiKey.UPDATE_METADATA: partial(handlers.update_metadata.handle, receiver),
    }


def in_background(tasks: BackgroundTasks, *areas: BackgroundHandlers) -> Handlers:
    """Areas whose handlers may return coroutines, which run as background tasks of the broker."""
    return {
        key: partial(_handle_in_background, tasks, handle, SERVED[key].refuse, key in _CANCELLABLE)
        for area in areas
        for key, handle in area.items()
    }


def _handle_in_background(
    tasks: BackgroundTasks,
    handle: BackgroundHandle,
    refuse: Refuse[Message, Message],
    is_cancellable: bool,
    context: RequestContext,
    request: Message,
) -> OutcomeOrWork[Message]:
    outcome = handle(context, request)
    if not isinstance(outcome, Coroutine):
        return outcome
    to_refusal = partial(refusal, refuse, request, version=context.version)
    return run_async(tasks, context, outcome, to_refusal, is_cancellable=is_cancellable)


def table(
    handles: Mapping[int, AnyHandle],
    authorization: Authorization,
    auto_create_topics: bool,
    metadata: MetadataCache,
) -> dict[int, AnyServedApi]:
    """The APIs of a broker; with an authorizer, each with its rule."""
    served = {key: ServedApi(*SERVED[key], handle) for key, handle in handles.items()}
    served = with_known_ids(served)
    # Decided here, so that requests need no check without an authorizer.
    if authorization.authorizer is not None:
        served = with_rules(served, rules(auto_create_topics), authorization)
    return with_names(served, metadata)


def rules(auto_create_topics: bool) -> dict[int, Rule]:
    """The rules of all APIs that have one."""
    rules = {**RULES, **GROUP_RULES, **TRANSACTION_RULES}
    return {**rules, ApiKey.METADATA: metadata_rule(auto_create_topics)}
