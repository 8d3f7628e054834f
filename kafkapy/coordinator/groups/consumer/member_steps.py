"""The steps of one member's request, in both protocols: replace a static member, update the
member's record, and move its assignment towards its target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.consumer.assignment import EMPTY_ASSIGNMENT, Assignment
from kafkapy.coordinator.groups.consumer.consumer_group import member_keys
from kafkapy.coordinator.groups.consumer.group_epoch import (
    bump_epoch,
    delete_unused_regexes,
    refresh_regexes,
    refresh_topics,
    update_target,
)
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from kafkapy.coordinator.groups.consumer.reconciliation import reconcile
from kafkapy.coordinator.groups.consumer.records import (
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.timers import TimerKind


def replace(core: Core, changes: Changes, old_id: str, new_id: str) -> None:
    """Give a static member that returns with another id the state of the old one (KIP-345)."""
    group = changes.group
    member, target = group.members[old_id], group.target.get(old_id)
    current = group.current_of(old_id)._replace(member_epoch=0, previous_epoch=0)
    deadlines.cancel_timers(core, group.group_id, old_id)
    for key in member_keys(group.group_id, old_id):
        changes.erase(key)
    changes.put(RecordType.MEMBER, member, new_id)
    changes.put(RecordType.TARGET, EMPTY_ASSIGNMENT if target is None else target, new_id)
    changes.put(RecordType.CURRENT, current, new_id)


def update_member(
    core: Core,
    changes: Changes,
    member_id: str,
    member: MemberMetadata,
    is_visible: Callable[[str], bool] | None = None,
) -> None:
    """Write the member's record; then the topics, the group's epoch, and its target, if the member
    or the metadata changed them. Without `is_visible` regular expressions are not matched again."""
    group = changes.group
    before = group.members.get(member_id)
    if member != before:
        changes.put(RecordType.MEMBER, member, member_id)
    changed = before is None or _subscription(before) != _subscription(member)
    if changed:
        delete_unused_regexes(changes)
    if is_visible is not None:
        changed |= refresh_regexes(core, changes, member.subscribed_regex, is_visible)
    if changed or group.metadata_version != core.topics.version:
        changed |= refresh_topics(core, changes)
    if changed:
        bump_epoch(changes)
    if group.epoch > group.target_epoch:
        update_target(core, changes)


def _subscription(member: MemberMetadata) -> tuple[tuple[str, ...], str | None, str | None]:
    """The part of a member that the target depends on."""
    return *member.subscription, member.server_assignor


def advance(
    core: Core, now_ms: int, changes: Changes, member_id: str, owned: Assignment | None
) -> CurrentAssignment:
    """Move a member that owns the partitions `owned` towards its target; return its progress."""
    group = changes.group
    before = group.current_of(member_id)
    is_free = partial(group.is_free, member_id)
    after = reconcile(before, group.target_of(member_id), is_free, owned)
    if after != before:
        changes.put(RecordType.CURRENT, after, member_id)
        deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_REVOCATION, group, member_id)
        must_revoke = after.state is MemberState.UNREVOKED_PARTITIONS
        if must_revoke and group.members[member_id].classic is None:
            deadlines.schedule_rebalance_timeout(
                core, now_ms, TimerKind.CONSUMER_REVOCATION, group, member_id
            )
    deadlines.reset_session(core, now_ms, group, member_id)
    return after
