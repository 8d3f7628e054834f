"""JoinGroup of new members, of static members that return, and of known members."""

from __future__ import annotations

import uuid
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import classic_members
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
)
from kafkapy.coordinator.groups.member import Member
from kafkapy.coordinator.groups.messages import (
    UNKNOWN_MEMBER_ID,
    JoinGroup,
    JoinGroupResult,
    SyncGroupResult,
)
from kafkapy.coordinator.groups.record_codec import fits_record
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind
from kafkapy.coordinator.outbox import Ticket

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""The time limit of a member's first JoinGroup. Until it is answered, the member sends no
heartbeats that would show whether its client still runs."""


def join_group(core: Core, now_ms: int, token: Token, request: JoinGroup) -> None:
    """Kafka: `GroupCoordinator.handleJoinGroup`."""
    error = _check(core, request)
    if error is not ErrorCode.NONE:
        core.outbox.reply(token, JoinGroupResult(request.member_id, error))
        return
    is_new = request.member_id == UNKNOWN_MEMBER_ID
    group = core.registry.find(request.group_id)
    if group is None:
        if not is_new:
            result = JoinGroupResult(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            core.outbox.reply(token, result)
            return
        group = core.registry.get_or_create(request.group_id, core.clock.time_ms())
    if group.consumer is not None:
        if not group.consumer.holds_offsets:
            result = JoinGroupResult(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            core.outbox.reply(token, result)
            return
        classic = classic_members.maybe_convert_to_classic(core, now_ms, group, request)
        if classic is None:
            classic_members.join(core, now_ms, token, group, request)
            return
        group = classic
    if not group.accepts_joining_member(request.member_id, core.config.group_max_size):
        _refuse_max_size_reached(core, now_ms, token, group, request.member_id)
    elif not group.supports(request.protocol_type, request.protocols):
        result = JoinGroupResult(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        core.outbox.reply(token, result)
    elif is_new:
        _join_new_member(core, now_ms, token, group, request)
    else:
        _join_known_member(core, now_ms, token, group, request)
    rebalance.try_complete_join(core, now_ms, group)


def _check(core: Core, request: JoinGroup) -> ErrorCode:
    error = core.registry.check(request.group_id)
    if error is not ErrorCode.NONE:
        return error
    config = core.config
    low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    names = (name for name, _ in request.protocols)
    if not fits_record(
        request.protocol_type,
        request.client_host,
        f"{request.client_id}-{_NO_UUID}",
        f"{request.group_instance_id}-{_NO_UUID}",
        *names,
    ):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


_NO_UUID: Final = str(uuid.UUID(int=0))


def _refuse_max_size_reached(
    core: Core, now_ms: int, token: Token, group: Group, member_id: str
) -> None:
    """Refuse a member: the group is full. A known member or pending id is removed."""
    member = group.members.get(member_id)
    if member is not None:
        rebalance.drop_member(core, group, member)
    if member_id in group.pending_members:
        rebalance.remove_pending(core, now_ms, group, member_id)
    error = ErrorCode.GROUP_MAX_SIZE_REACHED
    core.outbox.reply(token, JoinGroupResult(UNKNOWN_MEMBER_ID, error))


def _join_new_member(
    core: Core, now_ms: int, token: Token, group: Group, request: JoinGroup
) -> None:
    instance_id = request.group_instance_id
    seed = core.random.bytes(16)
    prefix = request.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{uuid.UUID(bytes=seed, version=4)}"
    if instance_id is not None and instance_id in group.static_members:
        _replace_static_member(core, now_ms, token, group, request, member_id)
    elif instance_id is None and request.requires_known_member_id:
        core.log.info(
            "Dynamic member with unknown member id joins group %s in %s state. "
            "Created a new member id %s and request the member to rejoin with this id.",
            group.group_id,
            group.state,
            member_id,
        )
        group.pending_members.add(member_id)
        key = TimerKey(TimerKind.PENDING, group.group_id, member_id)
        core.timers.set(key, now_ms + request.session_timeout_ms)
        core.outbox.reply(token, JoinGroupResult(member_id, ErrorCode.MEMBER_ID_REQUIRED))
    else:
        _add_member(core, now_ms, token, group, request, member_id)


def _join_known_member(
    core: Core, now_ms: int, token: Token, group: Group, request: JoinGroup
) -> None:
    member_id = request.member_id
    if member_id in group.pending_members and request.group_instance_id is None:
        core.timers.cancel(TimerKey(TimerKind.PENDING, group.group_id, member_id))
        _add_member(core, now_ms, token, group, request, member_id)
        return
    error = group.check_member(member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        core.outbox.reply(token, JoinGroupResult(member_id, error))
        return
    member = group.members[member_id]
    changed = list(member.protocols) != list(request.protocols)
    in_generation = group.state is COMPLETING_REBALANCE or (
        group.state is STABLE and member_id != group.leader_id
    )
    if in_generation and not changed:
        # Its JoinGroup answer was lost, or it only checks: this generation is still current.
        rebalance.reset_session(core, now_ms, group, member)
        core.outbox.reply(token, rebalance.generation_result(group, member))
        return
    _update(group, member, request)
    _hold_join(core, token, group, member)
    reason = f"Updating metadata for member {member_id}" if changed else f"{member_id} rejoins"
    rebalance.maybe_prepare(core, now_ms, group, _with_client_reason(reason, request))


def _add_member(
    core: Core, now_ms: int, token: Token, group: Group, request: JoinGroup, member_id: str
) -> None:
    """Add a new member, and start a rebalance unless one is being prepared."""
    member = Member(
        member_id,
        request.group_instance_id,
        request.client_id,
        request.client_host,
        request.effective_rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocols,
    )
    if group.state is PREPARING_REBALANCE and group.generation_id == 0:
        group.new_member_added = True
    group.add(member, request.protocol_type)
    _hold_join(core, token, group, member)
    key = TimerKey(TimerKind.SESSION, group.group_id, member_id)
    core.timers.set(key, now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
    reason = _with_client_reason(f"Adding new member {member_id}", request)
    rebalance.maybe_prepare(core, now_ms, group, reason)


def _replace_static_member(
    core: Core, now_ms: int, token: Token, group: Group, request: JoinGroup, member_id: str
) -> None:
    """Replace a static member that returns (KIP-345). Its old id is fenced; its assignment stays if
    possible."""
    assert group.state is not EMPTY, f"group {group.group_id} is Empty and has a static member"
    assert request.group_instance_id is not None, "a static member has an instance id"
    old_id = group.static_members[request.group_instance_id]
    member = group.members[old_id]
    old_leader = group.leader_id or ""
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    rebalance.answer_join(core, group, member, JoinGroupResult(old_id, fenced))
    rebalance.answer_sync(core, now_ms, group, member, SyncGroupResult(fenced))
    _update(group, member, request)
    _replace_member_id(core, now_ms, group, member, member_id)
    ticket = _hold_join(core, token, group, member)
    if group.state is PREPARING_REBALANCE:
        return
    if group.state is COMPLETING_REBALANCE or group.select_protocol() != group.protocol_name:
        # CompletingRebalance: the leader may be assigning partitions to the old id.
        reason = _with_client_reason(f"Updating metadata for static member {member_id}", request)
        rebalance.prepare(core, now_ms, group, reason)
        return

    def stored(now_ms: int, error: ErrorCode) -> None:
        if group.state is not STABLE or group.joining.get(member.member_id) is not ticket:
            return  # a rebalance has begun: it includes this JoinGroup, or has answered it
        if error is ErrorCode.NONE:
            result = _stable_result(group, member, request, old_leader)
        else:
            core.log.warning(
                "Failed to persist metadata for group %s: %s", group.group_id, error.name
            )
            result = rebalance.generation_result(group, member)
            result.member_id, result.error, result.members = UNKNOWN_MEMBER_ID, error, []
            result.leader = old_leader
        rebalance.answer_join(core, group, member, result)
        rebalance.reset_session(core, now_ms, group, member)
        if error is not ErrorCode.NONE:
            group.update(member, *before)
            _replace_member_id(core, now_ms, group, member, old_id)

    assignments = {m.member_id: m.assignment for m in group.members.values()}
    core.store_group(group, assignments, stored)


def _stable_result(
    group: Group, member: Member, request: JoinGroup, old_leader: str
) -> JoinGroupResult:
    """The unchanged generation, in a form that does not make the leader assign again.

    JoinGroup v9+ has SkipAssignment. In older versions, the old id stands as the leader.
    """
    result = rebalance.generation_result(group, member)
    if request.supports_skip_assignment:
        result.skip_assignment = member.member_id == group.leader_id
    else:
        result.leader, result.members = old_leader, []
    return result


def _replace_member_id(
    core: Core, now_ms: int, group: Group, member: Member, member_id: str
) -> None:
    core.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
    group.replace_static_member(member, member_id)
    rebalance.reset_session(core, now_ms, group, member)


def _update(group: Group, member: Member, request: JoinGroup) -> None:
    timeout_ms = request.effective_rebalance_timeout_ms
    group.update(member, request.protocols, timeout_ms, request.session_timeout_ms)


def _hold_join(core: Core, token: Token, group: Group, member: Member) -> Ticket:
    """Hold back a JoinGroup. An earlier one of the same member, which its client has given up, is
    answered REBALANCE_IN_PROGRESS."""
    superseded = JoinGroupResult(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
    rebalance.answer_join(core, group, member, superseded)
    ticket = group.joining[member.member_id] = core.outbox.hold(token)
    return ticket


def _with_client_reason(reason: str, request: JoinGroup) -> str:
    return f"{reason}; client reason: {request.reason or 'not provided'}"
