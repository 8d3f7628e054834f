"""ControlledShutdown (key 7), versions 0-3.

Behaviour: the controller moves leaders away from a broker that is about to stop, and returns the
partitions that it still leads. A broker that is not the controller answers STALE_CONTROLLER_EPOCH,
as Kafka does. Version notes: 0 has a request header without client id; 2 broker epoch (KIP-380).
"""

from __future__ import annotations

from kafkapy.controller.events import ControlledShutdown
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafkapy.server.api.handler_support import submit_to_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_codec import controlled_shutdown_response
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import Outcome


def handle(
    controller: ControllerTask, context: RequestContext, request: ControlledShutdownRequest
) -> Outcome[ControlledShutdownResponse]:
    """Pass the request to the controller."""
    return submit_to_controller(
        controller,
        lambda reply: ControlledShutdown(request.broker_id, request.broker_epoch, reply),
        controlled_shutdown_response,
    )
