"""Fencing of commits and fetches of offsets by member epoch."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.messages import UNKNOWN_MEMBER_ID, CommitOffsets, FetchOffsets


def check_commit(group: ConsumerGroup, request: CommitOffsets) -> ErrorCode:
    """Kafka: `ConsumerGroup.validateOffsetCommit`. Transactional commits know generations only."""
    if not group.holds_offsets:
        return ErrorCode.GROUP_ID_NOT_FOUND
    is_unnamed = request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
    is_transactional = request.producer is not None
    if request.generation_id < 0 and (not group.members or (is_transactional and is_unnamed)):
        return ErrorCode.NONE  # an administrator, or a producer that does not say for whom
    if request.member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_classic = group.members[request.member_id].classic is not None
    if not (is_transactional or is_classic or request.names_member_epoch):
        return ErrorCode.UNSUPPORTED_VERSION
    error = _check_epoch(group, request.member_id, request.generation_id)
    return ErrorCode.ILLEGAL_GENERATION if error and is_transactional else error


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
