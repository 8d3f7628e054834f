"""Heartbeat and LeaveGroup."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import classic_members
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import PREPARING_REBALANCE, Group
from kafkapy.coordinator.groups.messages import (
    UNKNOWN_MEMBER_ID,
    Heartbeat,
    HeartbeatResult,
    LeaveGroup,
    LeaveGroupResult,
    LeavingMember,
)


def heartbeat(core: Core, now_ms: int, token: Token, request: Heartbeat) -> None:
    """Kafka: `GroupCoordinator.handleHeartbeat`."""
    error = core.registry.check(request.group_id)
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error = ErrorCode.NONE  # sessions restart after loading
    elif error is ErrorCode.NONE:
        error = _handle_heartbeat(core, now_ms, request)
    core.outbox.reply(token, HeartbeatResult(error))


def _handle_heartbeat(core: Core, now_ms: int, request: Heartbeat) -> ErrorCode:
    group = core.registry.find(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.consumer is not None:
        return classic_members.heartbeat(core, now_ms, group, request)
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    rebalance.reset_session(core, now_ms, group, group.members[request.member_id])
    if group.state is PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave_group(core: Core, now_ms: int, token: Token, request: LeaveGroup) -> None:
    """Kafka: `GroupCoordinator.handleLeaveGroup`."""
    result = LeaveGroupResult(core.registry.check(request.group_id))
    if result.error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        if group is not None and group.consumer is not None:
            classic_members.leave(core, now_ms, token, group, request)
            return
        for leaving in request.members:
            error = ErrorCode.UNKNOWN_MEMBER_ID
            if group is not None:
                error = _leave(core, now_ms, group, leaving)
            result.members.append((leaving, error))
    core.outbox.reply(token, result)


def _leave(core: Core, now_ms: int, group: Group, leaving: LeavingMember) -> ErrorCode:
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if member_id in group.pending_members:
        rebalance.remove_pending(core, now_ms, group, member_id)
        return ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
        # An administrator names a static member by its instance id (KIP-345).
        member_id = group.static_members.get(instance_id, UNKNOWN_MEMBER_ID)
    error = group.check_member(member_id, instance_id)
    if error is ErrorCode.NONE:
        reason = f"Removing member {member_id} on LeaveGroup; client reason: "
        reason += leaving.reason or "not provided"
        core.log.info("%s (group %s)", reason, group.group_id)
        rebalance.remove_member(core, now_ms, group, group.members[member_id], reason)
    return error
