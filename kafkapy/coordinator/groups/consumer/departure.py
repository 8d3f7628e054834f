"""Removal of members from consumer groups, on request or after a missed deadline."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.consumer.assignment import partitions_of
from kafkapy.coordinator.groups.consumer.consumer_group import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    member_keys,
)
from kafkapy.coordinator.groups.consumer.downgrade import downgrade, may_downgrade
from kafkapy.coordinator.groups.consumer.group_epoch import (
    bump_epoch,
    delete_unused_regexes,
    refresh_topics,
)
from kafkapy.coordinator.groups.consumer.log_writes import Answer, Changes, store
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.records import CurrentAssignment, RecordType
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind

# Checks of the member.


def check_capacity(
    core: Core, group: ConsumerGroup, member_id: str, instance_id: str | None
) -> None:
    """Require that the group is not full, or that the member is known.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED.
    """
    limit = core.config.group_consumer_max_size
    is_known = member_id in group.members or instance_id in group.static_members
    if len(group.members) >= limit and not is_known:
        message = f"The consumer group has reached its maximum capacity of {limit} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def check_dynamic_member(group: ConsumerGroup, member_id: str) -> None:
    """Require that a member exists.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID.
    """
    if member_id not in group.members:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)


def check_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """Require that a member is the current one of its instance id.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has replaced it.
    """
    holder = group.static_members.get(instance_id)
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder}.",
        )


def leave(core: Core, now_ms: int, token: Token, request: ConsumerHeartbeat, group: Group) -> None:
    """Remove a member, or keep a static member's place until its session expires.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    consumer = group.consumer
    assert consumer is not None, f"{group.group_id} is not a consumer group"
    member_id = request.member_id
    if request.instance_id is None:
        check_dynamic_member(consumer, member_id)
    else:
        check_static_member(consumer, member_id, request.instance_id)
    is_temporary = request.member_epoch == STATIC_LEAVE_EPOCH
    action = "temporarily left" if is_temporary else "left"
    core.log.info(
        "[GroupId %s] Member %s %s the consumer group.", group.group_id, member_id, action
    )
    result = ConsumerHeartbeatResult(member_id=member_id, member_epoch=request.member_epoch)
    answer = Answer(token, result)
    if not is_temporary:
        remove(core, now_ms, group, {member_id}, answer)
        return
    changes = Changes(consumer)
    before = consumer.current_of(member_id)
    current = CurrentAssignment(
        STATIC_LEAVE_EPOCH,
        before.previous_epoch,
        assigned=before.assigned,
        epochs={each: before.assignment_epoch(each) for each in partitions_of(before.assigned)},
    )
    changes.put(RecordType.CURRENT, current, member_id)
    deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_REVOCATION, consumer, member_id)
    store(core, group, changes, answer)


def remove(
    core: Core,
    now_ms: int,
    group: Group,
    member_ids: Collection[str],
    answer: Answer | None = None,
) -> None:
    """Remove members. If only members of the classic protocol remain, the group becomes a classic
    group and rebalances."""
    consumer = group.consumer
    assert consumer is not None, f"{group.group_id} is not a consumer group"
    remaining = {m: each for m, each in consumer.members.items() if m not in member_ids}
    if may_downgrade(core, consumer, member_ids, len(remaining)):
        classic = downgrade(core, now_ms, group, remaining, answer)
        reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
        rebalance.prepare(core, now_ms, classic, reason)
        return
    changes = Changes(consumer)
    for member_id in dict.fromkeys(member_ids):
        deadlines.cancel_timers(core, consumer.group_id, member_id)
        for key in member_keys(consumer.group_id, member_id):
            changes.erase(key)
    delete_unused_regexes(changes)
    refresh_topics(core, changes)
    bump_epoch(changes)
    if not consumer.members:  # an Empty group has no target to compute
        changes.put(RecordType.TARGET_EPOCH, consumer.epoch)
    store(core, group, changes, answer)


# Deadlines.


def on_deadline(core: Core, now_ms: int, group: Group, key: TimerKey) -> None:
    """Remove a member whose session or rebalance step has timed out."""
    core.log.info(
        "[GroupId %s] Member %s fenced from the group because %s.",
        key.group_id,
        key.member_id,
        deadlines.REASONS[key.kind],
    )
    remove(core, now_ms, group, {key.member_id})
