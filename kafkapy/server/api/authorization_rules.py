"""The rights that each API needs: `RULES`, one row an API (`kafka.server.KafkaApis`, `AuthHelper`).

A rule runs before a handler. It refuses the whole request, or removes the rows that the principal
may not request, and appends them as refused rows to the handler's response. Without an authorizer
there are no rules, so they cost nothing. The handlers of Fetch, DeleteTopics, OffsetFetch and
OffsetDelete check their rows themselves with `authorization`, as any other handler may. Topic ids
are resolved and authorized in each request, never in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import CLUSTER_NAME, REFUSALS, Operation, ResourceKind
from kafkapy.server.api.authorization import Action, Authorization, log_denied
from kafkapy.server.api.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    NOT_REQUESTED,
    TOPIC_OPERATIONS,
)
from kafkapy.server.api.produce_append import APPENDS_PER_SLICE, copy_records
from kafkapy.server.api.refused_rows import handle_passed_rows, with_rows
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServedApi, ServedApi
from kafkapy.server.requests.outcomes import (
    CLOSE_CONNECTION,
    Outcome,
    OutcomeOrWork,
    then,
)
from kafkapy.server.requests.turns import (
    CHECK_UNITS,
    ROW_UNITS,
    Work,
    as_work,
    chunks,
)

if TYPE_CHECKING:
    from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from kafkapy.protocol.messages.describe_cluster import (
        DescribeClusterRequest,
        DescribeClusterResponse,
    )
    from kafkapy.protocol.messages.describe_groups import (
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )
    from kafkapy.protocol.messages.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )
    from kafkapy.protocol.messages.init_producer_id import (
        InitProducerIdRequest,
        InitProducerIdResponse,
    )
    from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
    from kafkapy.protocol.messages.metadata import (
        MetadataRequest,
        MetadataRequestTopic,
        MetadataResponse,
        MetadataResponseTopic,
    )
    from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
    from kafkapy.protocol.schema import Message, Struct

T = TypeVar("T")
ClusterResponse = TypeVar("ClusterResponse", "MetadataResponse", "DescribeClusterResponse")
"""The responses with a field of authorized cluster operations."""

_O: Final = Operation
_TOPIC, _GROUP, _CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
_CLUSTER_CONFIGS: Final = frozenset(
    {ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS}
)
_TRANSACTIONAL_ID: Final = ResourceKind.TRANSACTIONAL_ID
_TRANSACTION_KEY_TYPE: Final = 1
_SHARE_KEY_TYPE: Final = 2


# The action that a row needs; None if it needs none, because the handler refuses the row anyway.
ActionOf = Callable[[RequestContext, T], Action | None]
# In a table of rules, each rule takes the messages of its own API.
Rule = Callable[  # type: ignore[explicit-any]
    [Authorization, ServedApi[Any, Any], RequestContext, Any], OutcomeOrWork[Any]
]


class _Resource(Protocol):
    """A row of any request about configs."""

    resource_type: int
    resource_name: str


def with_rules(
    served: Mapping[int, AnyServedApi], rules: Mapping[int, Rule], acls: Authorization
) -> dict[int, AnyServedApi]:
    """The table of APIs, in which the rule of each API runs before its handler."""
    return {
        key: row._replace(handle=partial(rules[key], acls, row)) if key in rules else row
        for key, row in served.items()
    }


# rules of whole requests


def require_for_request(
    operation: Operation,
    kind: ResourceKind = _CLUSTER,
    name: str | None = None,
    next_rule: Rule | None = None,
) -> Rule:
    """A rule that requires one right for the whole request. `name` is the field with the resource's
    name.
    """

    def rule(
        acls: Authorization, served: AnyServedApi, context: RequestContext, request: Message
    ) -> OutcomeOrWork[Message]:
        acls.require(
            context, operation, kind, CLUSTER_NAME if name is None else getattr(request, name)
        )
        if next_rule is None:
            return served.handle(context, request)
        return next_rule(acls, served, context, request)

    return rule


def _init_producer_id(
    acls: Authorization,
    served: ServedApi[InitProducerIdRequest, InitProducerIdResponse],
    context: RequestContext,
    request: InitProducerIdRequest,
) -> OutcomeOrWork[InitProducerIdResponse]:
    if request.transactional_id is not None:
        acls.require(context, _O.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    else:
        authorizer = acls.authorizer
        assert authorizer is not None, "without one everything is allowed"
        principal, host = context.principal, context.client_host
        # First, because the next check scans the entries of the cluster, perhaps one for each user.
        if not authorizer.is_allowed_for_any(principal, host, _O.WRITE, _TOPIC):
            acls.require(context, _O.IDEMPOTENT_WRITE, _CLUSTER)
    return served.handle(context, request)


# rules of rows


def require_for_rows(
    action_of: ActionOf[T], rows: str = "topics", response_rows: str = "topics"
) -> Rule:
    """A rule that requires a right for each of `rows`. Refused rows are appended to
    `response_rows` of the response.
    """

    def rule(
        acls: Authorization, served: AnyServedApi, context: RequestContext, request: Message
    ) -> Work[Outcome[Message]]:
        passed, refused = yield from split_by_authorized(acls, context, request, rows, action_of)
        return (
            yield from handle_passed_rows(
                served, context, request, rows, response_rows, passed, refused
            )
        )

    return rule


def split_by_authorized(
    acls: Authorization,
    context: RequestContext,
    request: Message,
    rows: str,
    action_of: ActionOf[T],
) -> Work[tuple[list[T], dict[ErrorCode, list[T]]]]:
    """Split rows into the allowed ones, and the refused ones by error."""
    passed: list[T] = []
    refused: dict[ErrorCode, list[T]] = {}
    decisions: dict[Action, bool] = {}
    for row in getattr(request, rows):
        yield CHECK_UNITS
        action = action_of(context, row)
        if action is None:
            passed.append(row)
            continue
        allowed = decisions.get(action)
        if allowed is None:
            # Decided once for all rows of a resource, as in Kafka.
            allowed = decisions[action] = acls.is_allowed(context, *action)
            if not allowed:
                log_denied(context, action)
            yield ROW_UNITS
        if allowed:
            passed.append(row)
        else:
            refused.setdefault(REFUSALS[action.kind], []).append(row)
    return passed, refused


def topic_action(operation: Operation, name: str = "name") -> ActionOf[Struct]:
    """An operation on the topic in the field `name` of a row. A topic id that is unknown has no
    name, and needs no right.
    """
    name_of = attrgetter(name)

    def action(context: RequestContext, row: Struct) -> Action | None:
        found = name_of(row)
        return None if found is None else Action(operation, _TOPIC, found)

    return action


def resource_action(operation: Operation, kind: ResourceKind) -> ActionOf[str]:
    """An operation on a resource; each row is a resource name."""
    return lambda context, name: Action(operation, kind, name)


def _config_action(operation: Operation) -> ActionOf[_Resource]:
    def action(context: RequestContext, row: _Resource) -> Action | None:
        if row.resource_type == ResourceType.TOPIC:
            return Action(operation, _TOPIC, row.resource_name)
        if row.resource_type == ResourceType.GROUP:
            return Action(operation, _GROUP, row.resource_name)
        if row.resource_type in _CLUSTER_CONFIGS:
            return Action(operation, _CLUSTER, CLUSTER_NAME)
        return None

    return action


def _unless_allowed_on_cluster(operation: Operation, rule: Rule) -> Rule:
    """Skip the row checks for callers that may perform the operation on the cluster."""

    def check_unless_allowed(
        acls: Authorization, served: AnyServedApi, context: RequestContext, request: Message
    ) -> OutcomeOrWork[Message]:
        if acls.is_allowed(context, operation, _CLUSTER):
            return served.handle(context, request)
        return rule(acls, served, context, request)

    return check_unless_allowed


def produce_actions(name: str, transactional_id: str | None) -> list[Action]:
    """The actions of a request that produces to one topic, as in `_produce`."""
    actions = [Action(_O.WRITE, _TOPIC, name)]
    if transactional_id is not None:
        actions.append(Action(_O.WRITE, _TRANSACTIONAL_ID, transactional_id))
    return actions


_PRODUCE_ROWS: Final = require_for_rows(topic_action(_O.WRITE), "topic_data", "responses")


def _produce(
    acls: Authorization,
    served: ServedApi[ProduceRequest, ProduceResponse],
    context: RequestContext,
    request: ProduceRequest,
) -> OutcomeOrWork[ProduceResponse]:
    if request.transactional_id is not None:
        acls.require(context, _O.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    if len(request.topic_data) > APPENDS_PER_SLICE:
        # The rows are authorized in slices. Data that arrives between two slices overwrites the
        # receive buffer, in which the records lie.
        copy_records(request)
    return _PRODUCE_ROWS(acls, served, context, request)


def _find_coordinator(
    acls: Authorization,
    served: ServedApi[FindCoordinatorRequest, FindCoordinatorResponse],
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> OutcomeOrWork[FindCoordinatorResponse]:
    if request.key_type == _SHARE_KEY_TYPE:
        return _CLUSTER_ACTION(acls, served, context, request)
    kind = _TRANSACTIONAL_ID if request.key_type == _TRANSACTION_KEY_TYPE else _GROUP
    if context.version < 4:
        acls.require(context, _O.DESCRIBE, kind, request.key)
        return served.handle(context, request)
    rule = require_for_rows(resource_action(_O.DESCRIBE, kind), "coordinator_keys", "coordinators")
    return rule(acls, served, context, request)


class GroupRow(Protocol):
    """A group of any protocol."""

    group_id: str
    authorized_operations: int


def narrow_group_operations(acls: Authorization, context: RequestContext, group: GroupRow) -> None:
    """Keep the operations that the caller may perform, if they were requested."""
    if group.authorized_operations >= 0:
        bits = acls.allowed_operations(context, GROUP_OPERATIONS, _GROUP, group.group_id)
        group.authorized_operations = bits


def _describe_groups(
    acls: Authorization,
    served: ServedApi[DescribeGroupsRequest, DescribeGroupsResponse],
    context: RequestContext,
    request: DescribeGroupsRequest,
) -> OutcomeOrWork[DescribeGroupsResponse]:
    rule = require_for_rows(resource_action(_O.DESCRIBE, _GROUP), "groups", "groups")

    def narrow(response: DescribeGroupsResponse) -> Work[DescribeGroupsResponse]:
        for group in response.groups:
            yield ROW_UNITS
            narrow_group_operations(acls, context, group)
        return response

    return then(rule(acls, served, context, request), narrow)


def _list_groups(
    acls: Authorization,
    served: ServedApi[ListGroupsRequest, ListGroupsResponse],
    context: RequestContext,
    request: ListGroupsRequest,
) -> OutcomeOrWork[ListGroupsResponse]:
    def narrow(response: ListGroupsResponse) -> Work[ListGroupsResponse]:
        group_id = attrgetter("group_id")
        response.groups = yield from acls.describable_rows(
            context, _GROUP, response.groups, group_id
        )
        return response

    return then(served.handle(context, request), narrow)


_CREATE_ROWS: Final = _unless_allowed_on_cluster(
    _O.CREATE, require_for_rows(topic_action(_O.CREATE))
)


def _create_topics(
    acls: Authorization,
    served: ServedApi[CreateTopicsRequest, CreateTopicsResponse],
    context: RequestContext,
    request: CreateTopicsRequest,
) -> OutcomeOrWork[CreateTopicsResponse]:
    def without_configs(response: CreateTopicsResponse) -> Work[CreateTopicsResponse]:
        for row in response.topics:
            yield CHECK_UNITS
            if not acls.is_allowed(context, _O.DESCRIBE_CONFIGS, _TOPIC, row.name):
                row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                row.num_partitions = row.replication_factor = -1
                row.configs = []
        return response

    return then(_CREATE_ROWS(acls, served, context, request), without_configs)


# Metadata


def metadata_rule(auto_create_topics: bool) -> Rule:
    """The rule of Metadata. With `auto_create_topics`, its handler may create topics."""
    return partial(_metadata, auto_create_topics)


def _metadata(
    auto_create_topics: bool,
    acls: Authorization,
    served: ServedApi[MetadataRequest, MetadataResponse],
    context: RequestContext,
    request: MetadataRequest,
) -> Work[Outcome[MetadataResponse]]:
    if request.topics is None or (context.version == 0 and not request.topics):
        keep_describable = partial(_keep_describable_topics, acls, context, request)
        return (yield from as_work(then(served.handle(context, request), keep_describable)))

    def action(context: RequestContext, row: MetadataRequestTopic) -> Action | None:
        # The handler resolves ids, perhaps after a wait. `_refuse_found_by_id` authorizes them.
        if row.name is None or not row.topic_id.is_zero:
            return None
        return Action(_O.DESCRIBE, _TOPIC, row.name)

    passed, refused = yield from split_by_authorized(acls, context, request, "topics", action)
    denied = [row for rows in refused.values() for row in rows]
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refused_rows: list[MetadataResponseTopic] = []
    for few in chunks(denied):
        part = served.refuse(with_rows(request, "topics", list(few)), error, context.version)
        assert part is not CLOSE_CONNECTION
        refused_rows += part.topics
        yield ROW_UNITS * len(few)

    def with_refused_rows(response: MetadataResponse) -> Work[MetadataResponse]:
        if not passed:  # the handler of v0 describes all topics for an empty list
            response.topics = []
        yield from _refuse_found_by_id(acls, context, request, response)
        if auto_create_topics and (context.version < 4 or request.allow_auto_topic_creation):
            yield from _refuse_not_created(acls, context, response)
        response.topics = [*response.topics, *refused_rows]
        return (yield from _narrow_operations(acls, context, request, response))

    handled = served.handle(context, with_rows(request, "topics", passed))
    return (yield from as_work(then(handled, with_refused_rows)))


def _refuse_found_by_id(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
) -> Work[None]:
    """Authorize topics that were requested by id, with their names. Refused topics are returned
    without the name. As in Kafka, the id is not secret.
    """
    ids = {row.topic_id for row in request.topics or () if not row.topic_id.is_zero}
    for index, row in enumerate(response.topics if ids else ()):
        yield CHECK_UNITS
        if row.topic_id in ids and row.name is not None:
            action = Action(_O.DESCRIBE, _TOPIC, row.name)
            if not acls.is_allowed(context, *action):
                log_denied(context, action)
                yield ROW_UNITS
                response.topics[index] = type(row)(
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    name=None,
                    topic_id=row.topic_id,
                )


def _refuse_not_created(
    acls: Authorization, context: RequestContext, response: MetadataResponse
) -> Work[None]:
    """Set TOPIC_AUTHORIZATION_FAILED for unknown topics that were not created because the caller
    may not create them.
    """
    for row in response.topics:
        yield CHECK_UNITS
        is_unknown = row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_unknown and not acls.may_create_topic(context, row.name or ""):
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            row.topic_authorized_operations = NOT_REQUESTED


def _keep_describable_topics(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
) -> Work[MetadataResponse]:
    response.topics = yield from acls.describable_rows(
        context, _TOPIC, response.topics, attrgetter("name")
    )
    return (yield from _narrow_operations(acls, context, request, response))


def _narrow_operations(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
) -> Work[MetadataResponse]:
    if request.include_topic_authorized_operations:
        for row in response.topics:
            yield ROW_UNITS
            if row.topic_authorized_operations >= 0:
                bits = acls.allowed_operations(context, TOPIC_OPERATIONS, _TOPIC, row.name or "")
                row.topic_authorized_operations = bits
    return _narrow_cluster_operations(acls, context, request, response)


def _narrow_cluster_operations(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest | DescribeClusterRequest,
    response: ClusterResponse,
) -> ClusterResponse:
    if request.include_cluster_authorized_operations:
        may_describe = acls.is_allowed(context, _O.DESCRIBE, _CLUSTER)
        response.cluster_authorized_operations = (
            acls.allowed_operations(context, CLUSTER_OPERATIONS, _CLUSTER, CLUSTER_NAME)
            if may_describe
            else 0
        )
    return response


def _describe_cluster(
    acls: Authorization,
    served: ServedApi[DescribeClusterRequest, DescribeClusterResponse],
    context: RequestContext,
    request: DescribeClusterRequest,
) -> OutcomeOrWork[DescribeClusterResponse]:
    def narrow(response: DescribeClusterResponse) -> DescribeClusterResponse:
        return _narrow_cluster_operations(acls, context, request, response)

    return then(served.handle(context, request), narrow)


_CLUSTER_ACTION: Final = require_for_request(_O.CLUSTER_ACTION)
_ALTER: Final = require_for_request(_O.ALTER)
_DESCRIBE: Final = require_for_request(_O.DESCRIBE)
_READ_GROUP: Final = require_for_request(_O.READ, _GROUP, "group_id")

RULES: Final[dict[int, Rule]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.LIST_OFFSETS: require_for_rows(topic_action(_O.DESCRIBE)),
    ApiKey.LEADER_AND_ISR: _CLUSTER_ACTION,
    ApiKey.STOP_REPLICA: _CLUSTER_ACTION,
    ApiKey.UPDATE_METADATA: _CLUSTER_ACTION,
    ApiKey.CONTROLLED_SHUTDOWN: _CLUSTER_ACTION,
    ApiKey.OFFSET_COMMIT: require_for_request(
        _O.READ, _GROUP, "group_id", require_for_rows(topic_action(_O.READ))
    ),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _READ_GROUP,
    ApiKey.HEARTBEAT: _READ_GROUP,
    ApiKey.LEAVE_GROUP: _READ_GROUP,
    ApiKey.SYNC_GROUP: _READ_GROUP,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _unless_allowed_on_cluster(_O.DESCRIBE, _list_groups),
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_RECORDS: require_for_rows(topic_action(_O.DELETE)),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _unless_allowed_on_cluster(
        _O.CLUSTER_ACTION, require_for_rows(topic_action(_O.DESCRIBE, "topic"))
    ),
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    ApiKey.DESCRIBE_CONFIGS: require_for_rows(
        _config_action(_O.DESCRIBE_CONFIGS), "resources", "results"
    ),
    ApiKey.ALTER_CONFIGS: require_for_rows(
        _config_action(_O.ALTER_CONFIGS), "resources", "responses"
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBE,
    ApiKey.CREATE_PARTITIONS: require_for_rows(topic_action(_O.ALTER), "topics", "results"),
    ApiKey.DELETE_GROUPS: require_for_rows(
        resource_action(_O.DELETE, _GROUP), "groups_names", "results"
    ),
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: require_for_rows(
        _config_action(_O.ALTER_CONFIGS), "resources", "responses"
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.OFFSET_DELETE: require_for_request(_O.DELETE, _GROUP, "group_id"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: require_for_request(_O.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: require_for_request(_O.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.ALTER_PARTITION: _CLUSTER_ACTION,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.ALLOCATE_PRODUCER_IDS: _CLUSTER_ACTION,
    ApiKey.LIST_CONFIG_RESOURCES: require_for_request(_O.DESCRIBE_CONFIGS),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.WRITE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.DELETE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _CLUSTER_ACTION,
}
