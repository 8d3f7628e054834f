"""LeaveGroup (key 13), versions 0-5.

Version notes: one member below v3; many from v3 on, also by instance id (KIP-345).
"""

from __future__ import annotations

from kafkapy.coordinator.groups.messages import LeaveGroup, LeaveGroupResult, LeavingMember
from kafkapy.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.turns import ROW_UNITS, Work, pieces


def handle(
    groups: GroupService, context: RequestContext, request: LeaveGroupRequest
) -> Work[LeaveGroupResponse]:
    """Remove members from a group, a few at a time."""
    if context.version < 3:
        leave = LeaveGroup(request.group_id, [LeavingMember(request.member_id)])
        return groups.answer(groups.coordinator.leave_group, leave, _of_one)
    response = LeaveGroupResponse()
    for few in pieces(request.members) if request.members else [[]]:
        members = [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in few]
        leave = LeaveGroup(request.group_id, members)
        part = groups.answer(groups.coordinator.leave_group, leave, _response)
        yield ROW_UNITS * len(few)
        response.error_code = part.error_code
        response.members += part.members
    return response


def _of_one(result: LeaveGroupResult) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=result.error or result.members[0][1])


def _response(result: LeaveGroupResult) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=result.error,
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in result.members
        ],
    )
