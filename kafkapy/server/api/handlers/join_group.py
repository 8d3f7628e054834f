"""JoinGroup (key 11), versions 0-9.

Behaviour: the classic rebalance protocol. The response is sent when the generation is complete.
Version notes: v4 MEMBER_ID_REQUIRED (KIP-394); v5 static members (KIP-345); v9 skips the assignment
by static leaders that rejoin (KIP-814).
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.coordinator.groups.messages import JoinGroup, JoinGroupResult
from kafkapy.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome


def handle(
    groups: GroupService, context: RequestContext, request: JoinGroupRequest
) -> Outcome[JoinGroupResponse]:
    """Join or rejoin a group."""
    version = context.version
    coordinator_request = JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        protocol_type=request.protocol_type,
        protocols=[(p.name, bytes(p.metadata)) for p in request.protocols],
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        group_instance_id=request.group_instance_id,
        client_id=context.header.client_id or "",
        client_host=f"/{context.client_host}",
        reason=request.reason,
        requires_known_member_id=version >= 4 and request.group_instance_id is None,
        supports_skip_assignment=version >= 9,
    )
    return groups.call(
        groups.coordinator.join_group,
        coordinator_request,
        lambda result: _response(result, version),
    )


def _response(result: JoinGroupResult, version: int) -> JoinGroupResponse:
    name = result.protocol_name
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=name if version >= 7 else name or "",
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=m.member_id, group_instance_id=m.group_instance_id, metadata=m.metadata
            )
            for m in result.members
        ],
    )


def refuse(request: JoinGroupRequest, error: ApiError, version: int) -> JoinGroupResponse:
    """The error with the member id of the request."""
    return _response(JoinGroupResult(request.member_id, error.code), version)
