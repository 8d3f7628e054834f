"""The rights that each API needs: `RULES`, one row an API (`kafka.server.KafkaApis`, `AuthHelper`).

A rule stands before a handler. It refuses the request as a whole, or takes from it the rows that
the principal may not ask for and puts them, refused, behind the handler's answer. Without an
authorizer none stands there, so nothing is paid. Handlers whose rows only they know - Fetch,
DeleteTopics, OffsetFetch, OffsetDelete - ask `authorization` themselves, as any other may.
A topic id is resolved and authorized together with each request, never before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import CLUSTER_NAME, REFUSALS, Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization, Need, log_denied
from kafkapy.server.api.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
)
from kafkapy.server.api.handler_support import BROKER_RESOURCE, TOPIC_RESOURCE
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, then
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Work, pieces, worked

if TYPE_CHECKING:
    from kafkapy.server.requests.served import Served

_O: Final = Operation
_TOPIC, _GROUP, _CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
_TRANSACTIONAL_ID: Final = ResourceKind.TRANSACTIONAL_ID
_TRANSACTION_KEY_TYPE: Final = 1
_NOT_REQUESTED: Final = -(2**31)
_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)


# Of a row, what it needs; None if anybody may ask, because the handler will refuse it anyway.
NeedOf = Callable[[RequestContext, Any], Need | None]
Rule = Callable[[Authorization, "Served", RequestContext, Any], Any]


def guard(
    served: Mapping[int, Served], rules: Mapping[int, Rule], acls: Authorization
) -> dict[int, Served]:
    """The table of APIs with the rule of each in front of its handler."""
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
    """The request needs one thing; `name` is the field that names it."""

    def rule(acls: Authorization, served: Served, context: RequestContext, request: Any) -> Any:
        acls.require(
            context, operation, kind, CLUSTER_NAME if name is None else getattr(request, name)
        )
        if after is None:
            return served.handle(context, request)
        return after(acls, served, context, request)

    return rule


def _init_producer_id(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
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


def each(need_of: NeedOf, rows: str = "topics", answer: str = "topics") -> Rule:
    """Each of `rows` needs something; the refused ones join `answer` of the response."""

    def rule(
        acls: Authorization, served: Served, context: RequestContext, request: Any
    ) -> Work[Any]:
        passed, refused = yield from split(acls, context, request, rows, need_of)
        if not refused:
            return (yield from worked(served.handle(context, request)))
        answers = []
        for code, denied in refused.items():
            for few in pieces(denied):
                part = served.refuse(
                    with_rows(request, rows, list(few)), ApiError(code), context.version
                )
                answers.append(part)
                yield ROW_UNITS * len(few)
        if CLOSE_CONNECTION in answers:  # a produce without acknowledgement
            if passed:
                yield from worked(served.handle(context, with_rows(request, rows, passed)))
            return CLOSE_CONNECTION
        if not passed:
            return _joined(answers[0], answers[1:], answer)
        outcome = yield from worked(served.handle(context, with_rows(request, rows, passed)))
        return then(outcome, lambda response: _joined(response, answers, answer))

    return rule


def split(
    acls: Authorization, context: RequestContext, request: Any, rows: str, need_of: NeedOf
) -> Work[tuple[list[Any], dict[ErrorCode, list[Any]]]]:
    """The rows that are allowed, and the others by their refusal."""
    passed: list[Any] = []
    refused: dict[ErrorCode, list[Any]] = {}
    decided: dict[Need, bool] = {}
    for row in getattr(request, rows):
        yield CHECK_UNITS
        need = need_of(context, row)
        if need is None:
            passed.append(row)
            continue
        allowed = decided.get(need)
        if allowed is None:
            # Once for all rows of a resource, as Kafka does.
            allowed = decided[need] = acls.is_allowed(context, *need)
            if not allowed:
                log_denied(context, need)
            yield ROW_UNITS
        if allowed:
            passed.append(row)
        else:
            refused.setdefault(REFUSALS[need.kind], []).append(row)
    return passed, refused


def with_rows(request: Any, field: str, rows: list[Any]) -> Any:
    """A copy of a request that has other rows."""
    changed = copy.copy(request)
    setattr(changed, field, rows)
    return changed


def _joined(response: Any, others: list[Any], field: str) -> Any:
    rows = list(getattr(response, field))
    for other in others:
        rows += getattr(other, field)
    setattr(response, field, rows)
    return response


def topic(operation: Operation, name: str = "name") -> NeedOf:
    """A row's `name` is a topic's."""
    name_of = attrgetter(name)
    return lambda context, row: Need(operation, _TOPIC, name_of(row))


def _config(operation: Operation) -> NeedOf:
    def need(context: RequestContext, row: Any) -> Need | None:
        if row.resource_type == TOPIC_RESOURCE:
            return Need(operation, _TOPIC, row.resource_name)
        if row.resource_type == BROKER_RESOURCE:
            return Need(operation, _CLUSTER, CLUSTER_NAME)
        return None

    return need


def _if_not(operation: Operation, rule: Rule) -> Rule:
    """Skip the row checks for callers that may perform the operation on the cluster."""

    def either(acls: Authorization, served: Served, context: RequestContext, request: Any) -> Any:
        if acls.is_allowed(context, operation, _CLUSTER):
            return served.handle(context, request)
        return rule(acls, served, context, request)

    return either


def needs_of_produce(name: str, transactional_id: str | None) -> list[Need]:
    """The needs of a request that produces to one topic, as `_produce` demands them."""
    needs = [Need(_O.WRITE, _TOPIC, name)]
    if transactional_id is not None:
        needs.append(Need(_O.WRITE, _TRANSACTIONAL_ID, transactional_id))
    return needs


_PRODUCE_ROWS: Final = each(topic(_O.WRITE), "topic_data", "responses")


def _produce(acls: Authorization, served: Served, context: RequestContext, request: Any) -> Any:
    if request.transactional_id is not None:
        acls.require(context, _O.WRITE, _TRANSACTIONAL_ID, request.transactional_id)
    return _PRODUCE_ROWS(acls, served, context, request)


def _find_coordinator(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
    kind = _TRANSACTIONAL_ID if request.key_type == _TRANSACTION_KEY_TYPE else _GROUP
    if context.version < 4:
        acls.require(context, _O.DESCRIBE, kind, request.key)
        return served.handle(context, request)
    rule = each(
        lambda context, key: Need(_O.DESCRIBE, kind, key), "coordinator_keys", "coordinators"
    )
    return rule(acls, served, context, request)


def _describe_groups(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
    rule = each(lambda context, group: Need(_O.DESCRIBE, _GROUP, group), "groups", "groups")

    def narrow(response: Any) -> Any:
        for group in response.groups:
            if group.authorized_operations >= 0:
                bits = acls.permitted(context, GROUP_OPERATIONS, _GROUP, group.group_id)
                group.authorized_operations = bits
        return response

    return then(rule(acls, served, context, request), narrow)


def _describe_consumer_groups(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
    rule = each(lambda context, group: Need(_O.DESCRIBE, _GROUP, group), "group_ids", "groups")

    def narrow(response: Any) -> Any:
        for group in response.groups:
            if group.authorized_operations >= 0:
                bits = acls.permitted(context, GROUP_OPERATIONS, _GROUP, group.group_id)
                group.authorized_operations = bits
            names = {
                row.topic_name
                for member in group.members
                for assignment in (member.assignment, member.target_assignment)
                for row in assignment.topic_partitions
            }.union(*(member.subscribed_topic_names for member in group.members))
            if not all(acls.is_allowed(context, _O.DESCRIBE, _TOPIC, name) for name in names):
                group.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                group.error_message = _HIDDEN_TOPICS
                group.members = []
        return response

    return then(rule(acls, served, context, request), narrow)


def _list_groups(acls: Authorization, served: Served, context: RequestContext, request: Any) -> Any:
    def narrow(response: Any) -> Any:
        response.groups = acls.visible(context, _GROUP, response.groups, attrgetter("group_id"))
        return response

    return then(served.handle(context, request), narrow)


_CREATE_ROWS: Final = _if_not(_O.CREATE, each(topic(_O.CREATE)))


def _create_topics(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
    def without_configs(response: Any) -> Any:
        for row in response.topics:
            if not acls.is_allowed(context, _O.DESCRIBE_CONFIGS, _TOPIC, row.name):
                row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                row.num_partitions = row.replication_factor = -1
                row.configs = []
        return response

    return then(_CREATE_ROWS(acls, served, context, request), without_configs)


# Metadata


def metadata_rule(auto_create_topics: bool) -> Rule:
    """The rule of Metadata; a topic may be one that a broker makes when a client names it."""
    return partial(_metadata, auto_create_topics)


def _metadata(
    auto_create_topics: bool,
    acls: Authorization,
    served: Served,
    context: RequestContext,
    request: Any,
) -> Work[Any]:
    narrow = partial(_narrow_operations, acls, context, request)
    if request.topics is None or (context.version == 0 and not request.topics):
        outcome = yield from worked(served.handle(context, request))
        return then(then(outcome, partial(_visible_topics, acls, context)), narrow)

    def need(context: RequestContext, row: Any) -> Need | None:
        # What an id means is the handler's to find, perhaps later (`_refuse_found_by_id`).
        by_name = row.name is not None and row.topic_id.is_zero
        return Need(_O.DESCRIBE, _TOPIC, row.name) if by_name else None

    passed, refused = yield from split(acls, context, request, "topics", need)
    denied = [row for rows in refused.values() for row in rows]
    refusal = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    others: list[Any] = []
    for few in pieces(denied):
        part = served.refuse(with_rows(request, "topics", list(few)), refusal, context.version)
        others += part.topics
        yield ROW_UNITS * len(few)

    def with_others(response: Any) -> Any:
        if not passed:  # in version 0 that is "all" to the handler
            response.topics = []
        _refuse_found_by_id(acls, context, request, response)
        if auto_create_topics and (context.version < 4 or request.allow_auto_topic_creation):
            _refuse_unmade(acls, context, response)
        response.topics = [*response.topics, *others]
        return response

    outcome = yield from worked(served.handle(context, with_rows(request, "topics", passed)))
    return then(then(outcome, with_others), narrow)


def _refuse_found_by_id(
    acls: Authorization, context: RequestContext, request: Any, response: Any
) -> None:
    """A topic that was found by its id is authorized by the name that it was found under, which
    the answer then keeps to itself. The id is no secret, in Kafka neither."""
    ids = {row.topic_id for row in request.topics if not row.topic_id.is_zero}
    for index, row in enumerate(response.topics if ids else ()):
        if row.topic_id in ids and row.name is not None:
            need = Need(_O.DESCRIBE, _TOPIC, row.name)
            if not acls.is_allowed(context, *need):
                log_denied(context, need)
                response.topics[index] = type(row)(
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    name=None,
                    topic_id=row.topic_id,
                )


def _refuse_unmade(acls: Authorization, context: RequestContext, response: Any) -> None:
    """A topic that was not made because who asks may not have it made is no unknown one."""
    for row in response.topics:
        is_unknown = row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_unknown and not acls.may_make_topic(context, row.name):
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            row.topic_authorized_operations = _NOT_REQUESTED


def _visible_topics(acls: Authorization, context: RequestContext, response: Any) -> Any:
    response.topics = acls.visible(context, _TOPIC, response.topics, attrgetter("name"))
    return response


def _narrow_operations(
    acls: Authorization, context: RequestContext, request: Any, response: Any
) -> Any:
    if request.include_topic_authorized_operations:
        for row in response.topics:
            if row.topic_authorized_operations >= 0:
                bits = acls.permitted(context, TOPIC_OPERATIONS, _TOPIC, row.name)
                row.topic_authorized_operations = bits
    return _narrow_cluster_operations(acls, context, request, response)


def _narrow_cluster_operations(
    acls: Authorization, context: RequestContext, request: Any, response: Any
) -> Any:
    if request.include_cluster_authorized_operations:
        may_see = acls.is_allowed(context, _O.DESCRIBE, _CLUSTER)
        response.cluster_authorized_operations = (
            acls.permitted(context, CLUSTER_OPERATIONS, _CLUSTER, CLUSTER_NAME) if may_see else 0
        )
    return response


def _describe_cluster(
    acls: Authorization, served: Served, context: RequestContext, request: Any
) -> Any:
    return _narrow_cluster_operations(acls, context, request, served.handle(context, request))


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
    ApiKey.DELETE_GROUPS: each(
        lambda context, group: Need(_O.DELETE, _GROUP, group), "groups_names", "results"
    ),
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
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.ALLOCATE_PRODUCER_IDS: _CLUSTER_ACTION,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _READ_GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _describe_consumer_groups,
}
