"""ListTransactions (key 66), versions 0-1 (KIP-664).

Behaviour: returns the transactional ids of this coordinator that match all filters. Version notes:
v1 filters by the age of a transaction (KIP-994).
"""

from __future__ import annotations

from kafkapy.coordinator.transactions.messages import ListTransactions, ListTransactionsResult
from kafkapy.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work


def handle(
    transactions: TransactionService, context: RequestContext, request: ListTransactionsRequest
) -> Work[ListTransactionsResponse]:
    """List the transactional ids."""
    coordinator_request = ListTransactions(
        request.state_filters, request.producer_id_filters, request.duration_filter
    )
    return transactions.call_now(
        transactions.coordinator.list_transactions, coordinator_request, _response
    )


def _response(result: ListTransactionsResult) -> Work[ListTransactionsResponse]:
    rows: list[TransactionState] = []
    for piece in result.transactions:
        rows += [
            TransactionState(
                transactional_id=listed.transactional_id,
                producer_id=listed.producer_id,
                transaction_state=listed.state,
            )
            for listed in piece
        ]
        yield ROWS_AT_ONCE + ROW_UNITS * len(piece)
    return ListTransactionsResponse(
        error_code=result.error,
        unknown_state_filters=result.unknown_states,
        transaction_states=rows,
    )
