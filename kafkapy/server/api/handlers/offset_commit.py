"""OffsetCommit (key 8), versions 0-10.

Behaviour: offsets are stored in `__consumer_offsets` with acks=all before the response. A partition
that does not exist gets UNKNOWN_TOPIC_OR_PARTITION in its row. Offsets of v0, which Kafka stores in
ZooKeeper, are stored in the same way. Version notes: from v9 the generation may be a member epoch
(KIP-848); v10 has topic ids, which `topic_ids` resolves.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import CommitOffsets, CommitOffsetsResult, OffsetToCommit
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import ROW_UNITS, Work, as_work


def handle(
    groups: GroupService,
    metadata: MetadataCache,
    context: RequestContext,
    request: OffsetCommitRequest,
) -> Work[Outcome[OffsetCommitResponse]]:
    """Commit the offsets of the partitions that exist."""
    image = metadata.image
    offsets = {}
    for topic in request.topics:
        for p in topic.partitions:
            if image.partition(topic.name, p.partition_index) is not None:
                offsets[TopicPartition(topic.name, p.partition_index)] = OffsetToCommit(
                    p.committed_offset,
                    p.committed_leader_epoch,
                    p.committed_metadata,
                    p.commit_timestamp if context.version == 1 else -1,
                )
            yield ROW_UNITS // 2
        yield 1
    if not offsets:
        return (yield from _response(request, CommitOffsetsResult({})))
    commit = CommitOffsets(
        group_id=request.group_id,
        offsets=offsets,
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        may_have_member_epoch=context.version >= 9,
    )
    outcome = groups.call(
        groups.coordinator.commit_offsets, commit, lambda result: _response(request, result)
    )
    if isinstance(outcome, Pending):
        outcome.blocks = True  # a later OffsetFetch must return these offsets
    return (yield from as_work(outcome))


def _response(
    request: OffsetCommitRequest, result: CommitOffsetsResult
) -> Work[OffsetCommitResponse]:
    topics = []
    for topic in request.topics:
        rows = []
        for p in topic.partitions:
            key = TopicPartition(topic.name, p.partition_index)
            error = result.errors.get(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            rows.append(
                OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error)
            )
            yield 2
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
        yield 2
    return OffsetCommitResponse(topics=topics)


def refuse(request: OffsetCommitRequest, error: ApiError, version: int) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=error.code
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
