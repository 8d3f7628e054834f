"""WriteShareGroupState (key 85), versions 0-1 (KIP-932): for other brokers.

Behaviour: UNSUPPORTED_VERSION in each row unless every registered broker has share groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.shares.messages import StateResult, WriteState
from kafkapy.protocol.messages.write_share_group_state import (
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_service import ShareService
from kafkapy.server.coordinators.share_state_codec import state_batches
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import Work


def handle(
    shares: ShareService,
    features: ClusterFeatures,
    context: RequestContext,
    request: WriteShareGroupStateRequest,
) -> Work[Outcome[WriteShareGroupStateResponse]]:
    """Store changes of share partitions."""
    if not features.has_share_groups:
        return refuse(request, ApiError(ErrorCode.UNSUPPORTED_VERSION), context.version)
    starts = [
        partial(
            shares.ask,
            shares.coordinator.handle,
            WriteState(
                SharePartitionKey(request.group_id, topic.topic_id, row.partition),
                row.state_epoch,
                row.leader_epoch,
                row.start_offset,
                row.delivery_complete_count,
                state_batches(row.state_batches),
            ),
        )
        for topic in request.topics
        for row in topic.partitions
    ]
    return (yield from gather(starts, partial(_response, request)))


def _response(
    request: WriteShareGroupStateRequest, results: Sequence[StateResult]
) -> WriteShareGroupStateResponse:
    found = iter(results)
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic_id=topic.topic_id,
                partitions=[_row(row.partition, next(found)) for row in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _row(partition: int, result: StateResult) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=result.error,
        error_message=result.message,
    )


def refuse(
    request: WriteShareGroupStateRequest, error: ApiError, version: int
) -> WriteShareGroupStateResponse:
    """The same error for every share partition."""
    count = sum(len(topic.partitions) for topic in request.topics)
    return _response(request, [StateResult(error.code)] * count)
