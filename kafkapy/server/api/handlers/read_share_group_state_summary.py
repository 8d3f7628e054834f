"""ReadShareGroupStateSummary (key 87), versions 0-1 (KIP-932): sent by other brokers."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.shares.messages import ReadSummary, StateResult
from kafkapy.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_state_requests import refuse_all_rows, serve
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
    return serve(shares, features, request, _request, _row, _response)


def _request(key: SharePartitionKey, row: PartitionData) -> ReadSummary:
    return ReadSummary(key)


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


def _response(topics: Mapping[Uuid, list[PartitionResult]]) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(topic_id=topic_id, partitions=rows)
            for topic_id, rows in topics.items()
        ]
    )


def refuse(
    request: ReadShareGroupStateSummaryRequest, error: ApiError, version: int
) -> ReadShareGroupStateSummaryResponse:
    """The same error for every share partition."""
    return refuse_all_rows(request, error, _row, _response)
