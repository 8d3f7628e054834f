"""Heartbeat (key 12), versions 0-4."""

from __future__ import annotations

from typing import Any

from kafkapy.coordinator.groups.messages import Heartbeat
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: HeartbeatRequest) -> Any:
    """Keep a member's session alive, and tell it of a rebalance."""
    groups = context.broker.groups
    beat = Heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return groups.call(
        groups.coordinator.heartbeat,
        beat,
        lambda result: HeartbeatResponse(error_code=result.error),
    )
