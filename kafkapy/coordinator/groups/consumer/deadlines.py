"""Deadlines of a consumer group's members: of their sessions, and of their steps in a rebalance."""

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
"""The deadlines, each with the reason for which a member is removed."""


def reset_session(core: Core, now_ms: int, group: ConsumerGroup, member_id: str) -> None:
    """The member has been heard of. One of the classic protocol has a timeout of its own."""
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


def limit(core: Core, now_ms: int, kind: TimerKind, group: ConsumerGroup, member_id: str) -> None:
    """The member has its rebalance timeout for a step, unless that runs already."""
    key = TimerKey(kind, group.group_id, member_id)
    if core.timers.deadline_ms(key) is None:
        core.timers.set(key, now_ms + group.members[member_id].rebalance_timeout_ms)


def end(core: Core, kind: TimerKind, group: ConsumerGroup, member_id: str) -> None:
    """The member has done the step."""
    core.timers.cancel(TimerKey(kind, group.group_id, member_id))


def cancel_timers(core: Core, group_id: str, member_id: str) -> None:
    """The member is gone, or is another coordinator's."""
    for kind in REASONS:
        core.timers.cancel(TimerKey(kind, group_id, member_id))


def cancel_all(core: Core, group: ConsumerGroup) -> None:
    """The group is gone, or is another coordinator's."""
    for member_id in group.members:
        cancel_timers(core, group.group_id, member_id)


def start_timers(core: Core, now_ms: int, group: ConsumerGroup) -> None:
    """Every member's session and revocation start anew."""
    for member_id, member in group.members.items():
        reset_session(core, now_ms, group, member_id)
        state = group.current_of(member_id).state
        if state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            limit(core, now_ms, TimerKind.CONSUMER_REVOCATION, group, member_id)
