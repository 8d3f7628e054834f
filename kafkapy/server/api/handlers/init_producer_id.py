"""InitProducerId (key 22), versions 0-5.

Behaviour: without a transactional id, returns a unique producer id with epoch 0, for idempotent
producers (KIP-98). With one, its coordinator makes the caller the only producer of that
transactional id. Version notes: v3 has the caller's producer id (KIP-360); below v4 PRODUCER_FENCED
is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import InitProducerId, InitProducerIdResult
from kafkapy.coordinator.transactions.state import NO_PRODUCER_ID
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.server.api.handler_support import transactional_error
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.producer_ids import ProducerIdManager
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.outcomes import Outcome, ResponseCoroutine

_FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def handle(
    transactions: TransactionService,
    producer_ids: ProducerIdManager,
    context: RequestContext,
    request: InitProducerIdRequest,
) -> Outcome[InitProducerIdResponse] | ResponseCoroutine[InitProducerIdResponse]:
    """Assign the next producer id, or the producer id and epoch of a transactional id."""
    if request.transactional_id is not None:
        return _init_transactional_id(transactions, context, request)

    async def allocate() -> InitProducerIdResponse:
        producer_id = await producer_ids.next_id()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    return allocate()


def _init_transactional_id(
    transactions: TransactionService, context: RequestContext, request: InitProducerIdRequest
) -> Outcome[InitProducerIdResponse]:
    producer = Producer(request.producer_id, request.producer_epoch)
    if (producer.producer_id == NO_PRODUCER_ID) != (producer.producer_epoch == -1):
        return refuse(request, ApiError(ErrorCode.INVALID_REQUEST), context.version)
    assert request.transactional_id is not None
    coordinator_request = InitProducerId(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if producer.producer_id == NO_PRODUCER_ID else producer,
    )

    def response(result: InitProducerIdResult) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            error_code=transactional_error(
                result.error, context.version, _FIRST_VERSION_WITH_PRODUCER_FENCED
            ),
            producer_id=result.producer_id,
            producer_epoch=result.producer_epoch,
        )

    return transactions.call(
        transactions.coordinator.init_producer_id, coordinator_request, response
    )


def refuse(request: InitProducerIdRequest, error: ApiError, version: int) -> InitProducerIdResponse:
    """The error with no producer id."""
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
