"""DescribeTransactions (key 65), version 0 (KIP-664).

Behaviour: returns the state of each transactional id of this coordinator. Other ids get
NOT_COORDINATOR or TRANSACTIONAL_ID_NOT_FOUND in their rows.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import by_topic
from kafkapy.coordinator.transactions.messages import (
    DescribedTransaction,
    DescribeTransactions,
    DescribeTransactionsResult,
)
from kafkapy.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, Work, hash_units


def handle(
    transactions: TransactionService, context: RequestContext, request: DescribeTransactionsRequest
) -> Work[Outcome[DescribeTransactionsResponse]]:
    """Describe each transactional id."""
    rows: list[TransactionState] = []
    for name in dict.fromkeys(request.transactional_ids):
        described = transactions.call_now(
            transactions.coordinator.describe_transactions, DescribeTransactions([name]), _response
        )
        rows += described.transaction_states
        topics = (topic for row in described.transaction_states for topic in row.topics)
        partitions = sum(len(topic.partitions) for topic in topics)
        yield ROW_UNITS + 2 * hash_units(name) + partitions
    return DescribeTransactionsResponse(transaction_states=rows)


def _response(result: DescribeTransactionsResult) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=[_row(t) for t in result.transactions])


def _row(described: DescribedTransaction) -> TransactionState:
    return TransactionState(
        error_code=described.error,
        transactional_id=described.transactional_id,
        transaction_state=described.state,
        transaction_timeout_ms=described.timeout_ms,
        transaction_start_time_ms=described.start_ms,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(described.partitions).items()
        ],
    )


def refuse(
    request: DescribeTransactionsRequest, error: ApiError, version: int
) -> DescribeTransactionsResponse:
    """The error for each id."""
    empty_row = _row(DescribedTransaction("", error.code))
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(
                error_code=error.code,
                transactional_id=name,
                transaction_state=empty_row.transaction_state,
                transaction_start_time_ms=empty_row.transaction_start_time_ms,
                producer_id=empty_row.producer_id,
                producer_epoch=empty_row.producer_epoch,
            )
            for name in dict.fromkeys(request.transactional_ids)
        ]
    )
