"""Members of consumer groups that leave, or are removed when they are not heard of in time."""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer.assignment import NOTHING
from kafkapy.coordinator.groups.consumer.consumer_group import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    member_keys,
)
from kafkapy.coordinator.groups.consumer.deadlines import cancel_timers, end_revocation
from kafkapy.coordinator.groups.consumer.group_epoch import (
    bump_epoch,
    forget_unused_regexes,
    refresh_topics,
)
from kafkapy.coordinator.groups.consumer.log_writes import Changes, store
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.records import MemberState, RecordType
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind

# Checks of the member.


def check_dynamic(group: ConsumerGroup, member_id: str) -> None:
    """Require that a member exists.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID.
    """
    if member_id not in group.members:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)


def check_static(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """Require that a member is the one of its instance.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another has taken its place.
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


def leave(core: Core, token: Token, request: ConsumerHeartbeat, group: Group) -> None:
    """Remove a member, or keep a static member's place until its session is over.

    Raises:
        ApiError: there is no such member.
    """
    consumer = group.consumer
    assert consumer is not None, f"{group.group_id} is not a consumer group"
    member_id = request.member_id
    if request.instance_id is None:
        check_dynamic(consumer, member_id)
    else:
        check_static(consumer, member_id, request.instance_id)
    changes = Changes(consumer)
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        current = consumer.current_of(member_id)._replace(
            member_epoch=STATIC_LEAVE_EPOCH, state=MemberState.STABLE, revoking=NOTHING
        )
        changes.put(RecordType.CURRENT, current, member_id)
        end_revocation(core, consumer.group_id, member_id)
        how = "temporarily left"
    else:
        _remove(core, changes, member_id)
        how = "left"
    core.log.info("[GroupId %s] Member %s %s the consumer group.", group.group_id, member_id, how)
    result = ConsumerHeartbeatResult(member_id=member_id, member_epoch=request.member_epoch)
    store(core, group, changes, token, result)


def _remove(core: Core, changes: Changes, member_id: str) -> None:
    cancel_timers(core, changes.group.group_id, member_id)
    for key in member_keys(changes.group.group_id, member_id):
        changes.erase(key)
    forget_unused_regexes(changes)
    refresh_topics(core, changes)
    bump_epoch(changes)
    if not changes.group.members:  # an Empty group has no target to compute
        changes.put(RecordType.TARGET_EPOCH, changes.group.epoch)


# Deadlines.


def on_deadline(core: Core, group: Group, key: TimerKey) -> None:
    """Remove a member that was silent, or did not revoke in time."""
    consumer = group.consumer
    assert consumer is not None, f"{key} has outlived its group"
    if key.member_id not in consumer.members:
        return  # its joining could not be stored
    is_session = key.kind is TimerKind.CONSUMER_SESSION
    core.log.info(
        "[GroupId %s] Member %s fenced from the group because its %s expired.",
        key.group_id,
        key.member_id,
        "session" if is_session else "rebalance timeout",
    )
    changes = Changes(consumer)
    _remove(core, changes, key.member_id)
    store(core, group, changes)
