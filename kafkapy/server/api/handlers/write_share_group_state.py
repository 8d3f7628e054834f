"""WriteShareGroupState (key 85), versions 0-1 (KIP-932): sent by other brokers."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.shares.messages import StateResult, WriteState
from kafkapy.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_state_requests import refuse_all_rows, serve
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
    """Store changes of the state of share partitions."""
    return serve(shares, features, request, _request, _row, _response)


def _request(key: SharePartitionKey, row: PartitionData) -> WriteState:
    return WriteState(
        key,
        row.state_epoch,
        row.leader_epoch,
        row.start_offset,
        row.delivery_complete_count,
        state_batches(row.state_batches),
    )


def _row(partition: int, result: StateResult) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=result.error,
        error_message=result.message,
    )


def _response(topics: Mapping[Uuid, list[PartitionResult]]) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(topic_id=topic_id, partitions=rows)
            for topic_id, rows in topics.items()
        ]
    )


def refuse(
    request: WriteShareGroupStateRequest, error: ApiError, version: int
) -> WriteShareGroupStateResponse:
    """The same error for every share partition."""
    return refuse_all_rows(request, error, _row, _response)
