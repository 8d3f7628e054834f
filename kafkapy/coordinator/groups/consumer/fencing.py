"""Fencing of commits and fetches of offsets by member epoch."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.assignment import by_topic_id, partitions_of
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.records import CurrentAssignment
from kafkapy.coordinator.groups.messages import UNKNOWN_MEMBER_ID, CommitOffsets, FetchOffsets
from kafkapy.coordinator.groups.topic_source import TopicSource


def check_commit(group: ConsumerGroup, request: CommitOffsets, topics: TopicSource) -> ErrorCode:
    """Kafka: `ConsumerGroup.validateOffsetCommit`. Old transactional commits have no epochs."""
    if not group.holds_offsets:
        return ErrorCode.GROUP_ID_NOT_FOUND
    has_no_member_id = request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
    is_transactional = request.producer is not None
    if request.generation_id < 0 and (not group.members or (is_transactional and has_no_member_id)):
        return ErrorCode.NONE  # an administrator, or a producer that names no member
    if request.member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_classic = group.members[request.member_id].classic is not None
    if not (is_transactional or is_classic or request.may_have_member_epoch):
        return ErrorCode.UNSUPPORTED_VERSION
    if _owned_since_commit_epoch(group.current_of(request.member_id), request, topics):
        return ErrorCode.NONE
    error = _check_epoch(group, request.member_id, request.generation_id)
    supports_epoch_errors = request.may_have_member_epoch or not is_transactional
    return error if supports_epoch_errors or not error else ErrorCode.ILLEGAL_GENERATION


def _owned_since_commit_epoch(
    current: CurrentAssignment, request: CommitOffsets, topics: TopicSource
) -> bool:
    """Whether a commit with an older epoch is valid: the member has had the partitions since that
    epoch (KIP-1251). Its commit crossed the answer to a heartbeat."""
    epoch = request.generation_id
    if epoch >= current.member_epoch:
        return False
    owned = {*partitions_of(current.assigned), *partitions_of(current.revoking)}
    owned_since_epoch = {each for each in owned if current.assignment_epoch(each) <= epoch}
    committed = set(partitions_of(by_topic_id(topics, request.offsets)))
    return len(committed) == len(request.offsets) and committed <= owned_since_epoch


def check_fetch(group: ConsumerGroup, request: FetchOffsets) -> ErrorCode:
    """Kafka: `ConsumerGroup.validateOffsetFetch`."""
    if not group.holds_offsets:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if request.member_id is None and request.member_epoch < 0:
        return ErrorCode.NONE
    if request.member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _check_epoch(group, request.member_id, request.member_epoch)


def _check_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    if epoch == group.current_of(member_id).member_epoch:
        return ErrorCode.NONE
    is_classic = group.members[member_id].classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
