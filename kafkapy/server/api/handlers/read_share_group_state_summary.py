"""ReadShareGroupStateSummary (key 87), versions 0-1 (KIP-932): for other brokers.

Behaviour: UNSUPPORTED_VERSION in each row unless every registered broker has share groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.shares.messages import ReadSummary, StateResult
from kafkapy.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_service import ShareService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import Work


def handle(
    shares: ShareService,
    features: ClusterFeatures,
    context: RequestContext,
    request: ReadShareGroupStateSummaryRequest,
) -> Work[Outcome[ReadShareGroupStateSummaryResponse]]:
    """Read the offsets of share partitions."""
    if not features.has_share_groups:
        return refuse(request, ApiError(ErrorCode.UNSUPPORTED_VERSION), context.version)
    starts = [
        partial(
            shares.ask,
            shares.coordinator.handle,
            ReadSummary(
                SharePartitionKey(request.group_id, topic.topic_id, row.partition),
            ),
        )
        for topic in request.topics
        for row in topic.partitions
    ]
    return (yield from gather(starts, partial(_response, request)))


def _response(
    request: ReadShareGroupStateSummaryRequest, results: Sequence[StateResult]
) -> ReadShareGroupStateSummaryResponse:
    found = iter(results)
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
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
        state_epoch=result.state_epoch,
        leader_epoch=result.leader_epoch,
        start_offset=result.start_offset,
        delivery_complete_count=result.delivery_complete_count,
    )


def refuse(
    request: ReadShareGroupStateSummaryRequest, error: ApiError, version: int
) -> ReadShareGroupStateSummaryResponse:
    """The same error for every share partition."""
    count = sum(len(topic.partitions) for topic in request.topics)
    return _response(request, [StateResult(error.code)] * count)
