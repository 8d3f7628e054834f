"""ReadShareGroupState (key 84), version 0 (KIP-932): sent by other brokers."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.shares.messages import ReadState, StateResult
from kafkapy.protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_state_requests import refuse_all_rows, serve
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_service import ShareService
from kafkapy.server.coordinators.share_state_codec import read_batches
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import Work


def handle(
    shares: ShareService,
    features: ClusterFeatures,
    context: RequestContext,
    request: ReadShareGroupStateRequest,
) -> Work[Outcome[ReadShareGroupStateResponse]]:
    """Read the state of share partitions."""
    return serve(shares, features, request, _request, _row, _response)


def _request(key: SharePartitionKey, row: PartitionData) -> ReadState:
    return ReadState(key, row.leader_epoch)


def _row(partition: int, result: StateResult) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=result.error,
        error_message=result.message,
        state_epoch=result.state_epoch,
        start_offset=result.start_offset,
        state_batches=read_batches(result.batches),
    )


def _response(topics: Mapping[Uuid, list[PartitionResult]]) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()
        ]
    )


def refuse(
    request: ReadShareGroupStateRequest, error: ApiError, version: int
) -> ReadShareGroupStateResponse:
    """The same error for every share partition."""
    return refuse_all_rows(request, error, _row, _response)
