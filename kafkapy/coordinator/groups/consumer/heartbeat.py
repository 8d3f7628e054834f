"""ConsumerGroupHeartbeat: one request to join, to stay, to reconcile and to leave.

A valid heartbeat goes through the steps of `member_steps`: the member's record, the group's epoch,
the target of that epoch, the member's own assignment. Each step writes its changes.
Kafka: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer import departure, member_steps
from kafkapy.coordinator.groups.consumer.assignment import EMPTY_ASSIGNMENT, is_subset
from kafkapy.coordinator.groups.consumer.consumer_group import STATIC_LEAVE_EPOCH, ConsumerGroup
from kafkapy.coordinator.groups.consumer.log_writes import Answer, Changes, store
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.records import CurrentAssignment, MemberMetadata
from kafkapy.coordinator.groups.consumer.upgrade import consumer_group_from_classic, upgrade
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.record_codec import fits_record, names_fit_record


def consumer_heartbeat(core: Core, now_ms: int, token: Token, request: ConsumerHeartbeat) -> None:
    """Refuse at once, or answer when the changes are in the log."""
    try:
        _check_request(core, request)
        error = core.registry.check(request.group_id)
        if error is ErrorCode.NONE and not core.topics.is_known:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # topics would look deleted
        if error is not ErrorCode.NONE:
            raise ApiError(error)
        found = _find(core, request)
        if request.member_epoch < 0:
            assert found.group is not None, "a new group has no member that could leave"
            departure.leave(core, now_ms, token, request, found.group)
        else:
            _join_or_stay(core, now_ms, token, request, found)
    except ApiError as refusal:
        # Nothing has changed: every check comes before the first change.
        result = ConsumerHeartbeatResult(refusal.code, refusal.own_message)
        core.outbox.reply(token, result)


# Checks.


def _check_request(core: Core, request: ConsumerHeartbeat) -> None:
    needs_id = request.requires_member_id or request.member_epoch != 0
    if needs_id and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    assignors = core.config.assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    if not fits_record(request.member_id, request.subscribed_regex):
        raise _invalid("MemberId and SubscribedTopicRegex have 32767 bytes at most.")
    if not names_fit_record(request.subscribed_names):
        raise _invalid("SubscribedTopicNames have 1 MiB at most.")


def _check_join(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_names is None and request.subscribed_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


class _FoundGroup(NamedTuple):
    """The group of a request. A new group is not registered yet."""

    group: Group | None
    consumer: ConsumerGroup


def _find(core: Core, request: ConsumerHeartbeat) -> _FoundGroup:
    """Find the group of a request. A member that joins creates it, or upgrades a classic group.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, also for a classic group that cannot be upgraded.
    """
    group_id = request.group_id
    group = core.registry.find(group_id)
    if group is not None and group.consumer is not None and group.consumer.holds_offsets:
        return _FoundGroup(group, group.consumer)
    if request.member_epoch != 0 or (group is not None and group.consumer is not None):
        kind = "Group" if request.member_epoch < 0 else "Consumer group"
        message = f"{kind} {group_id} not found."
        if group is not None:
            message = f"Group {group_id} is not a consumer group."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)
    return _FoundGroup(
        group,
        ConsumerGroup(group_id) if group is None else consumer_group_from_classic(core, group),
    )


def _check_member(core: Core, request: ConsumerHeartbeat, group: ConsumerGroup) -> str | None:
    """Check the member of a request. Returns the id of the static member that it replaces.

    Raises:
        ApiError: the request is refused.
    """
    member_id, instance_id = request.member_id, request.instance_id
    departure.check_capacity(core, group, member_id, instance_id)
    if request.member_epoch == 0:
        return _check_joining(request, group)
    if instance_id is None:
        departure.check_dynamic_member(group, member_id)
    else:
        departure.check_static_member(group, member_id, instance_id)
    _check_epoch(request, group.current_of(member_id))
    return None


def _check_joining(request: ConsumerHeartbeat, group: ConsumerGroup) -> str | None:
    instance_id = request.instance_id
    holder = None if instance_id is None else group.static_members.get(instance_id)
    if holder is None or holder == request.member_id:
        return None
    if (
        group.members[holder].classic is None
        and group.current_of(holder).member_epoch != STATIC_LEAVE_EPOCH
    ):
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {instance_id} cannot join the "
            f"group because the instance id is owned by {holder} member.",
        )
    return holder


def _check_epoch(request: ConsumerHeartbeat, current: CurrentAssignment) -> None:
    """Check the member epoch. A member that missed the last answer may send the previous epoch,
    with partitions of its assignment only."""
    epoch, known = request.member_epoch, current.member_epoch
    if epoch > known:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}). The member must abandon all its partitions and "
            "rejoin.",
        )
    missed_answer = (
        epoch == current.previous_epoch
        and request.owned is not None
        and is_subset(request.owned, current.assigned)
    )
    if epoch < known and not missed_answer:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}). The member must abandon all its partitions and "
            "rejoin.",
        )


# Steps.


def _join_or_stay(
    core: Core, now_ms: int, token: Token, request: ConsumerHeartbeat, found: _FoundGroup
) -> None:
    consumer = found.consumer
    replaced = _check_member(core, request, consumer)
    if request.subscribed_regex:
        core.topics.pattern(request.subscribed_regex)  # raises if it is invalid
    if not request.member_id:
        request.member_id = str(Uuid.random(core.random))
    member_id = request.member_id
    changes = Changes(consumer)
    group = _register(core, now_ms, found, changes)
    if replaced is not None:
        member_steps.replace(core, changes, replaced, member_id)
    before = consumer.current_of(member_id)
    member = _member(request, consumer.members.get(member_id))
    member_steps.update_member(core, changes, member_id, member, request.is_visible)
    owned = EMPTY_ASSIGNMENT if request.member_epoch == 0 else request.owned
    after = member_steps.advance(core, now_ms, changes, member_id, owned)
    wants_assignment = request.is_full or after.assigned != before.assigned
    result = ConsumerHeartbeatResult(
        member_id=member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=core.own_config(
            consumer.group_id,
            "consumer.heartbeat.interval.ms",
            core.config.group_consumer_heartbeat_interval_ms,
        ),
        assignment=after.assigned if wants_assignment else None,
    )
    store(core, group, changes, Answer(token, result))


def _register(core: Core, now_ms: int, found: _FoundGroup, changes: Changes) -> Group:
    """Register the group as a consumer group, and return it."""
    group = found.group
    if group is None:
        group = core.registry.get_or_create(changes.group.group_id, core.clock.time_ms())
    elif group.consumer is None:
        return upgrade(core, now_ms, group, changes)
    group.consumer = changes.group
    return group


def _member(request: ConsumerHeartbeat, before: MemberMetadata | None) -> MemberMetadata:
    """The member's metadata after its heartbeat."""
    known = before or MemberMetadata(None, None, "", "", (), None, -1, None)
    names, regex = request.subscribed_names, request.subscribed_regex
    timeout_ms = request.rebalance_timeout_ms
    return MemberMetadata(
        known.instance_id if request.instance_id is None else request.instance_id,
        known.rack_id if request.rack_id is None else request.rack_id,
        request.client_id,
        request.client_host,
        known.subscribed_names if names is None else tuple(sorted({*names})),
        known.subscribed_regex if regex is None else regex or None,
        known.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        known.server_assignor if request.server_assignor is None else request.server_assignor,
    )
