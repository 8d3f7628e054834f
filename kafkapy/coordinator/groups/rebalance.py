"""Rebalances: the end of a generation and the start of the next, and session timeouts.

    prepare               Stable | CompletingRebalance | Empty -> PreparingRebalance,
                          and the join deadline starts
    complete_join         PreparingRebalance -> CompletingRebalance | Empty,
                          JoinGroups are answered and the sync deadline starts
    propagate_assignment  CompletingRebalance -> Stable, SyncGroups are answered

Kafka: the private half of `GroupCoordinator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
    InitialDelay,
)
from kafkapy.coordinator.groups.member import Member
from kafkapy.coordinator.groups.messages import UNKNOWN_MEMBER_ID, JoinGroupResult, SyncGroupResult
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind

_MIN_JOIN_RETRY_MS: Final = 1_000
"""The minimum time until a join without members is checked again. With a rebalance timeout of 0, it
would be checked in a busy loop."""


def prepare(core: Core, now_ms: int, group: Group, reason: str) -> None:
    """Start a rebalance: waiting SyncGroups are refused, JoinGroups wait from now on."""
    core.log.info(
        "Preparing to rebalance group %s in state %s with old generation %d (%s-%d) (reason: %s)",
        group.group_id,
        group.state,
        group.generation_id,
        GROUP_METADATA_TOPIC,
        group.partition,
        reason,
    )
    if group.state is COMPLETING_REBALANCE:
        refuse_assignment(core, now_ms, group, ErrorCode.REBALANCE_IN_PROGRESS)
    core.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
    wait_ms = group.rebalance_timeout_ms
    if group.state is EMPTY:
        delay_ms = core.config.group_initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(wait_ms - delay_ms, 0))
        wait_ms = delay_ms
    group.transition_to(PREPARING_REBALANCE, core.clock.time_ms())
    core.timers.set(TimerKey(TimerKind.JOIN, group.group_id), now_ms + wait_ms)
    try_complete_join(core, now_ms, group)


def maybe_prepare(core: Core, now_ms: int, group: Group, reason: str) -> None:
    """Start a rebalance unless one is being prepared."""
    if group.can_rebalance:
        prepare(core, now_ms, group, reason)


def try_complete_join(core: Core, now_ms: int, group: Group) -> None:
    """Complete the join if all members have joined. The initial delay is never cut short."""
    if group.state is PREPARING_REBALANCE and group.initial_delay is None and group.all_joined:
        complete_join(core, now_ms, group)


def on_join_deadline(core: Core, now_ms: int, group: Group) -> None:
    """Extend the initial delay if a member joined during it, else complete the join."""
    window = group.initial_delay
    if window is None or not group.new_member_added or not window.remaining_ms:
        complete_join(core, now_ms, group)
        return
    delay_ms = min(core.config.group_initial_rebalance_delay_ms, window.remaining_ms)
    group.initial_delay = InitialDelay(delay_ms, max(window.remaining_ms - window.delay_ms, 0))
    group.new_member_added = False
    core.timers.set(TimerKey(TimerKind.JOIN, group.group_id), now_ms + delay_ms)


def complete_join(core: Core, now_ms: int, group: Group) -> None:
    """Start the next generation with the members that joined; wait again if none did."""
    join_timer = TimerKey(TimerKind.JOIN, group.group_id)
    core.timers.cancel(join_timer)
    for member in list(group.members.values()):
        if not member.is_static and member.member_id not in group.joining:
            drop_member(core, group, member)
    if group.members and not group.elect_joined_leader():
        core.log.error(
            "Group %s could not complete rebalance because no members rejoined", group.group_id
        )
        group.initial_delay = None
        core.timers.set(join_timer, now_ms + max(group.rebalance_timeout_ms, _MIN_JOIN_RETRY_MS))
        return
    group.next_generation(core.clock.time_ms())
    if group.state is EMPTY:
        _store_empty(core, group)
        return
    core.log.info(
        "Stabilized group %s generation %d (%s-%d) with %d members",
        group.group_id,
        group.generation_id,
        GROUP_METADATA_TOPIC,
        group.partition,
        len(group.members),
    )
    for member in group.members.values():
        answer_join(core, group, member, generation_result(group, member))
        reset_session(core, now_ms, group, member)
        member.is_new = False
    sync_deadline_ms = now_ms + group.rebalance_timeout_ms
    core.timers.set(TimerKey(TimerKind.SYNC, group.group_id), sync_deadline_ms)


def _store_empty(core: Core, group: Group) -> None:
    core.log.info(
        "Group %s with generation %d is now empty (%s-%d)",
        group.group_id,
        group.generation_id,
        GROUP_METADATA_TOPIC,
        group.partition,
    )

    def stored(_now_ms: int, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            # Harmless: after a failover the old generation's members reappear and time out.
            core.log.warning(
                "Failed to write empty metadata for group %s: %s", group.group_id, error.name
            )

    core.store_group(group, {}, stored)


def generation_result(group: Group, member: Member) -> JoinGroupResult:
    """The JoinGroup answer to `member` with the group's current generation."""
    return JoinGroupResult(
        member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        members=group.joined_members(member.member_id),
    )


