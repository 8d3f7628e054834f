"""EndTxn (key 26), versions 0-4.

Behaviour: answered as soon as the decision is in the coordinator's log; the partitions get their
markers afterwards.
Version notes: below v2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import Any

from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import EndTransaction, EndTransactionResult
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.server.api.handler_support import transactional_error
from kafkapy.server.api.request_context import RequestContext

_FIRST_VERSION_WITH_FENCED = 2


def handle(context: RequestContext, request: EndTxnRequest) -> Any:
    """Commit or abort."""
    question = EndTransaction(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
    )

    def response(result: EndTransactionResult) -> EndTxnResponse:
        code = transactional_error(result.error, context.version, _FIRST_VERSION_WITH_FENCED)
        return EndTxnResponse(error_code=code)

    transactions = context.broker.transactions
    return transactions.call(transactions.coordinator.end_transaction, question, response)
