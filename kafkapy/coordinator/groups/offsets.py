"""OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from typing import Final

from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import fencing
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import COMPLETING_REBALANCE, EMPTY, Group
from kafkapy.coordinator.groups.messages import (
    UNKNOWN_MEMBER_ID,
    CommitOffsets,
    CommitOffsetsResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsResult,
)
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata, fits_record

_TIMESTAMP_MAX_MS: Final = 2**63 - 1


def commit_offsets(core: Core, now_ms: int, token: Token, request: CommitOffsets) -> None:
    """Append the valid rows of a commit as one batch. With a producer, they are part of its
    transaction. Kafka: `GroupCoordinator.handleCommitOffsets` and `handleTxnCommitOffsets`."""
    error = core.registry.check(request.group_id, empty_id=request.producer is None)
    group = None
    if error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        if group is None and _may_create_group(request):
            group = core.registry.get_or_create(request.group_id, core.clock.time_ms())
        error = _unknown_group_error(request) if group is None else _check(core, group, request)
    is_member = request.producer is None and group is not None and group.state is not EMPTY
    if group is not None and error is ErrorCode.NONE and is_member:
        # PreparingRebalance accepts commits too: members commit before they rejoin.
        rebalance.reset_session(core, now_ms, group, group.members[request.member_id])
        if group.state is COMPLETING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
    result = CommitOffsetsResult(dict.fromkeys(request.offsets, error))
    commits = _commits(core, request, result.errors) if error is ErrorCode.NONE else {}
    if group is None or not commits:
        core.outbox.reply(token, result)
        return
    ticket = core.outbox.hold(token)

    def stored(error: ErrorCode) -> None:
        result.errors.update(dict.fromkeys(commits, error))
        core.outbox.answer(ticket, result)

    core.store_offsets(group, commits, request.producer, stored)


def _may_create_group(request: CommitOffsets) -> bool:
    """Whether the commit creates the group. Old transactional commits of members also do."""
    is_old = request.producer is not None and not request.may_have_member_epoch
    return request.generation_id < 0 or is_old


def _unknown_group_error(request: CommitOffsets) -> ErrorCode:
    """The error of a member whose group is unknown, by the version of its request."""
    supports_group_id_not_found = request.may_have_member_epoch
    return (
        ErrorCode.GROUP_ID_NOT_FOUND
        if supports_group_id_not_found
        else ErrorCode.ILLEGAL_GENERATION
    )


def _check(core: Core, group: Group, request: CommitOffsets) -> ErrorCode:
    if group.consumer is not None:
        return fencing.check_commit(group.consumer, request, core.topics)
    if request.generation_id < 0:
        if group.state is EMPTY:
            return ErrorCode.NONE  # an administrator, or a consumer with manual assignment
        if request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None:
            is_producer = request.producer is not None  # it need not name a member
            return ErrorCode.NONE if is_producer else ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is ErrorCode.NONE and request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _commits(
    core: Core, request: CommitOffsets, errors: dict[TopicPartition, ErrorCode]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The rows that can be stored; the others get their code in `errors`."""
    time_ms = core.clock.time_ms()
    expiry_ms = None
    if request.retention_time_ms >= 0:
        expiry_ms = min(time_ms + request.retention_time_ms, _TIMESTAMP_MAX_MS)
    commits = {}
    for partition, row in request.offsets.items():
        metadata = row.metadata or ""
        if metadata and (
            len(metadata) > core.config.offset_metadata_max_bytes or not fits_record(metadata)
        ):
            errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        timestamp_ms = time_ms if row.commit_timestamp_ms < 0 else row.commit_timestamp_ms
        commits[partition] = OffsetAndMetadata(
            row.offset, row.leader_epoch, metadata, timestamp_ms, expiry_ms
        )
    return commits


def fetch_offsets(core: Core, token: Token, request: FetchOffsets) -> None:
    """Kafka: `GroupCoordinator.handleFetchOffsets`. Without a commit the offset is -1, no error."""
    result = FetchOffsetsResult(core.registry.check(request.group_id, empty_id=True))
    if result.error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        if group is not None and group.consumer is not None:
            result.error = fencing.check_fetch(group.consumer, request)
    if result.error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        partitions = request.partitions
        if partitions is None:
            partitions = [] if group is None else list(group.offsets.committed)
        for partition in partitions:
            result.offsets[partition] = _fetched_offset(group, partition, request.require_stable)
    core.outbox.reply(token, result)


def _fetched_offset(group: Group | None, partition: TopicPartition, stable: bool) -> FetchedOffset:
    if group is None:
        return FetchedOffset()
    if stable and group.offsets.is_unstable(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    commit = group.offsets.committed.get(partition)
    if commit is None:
        return FetchedOffset()
    value = commit.value
    return FetchedOffset(value.offset, value.leader_epoch, value.metadata)


def delete_offsets(core: Core, token: Token, request: DeleteOffsets) -> None:
    """The answer waits until the deletions are replicated.

    Kafka: `GroupCoordinator.handleDeleteOffsets`, which does not wait.
    """
    result = DeleteOffsetsResult(core.registry.check(request.group_id))
    group = None
    if result.error is ErrorCode.NONE:
        group = core.registry.find(request.group_id)
        if group is None or not group.holds_offsets:
            result.error = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.state is not EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            result.error = ErrorCode.NON_EMPTY_GROUP
    if group is not None and result.error is ErrorCode.NONE:
        for partition in request.partitions:
            is_subscribed = not group.is_empty and _is_subscribed(group, partition.topic)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
            result.errors[partition] = error
        deletable = [p for p, error in result.errors.items() if error is ErrorCode.NONE]
        if deletable:
            ticket = core.outbox.hold(token)

            def deleted(error: ErrorCode) -> None:
                refused = error is not ErrorCode.NONE
                core.outbox.answer(ticket, DeleteOffsetsResult(error) if refused else result)

            core.delete_offsets(group, deletable, deleted)
            return
    core.outbox.reply(token, result)


def _is_subscribed(group: Group, topic: str) -> bool:
    """Whether a member may use the topic; unreadable subscriptions count as all topics."""
    if group.consumer is not None:
        return topic in group.consumer.subscribed_topics
    return group.subscribed_topics is None or topic in group.subscribed_topics
