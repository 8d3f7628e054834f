"""UpdateMetadata (key 6), versions 0-8.

Behaviour: replaces the live brokers, and merges the partitions into the metadata. A leader of -2
removes a partition. Commands are applied in the order of their arrival; those of an older
controller or for an earlier broker epoch are refused as a whole. Version notes: 4 offline replicas
(KIP-112); 5 broker epoch (KIP-380); 7 topic ids (KIP-516); 8 KRaft flag and type (KIP-866), of no
effect here.
"""

from __future__ import annotations

from kafkapy.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.control_request_codec import update_metadata_command
from kafkapy.server.cluster.control_request_handler import ControlRequestHandler
from kafkapy.server.requests.outcomes import ResponseCoroutine


def handle(
    receiver: ControlRequestHandler, context: RequestContext, request: UpdateMetadataRequest
) -> ResponseCoroutine[UpdateMetadataResponse]:
    """Apply the command after those that arrived before it."""
    command = update_metadata_command(request)

    async def apply() -> UpdateMetadataResponse:
        result = await receiver.apply(command, context.header.correlation_id)
        return UpdateMetadataResponse(error_code=result.error)

    return apply()
