"""Deadlines of a consumer group's members: of their sessions, and of revocations."""

from __future__ import annotations

from typing import Final

from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.records import MemberState
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind

_KINDS: Final = (TimerKind.CONSUMER_SESSION, TimerKind.CONSUMER_REVOCATION)


def reset_session(core: Core, now_ms: int, group_id: str, member_id: str) -> None:
    """The member has been heard of."""
    key = TimerKey(TimerKind.CONSUMER_SESSION, group_id, member_id)
    default_ms = core.config.group_consumer_session_timeout_ms
    timeout_ms = core.own_config(group_id, "consumer.session.timeout.ms", default_ms)
    core.timers.set(key, now_ms + timeout_ms)


def limit_revocation(core: Core, deadline_ms: int, group_id: str, member_id: str) -> None:
    """The member has until then to revoke partitions."""
    core.timers.set(TimerKey(TimerKind.CONSUMER_REVOCATION, group_id, member_id), deadline_ms)


def end_revocation(core: Core, group_id: str, member_id: str) -> None:
    """The member has nothing to revoke."""
    core.timers.cancel(TimerKey(TimerKind.CONSUMER_REVOCATION, group_id, member_id))


def cancel_timers(core: Core, group_id: str, member_id: str) -> None:
    """The member is gone, or is another coordinator's."""
    for kind in _KINDS:
        core.timers.cancel(TimerKey(kind, group_id, member_id))


def start_timers(core: Core, now_ms: int, group: ConsumerGroup) -> None:
    """Every member's session and revocation start anew."""
    for member_id, member in group.members.items():
        reset_session(core, now_ms, group.group_id, member_id)
        if group.current_of(member_id).state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = now_ms + member.rebalance_timeout_ms
            limit_revocation(core, deadline_ms, group.group_id, member_id)
