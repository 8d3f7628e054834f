"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The coordinator assigns their partitions. Their generation is the member epoch. JoinGroup is a step
of the member's reconciliation and does not wait for others. SyncGroup fetches the result. Heartbeat
signals that another step is due. A member's topics are in the subscription of its first protocol.
Kafka: `GroupMetadataManager.classicGroup*ToConsumerGroup`.
"""

from __future__ import annotations

from functools import partial

from kafkapy.common.consumer_protocol import (
    BYTES_MAX,
    CONSUMER_PROTOCOL_TYPE,
    Subscription,
    encode_assignment,
    read_subscription,
    version_of,
)
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import deadlines, departure, member_steps
from kafkapy.coordinator.groups.consumer.assignment import by_topic_id, by_topic_name
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.downgrade import (
    downgrade,
    may_downgrade,
    replace_by_empty_classic,
)
from kafkapy.coordinator.groups.consumer.log_writes import Answer, Changes, store
from kafkapy.coordinator.groups.consumer.records import ClassicMember, MemberMetadata, MemberState
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.messages import (
    UNKNOWN_MEMBER_ID,
    Heartbeat,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    LeaveGroupResult,
    LeavingMember,
    SyncGroup,
    SyncGroupResult,
)
from kafkapy.coordinator.groups.timers import TimerKind


def maybe_convert_to_classic(
    core: Core, now_ms: int, group: Group, request: JoinGroup
) -> Group | None:
    """Convert a consumer group to a classic group if it is empty, or if this static member replaces
    its last member of the consumer protocol. None if it stays a consumer group."""
    consumer = _consumer_group(group)
    if group.is_empty:
        return replace_by_empty_classic(core, group, consumer)
    replaced = consumer.static_members.get(request.group_instance_id or "")
    if (
        replaced is None
        or not core.topics.is_known
        or consumer.members[replaced].classic is not None
        or request.member_id != UNKNOWN_MEMBER_ID
        or not may_downgrade(core, consumer, {replaced}, len(consumer.members))
    ):
        return None
    try:
        _check_protocols(core, consumer, request)
        subscription = _subscription(request)
    except ApiError:
        return None
    before = consumer.members[replaced]
    member = _member(request, subscription, before)
    all_reconciled = consumer.all_reconciled(except_members={replaced})
    classic = downgrade(core, now_ms, group, {**consumer.members, replaced: member})
    if not all_reconciled or {*member.subscribed_names} != consumer.topics_of(before):
        reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
        rebalance.prepare(core, now_ms, classic, reason)
    return classic


def _check_protocols(core: Core, group: ConsumerGroup, request: JoinGroup) -> None:
    if not core.config.may_mix_protocols:
        core.log.info(
            "Cannot join the consumer group %s with the classic protocol because the group "
            "migration is disabled.",
            group.group_id,
        )
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not group.supports_classic(request.protocol_type, [name for name, _ in request.protocols]):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def join(core: Core, now_ms: int, token: Token, group: Group, request: JoinGroup) -> None:
    """Answer with the member's epoch when its step is in the log. A member without an id first gets
    an id (KIP-394)."""
    consumer = _consumer_group(group)
    is_new = request.member_id == UNKNOWN_MEMBER_ID
    member_id = str(Uuid.random(core.random)) if is_new else request.member_id
    try:
        if not core.topics.is_known:  # topics would look deleted
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        departure.check_capacity(core, consumer, member_id, request.group_instance_id)
        _check_protocols(core, consumer, request)
        replaced = _check_instance(consumer, request)
        subscription = _subscription(request)
    except ApiError as refusal:
        core.outbox.reply(token, JoinGroupResult(request.member_id, refusal.code))
        return
    if is_new and request.group_instance_id is None and request.requires_known_member_id:
        core.outbox.reply(token, JoinGroupResult(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return
    changes = Changes(consumer)
    if replaced is not None:
        member_steps.replace(core, changes, replaced, member_id)
    member = _member(request, subscription, consumer.members.get(member_id))
    member_steps.update_member(core, changes, member_id, member)
    owned = by_topic_id(core.topics, subscription.owned)
    after = member_steps.advance(core, now_ms, changes, member_id, owned)
    deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_JOIN, consumer, member_id)
    deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_SYNC, consumer, member_id)
    deadlines.schedule_rebalance_timeout(core, now_ms, TimerKind.CONSUMER_SYNC, consumer, member_id)
    result = JoinGroupResult(
        member_id,
        generation_id=after.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0][0],
    )
    store(core, group, changes, Answer(token, result, partial(JoinGroupResult, member_id)))


def _consumer_group(group: Group) -> ConsumerGroup:
    assert group.consumer is not None, f"{group.group_id} is a classic group"
    return group.consumer


def _check_instance(group: ConsumerGroup, request: JoinGroup) -> str | None:
    """The id of the static member that the caller replaces, if any.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id.
    """
    instance_id = request.group_instance_id
    if instance_id is None:
        return None
    if request.member_id == UNKNOWN_MEMBER_ID:
        return group.static_members.get(instance_id)
    departure.check_static_member(group, request.member_id, instance_id)
    return None


def _subscription(request: JoinGroup) -> Subscription:
    data = request.protocols[0][1]
    if len(data) > BYTES_MAX:
        message = f"A consumer's subscription has {BYTES_MAX} bytes at most."
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    try:
        return read_subscription(data)
    except ValueError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _member(
    request: JoinGroup, subscription: Subscription, before: MemberMetadata | None
) -> MemberMetadata:
    known_rack = None if before is None else before.rack_id
    return MemberMetadata(
        request.group_instance_id,
        subscription.rack_id or known_rack,
        request.client_id,
        request.client_host,
        tuple(sorted({*subscription.topics})),
        None,
        request.effective_rebalance_timeout_ms,
        None if before is None else before.server_assignor,
        ClassicMember(request.session_timeout_ms, tuple(request.protocols)),
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> ClassicMember:
    """Check the member and the generation of a request, and return the classic member.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    if instance_id is None:
        departure.check_dynamic_member(group, member_id)
    else:
        departure.check_static_member(group, member_id, instance_id)
    classic = group.members[member_id].classic
    if classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation_id != group.current_of(member_id).member_epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return classic


