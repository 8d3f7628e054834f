"""StopReplica (key 5), versions 0-4.

Behaviour: this broker stops serving the given replicas, and deletes their logs if requested.
Commands are applied in the order of their arrival; those of an older controller or for an earlier
broker epoch are refused as a whole. Version notes: 1 broker epoch (KIP-380); 3 leader epoch and
deletion per partition (KIP-570); 4 KRaft flag (KIP-866), of no effect here.
"""

from __future__ import annotations

from kafkapy.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.control_request_codec import stop_replica_command, stop_replica_response
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.requests.outcomes import ResponseCoroutine


def handle(
    receiver: ControlRequestHandler, context: RequestContext, request: StopReplicaRequest
) -> ResponseCoroutine[StopReplicaResponse]:
    """Apply the command after those that arrived before it."""
    command = stop_replica_command(request)

    async def apply() -> StopReplicaResponse:
        return stop_replica_response(await receiver.apply(command, context.header.correlation_id))

    return apply()
