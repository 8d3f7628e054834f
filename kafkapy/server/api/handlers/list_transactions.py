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
from kafkapy.server.requests.outcomes import Outcome


def handle(
    transactions: TransactionService, context: RequestContext, request: ListTransactionsRequest
) -> Outcome[ListTransactionsResponse]:
    """List the transactional ids."""
    coordinator_request = ListTransactions(
        request.state_filters, request.producer_id_filters, request.duration_filter
    )
    return transactions.call(
        transactions.coordinator.list_transactions, coordinator_request, _response
    )


def _response(result: ListTransactionsResult) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        error_code=result.error,
        unknown_state_filters=result.unknown_states,
        transaction_states=[
            TransactionState(
                transactional_id=listed.transactional_id,
                producer_id=listed.producer_id,
                transaction_state=listed.state,
            )
            for listed in result.transactions
        ],
    )