def sync(core: Core, now_ms: int, token: Token, group: Group, request: SyncGroup) -> None:
    """Answer with the member's partitions when they are in the log."""
    consumer, member_id = _consumer_group(group), request.member_id
    try:
        if not core.topics.is_known:  # clients retry a load error in JoinGroup, not in SyncGroup
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        classic = _classic_member(
            consumer, member_id, request.group_instance_id, request.generation_id
        )
        _check_sync(core, now_ms, consumer, classic, request)
    except ApiError as refusal:
        core.outbox.reply(token, SyncGroupResult(refusal.code))
        return
    deadlines.cancel_rebalance_timeout(core, TimerKind.CONSUMER_SYNC, consumer, member_id)
    deadlines.reset_session(core, now_ms, consumer, member_id)
    partitions = by_topic_name(core.topics, consumer.current_of(member_id).assigned)
    version = version_of(classic.protocols[0][1])
    result = SyncGroupResult(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(partitions, version),
    )
    store(core, group, Changes(consumer), Answer(token, result, SyncGroupResult))


def _check_sync(
    core: Core, now_ms: int, group: ConsumerGroup, classic: ClassicMember, request: SyncGroup
) -> None:
    expected = (CONSUMER_PROTOCOL_TYPE, classic.protocols[0][0])
    requested = (request.protocol_type, request.protocol_name)
    if any(
        value not in (None, expected_value)
        for value, expected_value in zip(requested, expected, strict=True)
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    current = group.current_of(request.member_id)
    # A member that must revoke partitions has joined already. It rejoins after the revocation.
    has_to_revoke = current.state is MemberState.UNREVOKED_PARTITIONS
    if group.epoch > current.member_epoch and not has_to_revoke:
        deadlines.schedule_rebalance_timeout(
            core, now_ms, TimerKind.CONSUMER_JOIN, group, request.member_id
        )
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)


def heartbeat(core: Core, now_ms: int, group: Group, request: Heartbeat) -> ErrorCode:
    """Return REBALANCE_IN_PROGRESS if the member must rejoin, within its rebalance timeout."""
    consumer, member_id = _consumer_group(group), request.member_id
    try:
        _classic_member(consumer, member_id, request.group_instance_id, request.generation_id)
    except ApiError as refusal:
        return refusal.code
    deadlines.reset_session(core, now_ms, consumer, member_id)
    if not consumer.must_rejoin(member_id):
        return ErrorCode.NONE
    deadlines.schedule_rebalance_timeout(core, now_ms, TimerKind.CONSUMER_JOIN, consumer, member_id)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(core: Core, now_ms: int, token: Token, group: Group, request: LeaveGroup) -> None:
    """Remove members of either protocol."""
    consumer, result = _consumer_group(group), LeaveGroupResult()
    found: list[str] = []
    for leaving in request.members:
        error = ErrorCode.NONE
        try:
            found.append(_leaving_member_id(consumer, leaving))
        except ApiError as refusal:
            error = refusal.code
        result.members.append((leaving, error))
    if found:
        reasons = ", ".join(each.reason or "not provided" for each in request.members)
        core.log.info(
            "[GroupId %s] Members %s left through explicit LeaveGroup request; client reason: %s",
            group.group_id,
            ", ".join(found),
            reasons,
        )
        departure.remove(core, now_ms, group, found, Answer(token, result, LeaveGroupResult))
    else:
        core.outbox.reply(token, result)


def _leaving_member_id(group: ConsumerGroup, leaving: LeavingMember) -> str:
    """The id of a leaving member. Administrators name static members by instance id (KIP-345)."""
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if not group.holds_offsets:  # members of share groups leave with a heartbeat only
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if instance_id is None:
        departure.check_dynamic_member(group, member_id)
        return member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.static_members.get(instance_id, UNKNOWN_MEMBER_ID)
    departure.check_static_member(group, member_id, instance_id)
    return member_id
