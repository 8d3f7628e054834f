"""ConsumerGroupHeartbeat: one request to join, to stay, to reconcile and to leave.

A heartbeat that is in order goes through the steps of `_stay`: the member's record, the group's
epoch, the target of that epoch, the member's own assignment. Each writes what has changed.
Kafka: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer import deadlines, departure
from kafkapy.coordinator.groups.consumer.assignment import NOTHING, is_subset
from kafkapy.coordinator.groups.consumer.consumer_group import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    member_keys,
)
from kafkapy.coordinator.groups.consumer.group_epoch import (
    bump_epoch,
    forget_unused_regexes,
    refresh_regexes,
    refresh_topics,
    update_target,
)
from kafkapy.coordinator.groups.consumer.log_writes import Changes, store
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.reconciliation import reconcile
from kafkapy.coordinator.groups.consumer.records import (
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.record_codec import fits_record


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
            departure.leave(core, token, request, found.group)
        else:
            _stay(core, now_ms, token, request, found)
    except ApiError as refusal:
        # Nothing has changed: every check comes before the first change.
        message = None if refusal.message == refusal.code.name else refusal.message
        result = ConsumerHeartbeatResult(refusal.code, message)
        core.outbox.reply(token, result)


# Checks.


def _check_request(core: Core, request: ConsumerHeartbeat) -> None:
    needs_id = request.must_name_itself or request.member_epoch != 0
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


class _Found(NamedTuple):
    """The group of a request: new ones are not registered yet."""

    group: Group | None
    consumer: ConsumerGroup


def _find(core: Core, request: ConsumerHeartbeat) -> _Found:
    """The group; the first member makes it, or takes an empty classic group over.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, also for a classic group with members.
    """
    group_id = request.group_id
    group = core.registry.find(group_id)
    if group is not None and group.consumer is not None:
        return _Found(group, group.consumer)
    if group is not None and not (group.is_empty and request.member_epoch == 0):
        message = f"Group {group_id} is not a consumer group."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)
    if request.member_epoch != 0:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return _Found(group, ConsumerGroup(group_id))


def _check_member(core: Core, request: ConsumerHeartbeat, group: ConsumerGroup) -> str | None:
    """Whether this member may go on; the id of the static member that it replaces.

    Raises:
        ApiError: the refusal.
    """
    member_id, instance_id = request.member_id, request.instance_id
    _check_room(core, request, group)
    if request.member_epoch == 0:
        return _check_joining(request, group)
    if instance_id is None:
        departure.check_dynamic(group, member_id)
    else:
        departure.check_static(group, member_id, instance_id)
    _check_epoch(request, group.current_of(member_id))
    return None


def _check_room(core: Core, request: ConsumerHeartbeat, group: ConsumerGroup) -> None:
    limit = core.config.group_consumer_max_size
    is_known = request.member_id in group.members or request.instance_id in group.static_members
    if len(group.members) >= limit and not is_known:
        message = f"The consumer group has reached its maximum capacity of {limit} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def _check_joining(request: ConsumerHeartbeat, group: ConsumerGroup) -> str | None:
    instance_id = request.instance_id
    holder = None if instance_id is None else group.static_members.get(instance_id)
    if holder is None or holder == request.member_id:
        return None
    if group.current_of(holder).member_epoch != STATIC_LEAVE_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {instance_id} cannot join the "
            f"group because the instance id is owned by {holder} member.",
        )
    return holder


def _check_epoch(request: ConsumerHeartbeat, current: CurrentAssignment) -> None:
    """A member that missed the last answer comes with the epoch before it, and with no partition
    that it was not given."""
    epoch, known = request.member_epoch, current.member_epoch
    if epoch > known:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}). The member must abandon all its partitions and "
            "rejoin.",
        )
    missed = (
        epoch == current.previous_epoch
        and request.owned is not None
        and is_subset(request.owned, current.assigned)
    )
    if epoch < known and not missed:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by "
            f"the group coordinator ({known}). The member must abandon all its partitions and "
            "rejoin.",
        )


# Steps.


def _stay(core: Core, now_ms: int, token: Token, request: ConsumerHeartbeat, found: _Found) -> None:
    consumer = found.consumer
    replaced = _check_member(core, request, consumer)
    if request.subscribed_regex:
        core.topics.pattern(request.subscribed_regex)  # raises if it is none
    if not request.member_id:
        request.member_id = str(Uuid.random(core.random))
    member_id = request.member_id
    changes = Changes(consumer)
    group = _register(core, found, changes)
    if replaced is not None:
        _replace(core, changes, replaced, member_id)
    before = consumer.current_of(member_id)
    _update_group(core, changes, request)
    after = reconcile(
        before,
        consumer.target_of(member_id),
        partial(consumer.is_free, member_id),
        NOTHING if request.member_epoch == 0 else request.owned,
    )
    if after != before:
        changes.put(RecordType.CURRENT, after, member_id)
        _note_revocation(core, now_ms, consumer, member_id, after)
    deadlines.reset_session(core, now_ms, consumer.group_id, member_id)
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
    store(core, group, changes, token, result)


def _register(core: Core, found: _Found, changes: Changes) -> Group:
    """The group, as one of this protocol."""
    group = found.group
    if group is None:
        group = core.registry.get_or_create(changes.group.group_id, core.clock.time_ms())
    elif not changes.group.epoch:
        changes.erase_classic()  # it may have been a classic group
    if group.consumer is None:
        group.end_classic()
        group.consumer = changes.group
    return group


def _replace(core: Core, changes: Changes, old_id: str, new_id: str) -> None:
    """Give a static member that returns with another id the state of the old one (KIP-345)."""
    group = changes.group
    member, target = group.members[old_id], group.target.get(old_id)
    current = group.current_of(old_id)._replace(member_epoch=0, previous_epoch=0)
    deadlines.cancel_timers(core, group.group_id, old_id)
    for key in member_keys(group.group_id, old_id):
        changes.erase(key)
    changes.put(RecordType.MEMBER, member, new_id)
    changes.put(RecordType.TARGET, NOTHING if target is None else target, new_id)
    changes.put(RecordType.CURRENT, current, new_id)


def _update_group(core: Core, changes: Changes, request: ConsumerHeartbeat) -> None:
    """The member's record, the topics, the group's epoch, and its target."""
    group = changes.group
    before = group.members.get(request.member_id)
    member = _member(request, before)
    if member != before:
        changes.put(RecordType.MEMBER, member, request.member_id)
    changed = before is None or _subscription(before) != _subscription(member)
    if changed:
        forget_unused_regexes(changes)
    regexes_changed = refresh_regexes(core, changes, member.subscribed_regex, request.is_visible)
    if changed or regexes_changed or group.seen_version != core.topics.version:
        changed |= refresh_topics(core, changes)
    if changed:
        bump_epoch(changes)
    if group.epoch > group.target_epoch:
        update_target(core, changes)


def _subscription(member: MemberMetadata) -> tuple[tuple[str, ...], str | None, str | None]:
    """The part of a member that the target depends on."""
    return member.subscribed_names, member.subscribed_regex, member.server_assignor


def _member(request: ConsumerHeartbeat, before: MemberMetadata | None) -> MemberMetadata:
    """The member as it is known after its heartbeat."""
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


def _note_revocation(
    core: Core, now_ms: int, group: ConsumerGroup, member_id: str, after: CurrentAssignment
) -> None:
    """A member that must revoke has its rebalance timeout for that."""
    if after.state is MemberState.UNREVOKED_PARTITIONS:
        timeout_ms = group.members[member_id].rebalance_timeout_ms
        deadlines.limit_revocation(core, now_ms + timeout_ms, group.group_id, member_id)
    else:
        deadlines.end_revocation(core, group.group_id, member_id)
