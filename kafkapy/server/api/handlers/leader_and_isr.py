"""LeaderAndIsr (key 4), versions 0-7.

Behaviour: this broker becomes leader or follower of the given partitions. Commands are applied in
the order of their arrival; those of an older controller or for an earlier broker epoch are refused
as a whole. Version notes: 2 broker epoch (KIP-380); 3 reassignment (KIP-455); 5 topic ids, rows by
id (KIP-516); 6 leader recovery state (KIP-704); 7 KRaft flag (KIP-866), of no effect here.
"""

from __future__ import annotations

from kafkapy.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.control_request_codec import (
    leader_and_isr_command,
    leader_and_isr_response,
)
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.requests.outcomes import ResponseCoroutine


def handle(
    receiver: ControlRequestHandler,
    listener: str,
    context: RequestContext,
    request: LeaderAndIsrRequest,
) -> ResponseCoroutine[LeaderAndIsrResponse]:
    """Apply the command after those that arrived before it."""
    command = leader_and_isr_command(request, listener)

    async def apply() -> LeaderAndIsrResponse:
        result = await receiver.apply(command, context.header.correlation_id)
        return leader_and_isr_response(result, command, context.version)

    return apply()
