"""ShareGroupHeartbeat: one request to join, to stay, and to leave.

The steps are those of a consumer group's heartbeat, with two differences: a member gets its target
at once, and partitions are assigned only when the share coordinator has initialized their state.
Kafka: `GroupMetadataManager.shareGroupHeartbeat`.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer import deadlines, departure
from kafkapy.coordinator.groups.consumer.assignment import EMPTY_ASSIGNMENT
from kafkapy.coordinator.groups.consumer.assignors import AssignedMember
from kafkapy.coordinator.groups.consumer.group_epoch import bump_epoch, refresh_topics
from kafkapy.coordinator.groups.consumer.log_writes import Answer, Changes, store
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.consumer.reconciliation import reconcile
from kafkapy.coordinator.groups.consumer.records import (
    CurrentAssignment,
    MemberMetadata,
    RecordType,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.record_codec import fits_record, names_fit_record
from kafkapy.coordinator.groups.share import states
from kafkapy.coordinator.groups.share.assignor import assign_shares
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat
from kafkapy.coordinator.groups.share.share_group import ShareGroup

_LEAVE_EPOCH: Final = -1


def share_heartbeat(core: Core, now_ms: int, token: Token, request: ShareHeartbeat) -> None:
    """Refuse at once, or answer when the changes are in the log."""
    try:
        _check_request(request)
        error = core.registry.check(request.group_id)
        if error is ErrorCode.NONE and not core.topics.is_known:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # topics would look deleted
        if error is not ErrorCode.NONE:
            raise ApiError(error)
        kind = "Group" if request.member_epoch == _LEAVE_EPOCH else "Share group"
        may_create = request.member_epoch == 0
        group, shares = states.find(core, request.group_id, may_create=may_create, kind=kind)
        if request.member_epoch == _LEAVE_EPOCH:
            leaving = ConsumerHeartbeat(request.group_id, request.member_id, _LEAVE_EPOCH)
            assert group is not None, "a new group has no member that could leave"
            departure.leave(core, now_ms, token, leaving, group)
        else:
            _join_or_stay(core, now_ms, token, request, group, shares)
    except ApiError as refusal:
        # Nothing has changed: every check comes before the first change.
        core.outbox.reply(token, ConsumerHeartbeatResult(refusal.code, refusal.own_message))


def _check_request(request: ShareHeartbeat) -> None:
    if not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_names:
        raise _invalid("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < _LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if not fits_record(request.member_id):
        raise _invalid("MemberId has 32767 bytes at most.")
    if not names_fit_record(request.subscribed_names):
        raise _invalid("SubscribedTopicNames have 1 MiB at most.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_member(core: Core, request: ShareHeartbeat, group: ShareGroup) -> None:
    """Require that the group has room, and that the member and its epoch are valid.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID or FENCED_MEMBER_EPOCH.
    """
    limit, member_id = core.config.group_share_max_size, request.member_id
    if len(group.members) >= limit and member_id not in group.members:
        message = f"The share group has reached its maximum capacity of {limit} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    if request.member_epoch == 0:
        return
    departure.check_dynamic_member(group, member_id)
    current = group.current_of(member_id)
    epoch, known = request.member_epoch, current.member_epoch
    if epoch > known or (epoch < known and epoch != current.previous_epoch):
        size = "greater" if epoch > known else "smaller"
        suffix = f", and it does not match the previous member epoch ({current.previous_epoch})"
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {size} member epoch ({epoch}) than the one known by the "
            f"group coordinator ({known}){suffix if epoch < known else ''}. The member must abandon"
            " all its partitions and rejoin.",
        )


def _join_or_stay(
    core: Core,
    now_ms: int,
    token: Token,
    request: ShareHeartbeat,
    group: Group | None,
    shares: ShareGroup,
) -> None:
    _check_member(core, request, shares)
    member_id = request.member_id
    changes = Changes(shares)
    group = states.register(core, group, shares)
    before = shares.current_of(member_id)
    _update_group(core, changes, shares, request)
    states.request_initialization(core, changes, shares)
    after = reconcile(before, shares.target_of(member_id), lambda _: True, EMPTY_ASSIGNMENT)
    if after != before:
        changes.put(RecordType.CURRENT, after, member_id)
    deadlines.reset_session(core, now_ms, shares, member_id)
    default = core.config.group_share_heartbeat_interval_ms
    name = "share.heartbeat.interval.ms"
    wants_assignment = request.member_epoch == 0 or request.subscribed_names is not None
    wants_assignment |= _assignment_may_differ(before, after, request.member_epoch)
    result = ConsumerHeartbeatResult(
        member_id=member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=core.own_config(shares.group_id, name, default),
        assignment=after.assigned if wants_assignment else None,
    )
    store(core, group, changes, Answer(token, result))


def _assignment_may_differ(before: CurrentAssignment, after: CurrentAssignment, epoch: int) -> bool:
    """Whether the member's assignment may differ from the one that it last received."""
    return after.assigned != before.assigned or epoch != after.member_epoch


def _update_group(core: Core, changes: Changes, group: ShareGroup, request: ShareHeartbeat) -> None:
    """Update the member's record, the topics, the group's epoch, and its target."""
    before = group.members.get(request.member_id)
    member = _member(request, before)
    if member != before:
        changes.put(RecordType.MEMBER, member, request.member_id)
    changed = before is None or before.subscribed_names != member.subscribed_names
    if changed or group.metadata_version != core.topics.version:
        changed |= refresh_topics(core, changes)
        states.remove_deleted_topics(core, changes, group)
    if changed or (group.epoch == group.target_epoch and group.has_unassigned):
        bump_epoch(changes)
    if group.epoch > group.target_epoch:
        _update_target(core, changes, group)


def _member(request: ShareHeartbeat, before: MemberMetadata | None) -> MemberMetadata:
    known = before or MemberMetadata(None, None, "", "", (), None, -1, None)
    names = request.subscribed_names
    return known._replace(
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_names=known.subscribed_names if names is None else tuple(sorted({*names})),
    )


def _update_target(core: Core, changes: Changes, group: ShareGroup) -> None:
    """Compute the target of the group's epoch."""
    topics = {topic.topic_id for topic in group.topics.values()}
    initialized = {t: indexes for t, indexes in group.states.initialized.items() if t in topics}
    members = {
        member_id: AssignedMember(
            None,
            frozenset(
                group.topics[name].topic_id
                for name in member.subscribed_names
                if name in group.topics
            ),
            group.target.get(member_id, EMPTY_ASSIGNMENT),
        )
        for member_id, member in group.members.items()
    }
    for member_id, assignment in assign_shares(members, initialized).items():
        if assignment != group.target.get(member_id):
            changes.put(RecordType.TARGET, assignment, member_id)
    changes.put(RecordType.TARGET_EPOCH, group.epoch)
    core.log.info(
        "[GroupId %s] Computed a new target assignment for epoch %d with 'simple' assignor",
        group.group_id,
        group.epoch,
    )
