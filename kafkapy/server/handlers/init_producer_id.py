"""InitProducerId (key 22), versions 0-5.

Behaviour: a producer id that no one else has, epoch 0, for idempotent producers (KIP-98).
Not done: transactional ids; they are refused until a transaction coordinator is served.
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkapy.server.handler_support import run_async
from kafkapy.server.request import RequestContext


def handle(context: RequestContext, request: InitProducerIdRequest) -> Any:
    """Give out the next producer id."""
    if request.transactional_id == "":
        return refuse(request, ApiError(ErrorCode.INVALID_REQUEST), context.version)
    if request.transactional_id is not None:
        refusal = ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return refuse(request, refusal, context.version)

    async def give() -> InitProducerIdResponse:
        producer_id = await context.broker.producer_ids.next_id()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    return run_async(context, give(), lambda error: refuse(request, error, context.version))


def refuse(request: InitProducerIdRequest, error: ApiError, version: int) -> InitProducerIdResponse:
    """The error with no producer id."""
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
