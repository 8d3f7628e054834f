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
from kafkapy.server.api.authorization import Authorization, Need, log_denied
from kafkapy.server.api.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    NOT_REQUESTED,
    TOPIC_OPERATIONS,
)
from kafkapy.server.api.produce_append import ROWS_AT_ONCE, keep_records
from kafkapy.server.api.refused_rows import handle_others, with_rows
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServed, Served
from kafkapy.server.requests.outcomes import (
    CLOSE_CONNECTION,
    Handled,
    Outcome,
    then,
)
from kafkapy.server.requests.turns import (
    CHECK_UNITS,
    ROW_UNITS,
    Work,
    pieces,
    worked,
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
M = TypeVar("M", bound="Message")
R = TypeVar("R", bound="Message")
OfCluster = TypeVar("OfCluster", "MetadataResponse", "DescribeClusterResponse")
"""The responses with a field of authorized cluster operations."""

_O: Final = Operation
_TOPIC, _GROUP, _CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
_TRANSACTIONAL_ID: Final = ResourceKind.TRANSACTIONAL_ID
_TRANSACTION_KEY_TYPE: Final = 1
_SHARE_KEY_TYPE: Final = 2


# The right that a row needs; None if it needs none, because the handler refuses the row anyway.
NeedOf = Callable[[RequestContext, T], Need | None]
# In a table of rules, each rule takes the messages of its own API.
Rule = Callable[  # type: ignore[explicit-any]
    [Authorization, Served[Any, Any], RequestContext, Any], Handled[Any]
]


class _Resource(Protocol):
    """A row of any request about configs."""

    resource_type: int
    resource_name: str


def guard(
    served: Mapping[int, AnyServed], rules: Mapping[int, Rule], acls: Authorization
) -> dict[int, AnyServed]:
    """The table of APIs, in which the rule of each API runs before its handler."""
    return {
        key: row._replace(handle=partial(rules[key], acls, row)) if key in rules else row
        for key, row in served.items()
    }


# rules of whole requests


def whole(
    operation: Operation,
    kind: ResourceKind = _CLUSTER,
    name: str | None = None,
    after: Rule | None = None,
) -> Rule:
    """A rule that requires one right for the whole request. `name` is the field with the resource's
    name.
    """

    def rule(
        acls: Authorization, served: AnyServed, context: RequestContext, request: Message
    ) -> Handled[Message]:
        acls.require(
            context, operation, kind, CLUSTER_NAME if name is None else getattr(request, name)
        )
        if after is None:
            return served.handle(context, request)
        return after(acls, served, context, request)

    return rule


def _init_producer_id(
    acls: Authorization,
    served: Served[InitProducerIdRequest, InitProducerIdResponse],
    context: RequestContext,
    request: InitProducerIdRequest,
) -> Handled[InitProducerIdResponse]:
    if request.transactional_id is not None:
        acls.require(context, _O.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    elif not acls.is_allowed(context, _O.IDEMPOTENT_WRITE, _CLUSTER):
        authorizer = acls.authorizer
        assert authorizer is not None, "without one everything is allowed"
        who, host = context.principal, context.client_host
        if not authorizer.is_allowed_for_any(who, host, _O.WRITE, _TOPIC):
            acls.require(context, _O.IDEMPOTENT_WRITE, _CLUSTER)
    return served.handle(context, request)


# rules of rows


def each(need_of: NeedOf[T], rows: str = "topics", answer: str = "topics") -> Rule:
    """A rule that requires a right for each of `rows`. Refused rows are appended to `answer` of the
    response.
    """

    def rule(
        acls: Authorization, served: AnyServed, context: RequestContext, request: Message
    ) -> Work[Outcome[Message]]:
        passed, refused = yield from split(acls, context, request, rows, need_of)
        return (yield from handle_others(served, context, request, rows, answer, passed, refused))

    return rule


def split(
    acls: Authorization, context: RequestContext, request: Message, rows: str, need_of: NeedOf[T]
) -> Work[tuple[list[T], dict[ErrorCode, list[T]]]]:
    """Split rows into the allowed ones, and the refused ones by error."""
    passed: list[T] = []
    refused: dict[ErrorCode, list[T]] = {}
    decided: dict[Need, bool] = {}
    for row in getattr(request, rows):
        yield CHECK_UNITS
        need = need_of(context, row)
        if need is None:
            passed.append(row)
            continue
        allowed = decided.get(need)
        if allowed is None:
            # Decided once for all rows of a resource, as in Kafka.
            allowed = decided[need] = acls.is_allowed(context, *need)
            if not allowed:
                log_denied(context, need)
            yield ROW_UNITS
        if allowed:
            passed.append(row)
        else:
            refused.setdefault(REFUSALS[need.kind], []).append(row)
    return passed, refused


def topic(operation: Operation, name: str = "name") -> NeedOf[Struct]:
    """The right to an operation on the topic in the field `name` of a row. A topic id that is
    unknown has no name, and needs no right.
    """
    name_of = attrgetter(name)

    def need(context: RequestContext, row: Struct) -> Need | None:
        found = name_of(row)
        return None if found is None else Need(operation, _TOPIC, found)

    return need


def named(operation: Operation, kind: ResourceKind) -> NeedOf[str]:
    """The right to an operation on a resource; each row is a resource name."""
    return lambda context, name: Need(operation, kind, name)


def _config(operation: Operation) -> NeedOf[_Resource]:
    def need(context: RequestContext, row: _Resource) -> Need | None:
        if row.resource_type == ResourceType.TOPIC:
            return Need(operation, _TOPIC, row.resource_name)
        if row.resource_type == ResourceType.GROUP:
            return Need(operation, _GROUP, row.resource_name)
        if row.resource_type in (ResourceType.BROKER, ResourceType.CLIENT_METRICS):
            return Need(operation, _CLUSTER, CLUSTER_NAME)
        return None

    return need


def _if_not(operation: Operation, rule: Rule) -> Rule:
    """Skip the row checks for callers that may perform the operation on the cluster."""

    def either(
        acls: Authorization, served: AnyServed, context: RequestContext, request: Message
    ) -> Handled[Message]:
        if acls.is_allowed(context, operation, _CLUSTER):
            return served.handle(context, request)
        return rule(acls, served, context, request)

    return either


def needs_of_produce(name: str, transactional_id: str | None) -> list[Need]:
    """The rights for a request that produces to one topic, as in `_produce`."""
    needs = [Need(_O.WRITE, _TOPIC, name)]
    if transactional_id is not None:
        needs.append(Need(_O.WRITE, _TRANSACTIONAL_ID, transactional_id))
    return needs


_PRODUCE_ROWS: Final = each(topic(_O.WRITE), "topic_data", "responses")


def _produce(
    acls: Authorization,
    served: Served[ProduceRequest, ProduceResponse],
    context: RequestContext,
    request: ProduceRequest,
) -> Handled[ProduceResponse]:
    if request.transactional_id is not None:
        acls.require(context, _O.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    if len(request.topic_data) > ROWS_AT_ONCE:
        # The rows are authorized in slices. Data that arrives between two slices overwrites the
        # receive buffer, in which the records lie.
        keep_records(request)
    return _PRODUCE_ROWS(acls, served, context, request)


def _find_coordinator(
    acls: Authorization,
    served: Served[FindCoordinatorRequest, FindCoordinatorResponse],
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> Handled[FindCoordinatorResponse]:
    if request.key_type == _SHARE_KEY_TYPE:
        return _CLUSTER_ACTION(acls, served, context, request)
    kind = _TRANSACTIONAL_ID if request.key_type == _TRANSACTION_KEY_TYPE else _GROUP
    if context.version < 4:
        acls.require(context, _O.DESCRIBE, kind, request.key)
        return served.handle(context, request)
    rule = each(named(_O.DESCRIBE, kind), "coordinator_keys", "coordinators")
    return rule(acls, served, context, request)


class NamedGroup(Protocol):
    """A group of any protocol."""

    group_id: str
    authorized_operations: int


def narrow_group_operations(
    acls: Authorization, context: RequestContext, group: NamedGroup
) -> None:
    """Keep the operations that the caller may perform, if they were requested."""
    if group.authorized_operations >= 0:
        bits = acls.permitted(context, GROUP_OPERATIONS, _GROUP, group.group_id)
        group.authorized_operations = bits


def _describe_groups(
    acls: Authorization,
    served: Served[DescribeGroupsRequest, DescribeGroupsResponse],
    context: RequestContext,
    request: DescribeGroupsRequest,
) -> Handled[DescribeGroupsResponse]:
    rule = each(named(_O.DESCRIBE, _GROUP), "groups", "groups")

    def narrow(response: DescribeGroupsResponse) -> Work[DescribeGroupsResponse]:
        for group in response.groups:
            yield ROW_UNITS
            narrow_group_operations(acls, context, group)
        return response

    return then(rule(acls, served, context, request), narrow)


def _list_groups(
    acls: Authorization,
    served: Served[ListGroupsRequest, ListGroupsResponse],
    context: RequestContext,
    request: ListGroupsRequest,
) -> Handled[ListGroupsResponse]:
    def narrow(response: ListGroupsResponse) -> Work[ListGroupsResponse]:
        group_id = attrgetter("group_id")
        response.groups = yield from acls.visible(context, _GROUP, response.groups, group_id)
        return response

    return then(served.handle(context, request), narrow)


_CREATE_ROWS: Final = _if_not(_O.CREATE, each(topic(_O.CREATE)))


def _create_topics(
    acls: Authorization,
    served: Served[CreateTopicsRequest, CreateTopicsResponse],
    context: RequestContext,
    request: CreateTopicsRequest,
) -> Handled[CreateTopicsResponse]:
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
    served: Served[MetadataRequest, MetadataResponse],
    context: RequestContext,
    request: MetadataRequest,
) -> Work[Outcome[MetadataResponse]]:
    if request.topics is None or (context.version == 0 and not request.topics):
        visible = partial(_visible_topics, acls, context, request)
        return (yield from worked(then(served.handle(context, request), visible)))

    def need(context: RequestContext, row: MetadataRequestTopic) -> Need | None:
        # The handler resolves ids, perhaps after a wait. `_refuse_found_by_id` authorizes them.
        if row.name is None or not row.topic_id.is_zero:
            return None
        return Need(_O.DESCRIBE, _TOPIC, row.name)

    passed, refused = yield from split(acls, context, request, "topics", need)
    denied = [row for rows in refused.values() for row in rows]
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    others: list[MetadataResponseTopic] = []
    for few in pieces(denied):
        part = served.refuse(with_rows(request, "topics", list(few)), error, context.version)
        assert part is not CLOSE_CONNECTION
        others += part.topics
        yield ROW_UNITS * len(few)

    def with_others(response: MetadataResponse) -> Work[MetadataResponse]:
        if not passed:  # the handler of v0 describes all topics for an empty list
            response.topics = []
        yield from _refuse_found_by_id(acls, context, request, response)
        if auto_create_topics and (context.version < 4 or request.allow_auto_topic_creation):
            yield from _refuse_unmade(acls, context, response)
        response.topics = [*response.topics, *others]
        return (yield from _narrow_operations(acls, context, request, response))

    handled = served.handle(context, with_rows(request, "topics", passed))
    return (yield from worked(then(handled, with_others)))


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
            need = Need(_O.DESCRIBE, _TOPIC, row.name)
            if not acls.is_allowed(context, *need):
                log_denied(context, need)
                yield ROW_UNITS
                response.topics[index] = type(row)(
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    name=None,
                    topic_id=row.topic_id,
                )


def _refuse_unmade(
    acls: Authorization, context: RequestContext, response: MetadataResponse
) -> Work[None]:
    """Set TOPIC_AUTHORIZATION_FAILED for unknown topics that were not created because the caller
    may not create them.
    """
    for row in response.topics:
        yield CHECK_UNITS
        is_unknown = row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_unknown and not acls.may_make_topic(context, row.name or ""):
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            row.topic_authorized_operations = NOT_REQUESTED


def _visible_topics(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest,
    response: MetadataResponse,
) -> Work[MetadataResponse]:
    response.topics = yield from acls.visible(context, _TOPIC, response.topics, attrgetter("name"))
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
                bits = acls.permitted(context, TOPIC_OPERATIONS, _TOPIC, row.name or "")
                row.topic_authorized_operations = bits
    return _narrow_cluster_operations(acls, context, request, response)


def _narrow_cluster_operations(
    acls: Authorization,
    context: RequestContext,
    request: MetadataRequest | DescribeClusterRequest,
    response: OfCluster,
) -> OfCluster:
    if request.include_cluster_authorized_operations:
        may_see = acls.is_allowed(context, _O.DESCRIBE, _CLUSTER)
        response.cluster_authorized_operations = (
            acls.permitted(context, CLUSTER_OPERATIONS, _CLUSTER, CLUSTER_NAME) if may_see else 0
        )
    return response


def _describe_cluster(
    acls: Authorization,
    served: Served[DescribeClusterRequest, DescribeClusterResponse],
    context: RequestContext,
    request: DescribeClusterRequest,
) -> Handled[DescribeClusterResponse]:
    def narrow(response: DescribeClusterResponse) -> DescribeClusterResponse:
        return _narrow_cluster_operations(acls, context, request, response)

    return then(served.handle(context, request), narrow)


_CLUSTER_ACTION: Final = whole(_O.CLUSTER_ACTION)
_ALTER: Final = whole(_O.ALTER)
_DESCRIBE: Final = whole(_O.DESCRIBE)
_READ_GROUP: Final = whole(_O.READ, _GROUP, "group_id")

RULES: Final[dict[int, Rule]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.LIST_OFFSETS: each(topic(_O.DESCRIBE)),
    ApiKey.LEADER_AND_ISR: _CLUSTER_ACTION,
    ApiKey.STOP_REPLICA: _CLUSTER_ACTION,
    ApiKey.UPDATE_METADATA: _CLUSTER_ACTION,
    ApiKey.CONTROLLED_SHUTDOWN: _CLUSTER_ACTION,
    ApiKey.OFFSET_COMMIT: whole(_O.READ, _GROUP, "group_id", each(topic(_O.READ))),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _READ_GROUP,
    ApiKey.HEARTBEAT: _READ_GROUP,
    ApiKey.LEAVE_GROUP: _READ_GROUP,
    ApiKey.SYNC_GROUP: _READ_GROUP,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _if_not(_O.DESCRIBE, _list_groups),
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_RECORDS: each(topic(_O.DELETE)),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _if_not(_O.CLUSTER_ACTION, each(topic(_O.DESCRIBE, "topic"))),
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    ApiKey.DESCRIBE_CONFIGS: each(_config(_O.DESCRIBE_CONFIGS), "resources", "results"),
    ApiKey.ALTER_CONFIGS: each(_config(_O.ALTER_CONFIGS), "resources", "responses"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBE,
    ApiKey.CREATE_PARTITIONS: each(topic(_O.ALTER), "topics", "results"),
    ApiKey.DELETE_GROUPS: each(named(_O.DELETE, _GROUP), "groups_names", "results"),
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: each(_config(_O.ALTER_CONFIGS), "resources", "responses"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.OFFSET_DELETE: whole(_O.DELETE, _GROUP, "group_id"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: whole(_O.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: whole(_O.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.ALTER_PARTITION: _CLUSTER_ACTION,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.ALLOCATE_PRODUCER_IDS: _CLUSTER_ACTION,
    ApiKey.LIST_CONFIG_RESOURCES: whole(_O.DESCRIBE_CONFIGS),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.WRITE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.DELETE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _CLUSTER_ACTION,
}
