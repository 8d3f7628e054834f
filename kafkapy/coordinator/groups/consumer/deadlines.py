"""Deadlines of a consumer group's members: sessions and the steps of a rebalance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.records import MemberState
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.share.messages import SHARE_GROUP_TYPE
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind

REASONS: Final[Mapping[TimerKind, str]] = {
    TimerKind.CONSUMER_SESSION: "the member session expired",
    TimerKind.CONSUMER_REVOCATION: "it failed to revoke partitions within the rebalance timeout",
    TimerKind.CONSUMER_JOIN: "the classic member failed to join within the rebalance timeout",
    TimerKind.CONSUMER_SYNC: "the member failed to sync within timeout",
}
"""The reason for the removal of a member, by deadline."""


def reset_session(core: Core, now_ms: int, group: ConsumerGroup, member_id: str) -> None:
    """Restart a member's session timeout. Members of the classic protocol have their own
    timeout."""
    classic = group.members[member_id].classic
    if classic is not None:
        timeout_ms = classic.session_timeout_ms
    elif group.group_type == SHARE_GROUP_TYPE:
        default_ms = core.config.group_share_session_timeout_ms
        timeout_ms = core.own_config(group.group_id, "share.session.timeout.ms", default_ms)
    else:
        default_ms = core.config.group_consumer_session_timeout_ms
        timeout_ms = core.own_config(group.group_id, "consumer.session.timeout.ms", default_ms)
    key = TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id)
    core.timers.set(key, now_ms + timeout_ms)


def schedule_rebalance_timeout(
    core: Core, now_ms: int, kind: TimerKind, group: ConsumerGroup, member_id: str
) -> None:
    """Start the rebalance timeout for a member's step, unless it runs already."""
    key = TimerKey(kind, group.group_id, member_id)
    if core.timers.deadline_ms(key) is None:
        core.timers.set(key, now_ms + group.members[member_id].rebalance_timeout_ms)


def cancel_rebalance_timeout(
    core: Core, kind: TimerKind, group: ConsumerGroup, member_id: str
) -> None:
    """Cancel the timeout of a step that the member has completed."""
    core.timers.cancel(TimerKey(kind, group.group_id, member_id))


def cancel_timers(core: Core, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member: it was removed, or another coordinator has it."""
    for kind in REASONS:
        core.timers.cancel(TimerKey(kind, group_id, member_id))


def cancel_all(core: Core, group: ConsumerGroup) -> None:
    """Cancel the timers of all members: the group was removed, or another coordinator has it."""
    for member_id in group.members:
        cancel_timers(core, group.group_id, member_id)


def start_timers(core: Core, now_ms: int, group: ConsumerGroup) -> None:
    """Restart the session timeout of every member, and the timeouts of pending revocations."""
    for member_id, member in group.members.items():
        reset_session(core, now_ms, group, member_id)
        state = group.current_of(member_id).state
        if state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            schedule_rebalance_timeout(
                core, now_ms, TimerKind.CONSUMER_REVOCATION, group, member_id
            )
