"""LeaveGroup (key 13), versions 0-5.

Version notes: one member below v3, many from v3, then by instance id too (KIP-345).
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.messages import LeaveGroup, LeaveGroupResult, LeavingMember
from kafkapy.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kafkapy.server.request import RequestContext


def handle(context: RequestContext, request: LeaveGroupRequest) -> Any:
    """Take members out of a group."""
    groups = context.broker.groups
    version = context.version
    members = (
        [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in request.members]
        if version >= 3
        else [LeavingMember(request.member_id)]
    )
    return groups.call(
        groups.coordinator.leave_group,
        LeaveGroup(request.group_id, members),
        lambda result: _response(result, version),
    )


def _response(result: LeaveGroupResult, version: int) -> LeaveGroupResponse:
    error = result.error
    if version < 3 and error is ErrorCode.NONE and result.members:
        error = result.members[0][1]
    return LeaveGroupResponse(
        error_code=error,
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in result.members
        ],
    )
