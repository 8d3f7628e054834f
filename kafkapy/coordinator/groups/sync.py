"""SyncGroup: the leader sends all assignments, and every member gets its own."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import classic_members
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    Group,
)
from kafkapy.coordinator.groups.messages import (
    SyncGroup,
    SyncGroupResult,
)


def sync_group(core: Core, now_ms: int, token: Token, request: SyncGroup) -> None:
    """Kafka: `GroupCoordinator.handleSyncGroup`."""
    error = core.registry.check(request.group_id)
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # The member's rebalance is lost, so it must rejoin. Old clients do not know error 14.
        error = ErrorCode.REBALANCE_IN_PROGRESS
    group = None
    if error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        if group is not None and group.consumer is not None:
            classic_members.sync(core, now_ms, token, group, request)
            return
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _check(group, request)
    if group is None or error is not ErrorCode.NONE:
        core.outbox.reply(token, SyncGroupResult(error))
        return
    member = group.members[request.member_id]
    rebalance.remove_pending_sync(core, group, member)
    if group.state is STABLE:
        rebalance.reset_session(core, now_ms, group, member)
        result = SyncGroupResult(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        core.outbox.reply(token, result)
        return
    superseded = SyncGroupResult(ErrorCode.REBALANCE_IN_PROGRESS)
    rebalance.answer_sync(core, now_ms, group, member, superseded)
    group.syncing[member.member_id] = core.outbox.hold(token)
    if member.member_id == group.leader_id and group.assigned_generation_id != group.generation_id:
        _store_assignment(core, group, request)


def _check(group: Group, request: SyncGroup) -> ErrorCode:
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _store_assignment(core: Core, group: Group, request: SyncGroup) -> None:
    core.log.info(
        "Assignment received from leader %s for group %s for generation %d. "
        "The group has %d members, %d of which are static.",
        request.member_id,
        group.group_id,
        group.generation_id,
        len(group.members),
        len(group.static_members),
    )
    generation_id = group.assigned_generation_id = group.generation_id

    def stored(now_ms: int, error: ErrorCode) -> None:
        if group.state is not COMPLETING_REBALANCE or group.generation_id != generation_id:
            return  # a rebalance has begun meanwhile: all SyncGroups are answered
        if error is ErrorCode.NONE:
            rebalance.propagate_assignment(core, now_ms, group, request.assignments)
        else:
            rebalance.refuse_assignment(core, now_ms, group, error)
            reason = f"Error when storing group assignment during SyncGroup ({request.member_id})"
            rebalance.prepare(core, now_ms, group, reason)

    core.store_group(group, request.assignments, stored)
