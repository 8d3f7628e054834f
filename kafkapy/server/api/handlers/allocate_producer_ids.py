"""AllocateProducerIds (key 67), version 0: a block of producer ids for a broker (KIP-730).

Behaviour: the controller allocates the next 1000 ids from `/latest_producer_id_block`. A broker
that is not the controller answers NOT_CONTROLLER.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.controller.events import AllocateProducerIds
from kafkapy.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafkapy.server.api.handler_support import submit_to_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.zk.stores.znodes import ProducerIdBlock


def handle(
    controller: ControllerTask, context: RequestContext, request: AllocateProducerIdsRequest
) -> Outcome[AllocateProducerIdsResponse]:
    """Pass the request to the controller."""
    return submit_to_controller(
        controller,
        lambda reply: AllocateProducerIds(request.broker_id, request.broker_epoch, reply),
        _respond,
    )


def _respond(result: ProducerIdBlock | ErrorCode) -> AllocateProducerIdsResponse:
    if isinstance(result, ErrorCode):
        return AllocateProducerIdsResponse(error_code=result)
    size = result.end - result.start + 1
    return AllocateProducerIdsResponse(producer_id_start=result.start, producer_id_len=size)
