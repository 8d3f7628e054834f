"""Heartbeat (key 12), versions 0-4."""

from __future__ import annotations

from kafkapy.coordinator.groups.messages import Heartbeat
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome


def handle(
    groups: GroupService, context: RequestContext, request: HeartbeatRequest
) -> Outcome[HeartbeatResponse]:
    """Extend a member's session, and report a rebalance to it."""
    coordinator_request = Heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return groups.call(
        groups.coordinator.heartbeat,
        coordinator_request,
        lambda result: HeartbeatResponse(error_code=result.error),
    )