# Assignments.


def propagate_assignment(
    core: Core, now_ms: int, group: Group, assignments: Mapping[str, bytes]
) -> None:
    """Answer all SyncGroups with the leader's assignments, and enter Stable."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        result = SyncGroupResult(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        answer_sync(core, now_ms, group, member, result)
    group.transition_to(STABLE, core.clock.time_ms())


def refuse_assignment(core: Core, now_ms: int, group: Group, error: ErrorCode) -> None:
    """Clear all assignments, and answer all SyncGroups with `error`."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(core, now_ms, group, member, SyncGroupResult(error))


def answer_join(core: Core, group: Group, member: Member, result: JoinGroupResult) -> None:
    """Answer the member's JoinGroup if it waits."""
    ticket = group.joining.pop(member.member_id, None)
    if ticket is not None:
        core.outbox.answer(ticket, result)


def answer_sync(
    core: Core, now_ms: int, group: Group, member: Member, result: SyncGroupResult
) -> None:
    """Answer the member's SyncGroup if it waits, and restart its session timeout."""
    ticket = group.syncing.pop(member.member_id, None)
    if ticket is not None:
        core.outbox.answer(ticket, result)
        reset_session(core, now_ms, group, member)


# Sessions and other deadlines.


def reset_session(core: Core, now_ms: int, group: Group, member: Member) -> None:
    """Restart the member's session timeout."""
    key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
    core.timers.set(key, now_ms + member.session_timeout_ms)


def on_session_deadline(core: Core, now_ms: int, group: Group, member_id: str) -> None:
    """Remove a member whose session has expired, unless its request waits here.

    A new member is removed even if its first JoinGroup waits: after minutes, its client has long
    tried again under another id.
    """
    member = group.members[member_id]
    waits = member_id in group.joining or member_id in group.syncing
    if waits and not member.is_new:
        return
    core.log.info(
        "Member %s in group %s has failed, removing it from the group", member_id, group.group_id
    )
    remove_member(core, now_ms, group, member, f"removing member {member_id} on session expiration")


def on_pending_deadline(core: Core, now_ms: int, group: Group, member_id: str) -> None:
    """Remove a pending member id with which no client joined in time."""
    core.log.info(
        "Pending member %s in group %s has been removed after session timeout expiration.",
        member_id,
        group.group_id,
    )
    remove_pending(core, now_ms, group, member_id)


def on_sync_deadline(core: Core, now_ms: int, group: Group) -> None:
    """Remove members that joined but did not send SyncGroup in time (KIP-735), and rebalance."""
    if group.state not in (COMPLETING_REBALANCE, STABLE):
        return
    late = [m for m in group.members.values() if m.member_id in group.pending_sync]
    if late:
        for member in late:
            drop_member(core, group, member)
        names = ", ".join(member.member_id for member in late)
        prepare(core, now_ms, group, f"Removing {names} on pending sync request expiration")


def remove_pending_sync(core: Core, group: Group, member: Member) -> None:
    """Record that the member sent SyncGroup in this generation."""
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        core.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))


def remove_member(core: Core, now_ms: int, group: Group, member: Member, reason: str) -> None:
    """Remove a member. The others rebalance, or stop waiting for it."""
    drop_member(core, group, member)
    maybe_prepare(core, now_ms, group, reason)
    try_complete_join(core, now_ms, group)


def remove_pending(core: Core, now_ms: int, group: Group, member_id: str) -> None:
    """Remove a pending member id. The members stop waiting for it."""
    group.pending_members.discard(member_id)
    core.timers.cancel(TimerKey(TimerKind.PENDING, group.group_id, member_id))
    try_complete_join(core, now_ms, group)


def drop_member(core: Core, group: Group, member: Member) -> None:
    """Remove a member, and answer its waiting requests UNKNOWN_MEMBER_ID."""
    error = ErrorCode.UNKNOWN_MEMBER_ID
    member_id = member.member_id
    answer_join(core, group, member, JoinGroupResult(UNKNOWN_MEMBER_ID, error))
    ticket = group.syncing.pop(member_id, None)
    if ticket is not None:
        core.outbox.answer(ticket, SyncGroupResult(error))
    group.remove(member_id)
    core.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member_id))


def refuse_waiting(core: Core, group: Group, error: ErrorCode) -> None:
    """Answer all waiting requests with `error`, and cancel all timers: the group ends here."""
    for member_id, ticket in group.joining.items():
        core.outbox.answer(ticket, JoinGroupResult(member_id, error))
    for ticket in group.syncing.values():
        core.outbox.answer(ticket, SyncGroupResult(error))
    group.joining.clear()
    group.syncing.clear()
    for kind, member_ids in (
        (TimerKind.JOIN, [""]),
        (TimerKind.SYNC, [""]),
        (TimerKind.SESSION, group.members),
        (TimerKind.PENDING, group.pending_members),
    ):
        for member_id in member_ids:
            core.timers.cancel(TimerKey(kind, group.group_id, member_id))
