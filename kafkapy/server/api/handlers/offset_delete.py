"""OffsetDelete (key 47), version 0 (KIP-496)."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import DeleteOffsets, DeleteOffsetsResult
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.group_service import GroupService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, Work


def handle(
    groups: GroupService,
    metadata: MetadataCache,
    authorization: Authorization,
    context: RequestContext,
    request: OffsetDeleteRequest,
) -> Work[Outcome[OffsetDeleteResponse]]:
    """Delete committed offsets of topics that no member of the group reads.

    A partition must exist (`KafkaApis.handleOffsetDeleteRequest`).
    """
    image = metadata.image
    refused: dict[TopicPartition, ErrorCode] = {}
    allowed: dict[TopicPartition, None] = {}
    for topic in request.topics:
        may_read = authorization.is_allowed(context, Operation.READ, ResourceKind.TOPIC, topic.name)
        yield ROW_UNITS
        for p in topic.partitions:
            partition = TopicPartition(topic.name, p.partition_index)
            if not may_read:
                refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(*partition) is None:
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                allowed[partition] = None
            yield 1

    def respond(result: DeleteOffsetsResult) -> OffsetDeleteResponse:
        if not result.error:
            result.errors |= refused
        return _response(result)

    coordinator_request = DeleteOffsets(request.group_id, list(allowed))
    return groups.call(groups.coordinator.delete_offsets, coordinator_request, respond)


def _response(result: DeleteOffsetsResult) -> OffsetDeleteResponse:
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (topic, index), error in result.errors.items():
        row = topics.setdefault(topic, OffsetDeleteResponseTopic(name=topic, partitions=[]))
        row.partitions.append(
            OffsetDeleteResponsePartition(partition_index=index, error_code=error)
        )
    return OffsetDeleteResponse(error_code=result.error, topics=list(topics.values()))
