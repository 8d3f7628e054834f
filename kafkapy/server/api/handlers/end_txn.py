"""EndTxn (key 26), versions 0-5.

Behaviour: the response is sent as soon as the decision is in the coordinator's log. The partitions
get their markers afterwards. Version notes: below v2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH;
from v5 on the answer has the producer id and epoch of the next transaction (transaction version 2,
KIP-890).
"""

from __future__ import annotations

from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import EndTransaction, EndTransactionResult
from kafkapy.coordinator.transactions.state import EPOCH_BUMP_VERSION
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.server.api.handler_support import transactional_error
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.outcomes import Outcome

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2
_FIRST_VERSION_WITH_EPOCH_BUMP = 5


def handle(
    transactions: TransactionService, context: RequestContext, request: EndTxnRequest
) -> Outcome[EndTxnResponse]:
    """Commit or abort a transaction."""
    coordinator_request = EndTransaction(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        EPOCH_BUMP_VERSION if context.version >= _FIRST_VERSION_WITH_EPOCH_BUMP else 0,
    )

    def response(result: EndTransactionResult) -> EndTxnResponse:
        code = transactional_error(
            result.error, context.version, _FIRST_VERSION_WITH_PRODUCER_FENCED
        )
        return EndTxnResponse(
            error_code=code,
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.producer_epoch,
        )

    return transactions.call(
        transactions.coordinator.end_transaction, coordinator_request, response
    )
