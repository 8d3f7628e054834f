"""LeaveGroup (key 13), versions 0-5.

Version notes: one member below v3; many from v3 on, also by instance id (KIP-345).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import LeaveGroup, LeaveGroupResult, LeavingMember
from kafkapy.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work, as_work, chunks


def handle(
    groups: GroupService, context: RequestContext, request: LeaveGroupRequest
) -> Work[Outcome[LeaveGroupResponse]]:
    """Remove members from a group, a few at a time. In a consumer group, the response waits for the
    log.
    """
    if context.version < 3:
        leave = LeaveGroup(request.group_id, [LeavingMember(request.member_id)])
        return (
            yield from as_work(
                groups.call(groups.coordinator.leave_group, leave, _single_member_response)
            )
        )
    rows = chunks(request.members) if request.members else [[]]
    starts = [partial(_leave, groups, request.group_id, few) for few in rows]
    return (yield from gather(starts, _response, ROW_UNITS * ROWS_AT_ONCE))


def _leave(
    groups: GroupService,
    group_id: str,
    rows: Sequence[MemberIdentity],
    on_result: Callable[[LeaveGroupResult], None],
) -> None:
    members = [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in rows]
    groups.run_internal(groups.coordinator.leave_group, LeaveGroup(group_id, members), on_result)


def _single_member_response(result: LeaveGroupResult) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=result.error or result.members[0][1])


def _response(results: Sequence[LeaveGroupResult]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=next((each.error for each in results if each.error), ErrorCode.NONE),
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for result in results
            for member, code in result.members
        ],
    )
