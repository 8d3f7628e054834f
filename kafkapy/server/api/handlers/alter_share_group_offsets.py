"""AlterShareGroupOffsets (key 91), version 0 (KIP-932). The group must have no members."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import UNINITIALIZED_START_OFFSET
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler


@dataclass(frozen=True)
class Handler:
    """Alters the start offsets of share groups."""

    offsets: ShareOffsets
    metadata: MetadataCache
    features: ClusterFeatures
    authorization: Authorization
    slices: SliceScheduler

    async def handle(
        self, context: RequestContext, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Reset share partitions to the requested start offsets."""
        if not self.features.has_share_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        group_id, image = request.group_id, self.metadata.image
        self.authorization.require(context, Operation.READ, ResourceKind.GROUP, group_id)
        topics, pace = [], self.slices.pace()
        offsets: dict[TopicIdPartition, int] = {}
        rows: dict[TopicIdPartition, AlterShareGroupOffsetsResponsePartition] = {}
        for topic in request.topics:
            name = topic.topic_name
            known = image.topics.get(name)
            error = ErrorCode.NONE
            topic_id = ZERO_UUID if known is None else known.topic_id
            if not self.authorization.is_allowed(context, Operation.READ, ResourceKind.TOPIC, name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                topic_id = ZERO_UUID  # an id would reveal that the topic exists
            found = AlterShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=topic_id, partitions=[]
            )
            topics.append(found)
            await pace.charge(ROW_UNITS)
            for wanted in topic.partitions:
                await pace.charge(ROW_UNITS)
                index = wanted.partition_index
                row = AlterShareGroupOffsetsResponsePartition(
                    partition_index=index, error_code=error
                )
                found.partitions.append(row)
                if error is ErrorCode.NONE and image.partition(name, index) is None:
                    row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif error is ErrorCode.NONE and wanted.start_offset < UNINITIALIZED_START_OFFSET:
                    row.error_code = ErrorCode.INVALID_REQUEST
                elif error is ErrorCode.NONE:
                    partition = TopicIdPartition(topic_id, index)
                    offsets[partition], rows[partition] = wanted.start_offset, row
        results = await self.offsets.alter(group_id, offsets)
        for partition, result in results.items():
            rows[partition].error_code = result.error
            rows[partition].error_message = result.message
        return AlterShareGroupOffsetsResponse(responses=topics)


def refuse(
    request: AlterShareGroupOffsetsRequest, error: ApiError, version: int
) -> AlterShareGroupOffsetsResponse:
    """A top-level error with no rows."""
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
