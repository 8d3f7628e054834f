"""DeleteShareGroupOffsets (key 92), version 0 (KIP-932). The group must have no members."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler

_NO_OFFSETS_MESSAGE = "There is no offset information to delete."


@dataclass(frozen=True)
class Handler:
    """Deletes share partitions of groups, by topic."""

    offsets: ShareOffsets
    metadata: MetadataCache
    features: ClusterFeatures
    authorization: Authorization
    slices: SliceScheduler

    async def handle(
        self, context: RequestContext, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Delete the state of each topic's share partitions."""
        if not self.features.has_share_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        group_id = request.group_id
        self.authorization.require(context, Operation.DELETE, ResourceKind.GROUP, group_id)
        rows, pace = {}, self.slices.pace()
        topic_ids: dict[Uuid, str] = {}
        for topic in request.topics:
            await pace.charge(ROW_UNITS)
            name = topic.topic_name
            known = self.metadata.image.topics.get(name)
            row = rows[name] = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
            if not self.authorization.is_allowed(context, Operation.READ, ResourceKind.TOPIC, name):
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif known is None:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                row.topic_id = known.topic_id
                topic_ids[known.topic_id] = name
        errors = await self.offsets.delete(group_id, list(topic_ids))
        for topic_id, name in topic_ids.items():
            rows[name].error_code = errors.get(topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if topic_id not in errors:
                rows[name].error_message = _NO_OFFSETS_MESSAGE
        return DeleteShareGroupOffsetsResponse(responses=list(rows.values()))


def refuse(
    request: DeleteShareGroupOffsetsRequest, error: ApiError, version: int
) -> DeleteShareGroupOffsetsResponse:
    """A top-level error with no rows."""
    return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
