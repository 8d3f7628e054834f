"""Upgrades of classic groups to consumer groups, when the first consumer-protocol member joins.

The members of the classic protocol stay. Their epoch is the generation. They keep the partitions
that the leader assigned last, and those that they owned when they joined. Errors in the answers to
their next requests make them rejoin. Kafka: `GroupMetadataManager.convertToConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kafkapy.common.consumer_protocol import (
    BYTES_MAX,
    CONSUMER_PROTOCOL_TYPE,
    Subscription,
    read_assignment,
    read_subscription,
)
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.consumer.assignment import Assignment, by_topic_id
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from kafkapy.coordinator.groups.consumer.records import (
    ClassicMember,
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    RecordType,
    Value,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    Group,
)
from kafkapy.coordinator.groups.member import Member
from kafkapy.coordinator.groups.record_codec import GroupValue, group_key


def consumer_group_from_classic(core: Core, group: Group) -> ConsumerGroup:
    """Build the consumer group for a classic group, which does not change yet.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, with the reason, if it cannot be upgraded.
    """
    consumer = ConsumerGroup(group.group_id)
    if group.is_empty:
        return consumer
    _check(core, group)

    def put(kind: RecordType, value: Value, name: str = "") -> None:
        consumer.apply(ConsumerKey(kind, group.group_id, name), value)

    generation_id = group.generation_id
    try:
        subscriptions = {name: _subscription(group, m) for name, m in group.members.items()}
        assignments = _assignments(core, group, subscriptions)
    except ValueError as error:
        raise _refusal(core, group, "the embedded consumer protocol is malformed") from error
    for member_id, assignment in assignments.items():
        described = _member(group, group.members[member_id], subscriptions[member_id])
        put(RecordType.MEMBER, described, member_id)
        put(RecordType.TARGET, assignment, member_id)
        current = CurrentAssignment(generation_id, generation_id, assigned=assignment)
        put(RecordType.CURRENT, current, member_id)
    put(RecordType.GROUP_EPOCH, generation_id)
    put(RecordType.TARGET_EPOCH, generation_id)
    return consumer


def _check(core: Core, group: Group) -> None:
    if not core.config.may_upgrade_groups:
        raise _refusal(core, group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refusal(core, group, "the group does not use the consumer embedded protocol")
    if len(group.members) > core.config.group_consumer_max_size:
        raise _refusal(core, group, "the group size exceeds the consumer group maximum size")
    members = group.members.values()
    if sum(len(_embedded(group, m)) + len(m.assignment) for m in members) > BYTES_MAX:
        raise _refusal(core, group, f"the embedded consumer protocol exceeds {BYTES_MAX} bytes")


def _refusal(core: Core, group: Group, reason: str) -> ApiError:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    core.log.info("%s", message)
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _member(group: Group, member: Member, subscription: Subscription) -> MemberMetadata:
    return MemberMetadata(
        member.group_instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted({*subscription.topics})),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicMember(member.session_timeout_ms, tuple(member.protocols)),
    )


def _subscription(group: Group, member: Member) -> Subscription:
    """Read a member's subscription. Raises ValueError if it is unreadable."""
    return read_subscription(_embedded(group, member))


def _embedded(group: Group, member: Member) -> bytes:
    # A member that joins now may not support the protocol of the last generation.
    return member.metadata(group.protocol_name) or member.protocols[0][1]


def _assignments(
    core: Core, group: Group, subscriptions: Mapping[str, Subscription]
) -> dict[str, Assignment]:
    """The partitions that each member may still have, by member.

    A cooperative member keeps the partitions that it owned when it joined until it revokes them,
    and only its next JoinGroup shows that it has. So no other member gets them, unless the leader
    assigned them to another member.

    Raises:
        ValueError: an assignment is unreadable.
    """
    assigned = {
        name: {*_assigned_partitions(core, group, member)} for name, member in group.members.items()
    }
    taken = set().union(*assigned.values())
    for member_id, subscription in subscriptions.items():
        owned = {*subscription.owned} - taken
        assigned[member_id] |= owned
        taken |= owned
    return {member_id: by_topic_id(core.topics, each) for member_id, each in assigned.items()}


def _assigned_partitions(core: Core, group: Group, member: Member) -> Sequence[TopicPartition]:
    """The partitions that the leader assigned. Raises ValueError if they are unreadable."""
    found = read_assignment(member.assignment)
    if found.user_data:
        reason = (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch"
            " to a default assignor before re-attempting the upgrade"
        )
        raise _refusal(core, group, reason)
    return found.partitions


def upgrade(core: Core, now_ms: int, group: Group, changes: Changes) -> Group:
    """Replace the classic group by the consumer group of `changes`, and delete its record."""
    before = group.value({m.member_id: m.assignment for m in group.members.values()})
    was_rebalancing = group.state in (PREPARING_REBALANCE, COMPLETING_REBALANCE)
    rebalance.refuse_waiting(core, group, ErrorCode.REBALANCE_IN_PROGRESS)
    changes.delete([*group.consumer_keys, group_key(group.group_id)])
    changes.put_all()
    new = core.replace_group(group)
    new.consumer = changes.group
    changes.on_undone = partial(_restore, core, new, group, before, was_rebalancing)
    deadlines.start_timers(core, now_ms, changes.group)
    core.log.info("[GroupId %s] Converted the classic group to a consumer group.", group.group_id)
    return new


def _restore(
    core: Core,
    upgraded: Group,
    classic: Group,
    before: GroupValue,
    was_rebalancing: bool,
    now_ms: int,
) -> None:
    """Restore the classic group after a failed append of the upgrade. If the upgrade interrupted a
    rebalance, another one starts."""
    group = core.replace_group(upgraded)
    group.restore(before)
    group.consumer_keys = classic.consumer_keys
    for member in group.members.values():
        known = classic.members[member.member_id]
        group.update(member, known.protocols, known.rebalance_timeout_ms, known.session_timeout_ms)
        rebalance.reset_session(core, now_ms, group, member)
    if was_rebalancing and group.members:
        rebalance.prepare(core, now_ms, group, "The upgrade to a consumer group was not stored")
