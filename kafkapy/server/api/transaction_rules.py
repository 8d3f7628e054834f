"""Authorization rules of the transaction APIs, which are part of `authorization_rules`."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorization_rules import (
    Rule,
    require_for_request,
    require_for_rows,
    resource_action,
    split_by_authorized,
    topic_action,
)
from kafkapy.server.api.refused_rows import refuse_rows, with_rows
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, Outcome, OutcomeOrWork, then
from kafkapy.server.requests.turns import CHECK_UNITS, Work, as_work

if TYPE_CHECKING:
    from kafkapy.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
    )
    from kafkapy.protocol.messages.describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
    )
    from kafkapy.protocol.messages.list_transactions import (
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from kafkapy.protocol.messages.write_txn_markers import (
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )
    from kafkapy.server.api.served import ServedApi

_TRANSACTIONAL_ID: Final = ResourceKind.TRANSACTIONAL_ID
_FIRST_VERSION_BETWEEN_BROKERS: Final = 4


def _write(name: str = "transactional_id", next_rule: Rule | None = None) -> Rule:
    return require_for_request(Operation.WRITE, _TRANSACTIONAL_ID, name, next_rule)


def _require_all_topics(
    acls: Authorization,
    served: ServedApi[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse],
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
) -> Work[Outcome[AddPartitionsToTxnResponse]]:
    """Refuse all topics of a request if one is refused: either all are added or none."""
    field = "v3_and_below_topics"
    passed, refused = yield from split_by_authorized(
        acls, context, request, field, topic_action(Operation.WRITE)
    )
    if not refused:
        return (yield from as_work(served.handle(context, request)))
    response: AddPartitionsToTxnResponse | None = None
    refused[ErrorCode.OPERATION_NOT_ATTEMPTED] = passed
    for code, rows in refused.items():
        part = yield from refuse_rows(served, context, with_rows(request, field, rows), code)
        assert part is not CLOSE_CONNECTION
        if response is None:
            response = part
        else:
            response.results_by_topic_v3_and_below += part.results_by_topic_v3_and_below
    assert response is not None
    return response


_ADD: Final = _write("v3_and_below_transactional_id", _require_all_topics)


def _add_partitions(
    acls: Authorization,
    served: ServedApi[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse],
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
) -> OutcomeOrWork[AddPartitionsToTxnResponse]:
    if context.version < _FIRST_VERSION_BETWEEN_BROKERS:
        return _ADD(acls, served, context, request)
    acls.require(context, Operation.CLUSTER_ACTION, ResourceKind.CLUSTER)
    return served.handle(context, request)


def _write_markers(
    acls: Authorization,
    served: ServedApi[WriteTxnMarkersRequest, WriteTxnMarkersResponse],
    context: RequestContext,
    request: WriteTxnMarkersRequest,
) -> OutcomeOrWork[WriteTxnMarkersResponse]:
    if not acls.is_allowed(context, Operation.ALTER, ResourceKind.CLUSTER):
        acls.require(context, Operation.CLUSTER_ACTION, ResourceKind.CLUSTER)
    return served.handle(context, request)


def _describe(
    acls: Authorization,
    served: ServedApi[DescribeTransactionsRequest, DescribeTransactionsResponse],
    context: RequestContext,
    request: DescribeTransactionsRequest,
) -> OutcomeOrWork[DescribeTransactionsResponse]:
    def narrow(response: DescribeTransactionsResponse) -> Work[DescribeTransactionsResponse]:
        name, kind = attrgetter("topic"), ResourceKind.TOPIC
        for row in response.transaction_states:
            yield CHECK_UNITS
            row.topics = yield from acls.describable_rows(context, kind, row.topics, name)
        return response

    return then(_DESCRIBE_ROWS(acls, served, context, request), narrow)


_DESCRIBE_ROWS: Final = require_for_rows(
    resource_action(Operation.DESCRIBE, _TRANSACTIONAL_ID),
    "transactional_ids",
    "transaction_states",
)


def _list(
    acls: Authorization,
    served: ServedApi[ListTransactionsRequest, ListTransactionsResponse],
    context: RequestContext,
    request: ListTransactionsRequest,
) -> OutcomeOrWork[ListTransactionsResponse]:
    def narrow(response: ListTransactionsResponse) -> Work[ListTransactionsResponse]:
        response.transaction_states = yield from acls.describable_rows(
            context,
            _TRANSACTIONAL_ID,
            response.transaction_states,
            attrgetter("transactional_id"),
        )
        return response

    return then(served.handle(context, request), narrow)


_READ_GROUP: Final = require_for_request(Operation.READ, ResourceKind.GROUP, "group_id")
_READ_ROWS: Final = require_for_request(
    Operation.READ, ResourceKind.GROUP, "group_id", require_for_rows(topic_action(Operation.READ))
)

TRANSACTION_RULES: Final[dict[int, Rule]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: _write(next_rule=_READ_GROUP),
    ApiKey.END_TXN: _write(),
    ApiKey.WRITE_TXN_MARKERS: _write_markers,
    ApiKey.TXN_OFFSET_COMMIT: _write(next_rule=_READ_ROWS),
    ApiKey.DESCRIBE_PRODUCERS: require_for_rows(topic_action(Operation.READ)),
    ApiKey.DESCRIBE_TRANSACTIONS: _describe,
    ApiKey.LIST_TRANSACTIONS: _list,
}
