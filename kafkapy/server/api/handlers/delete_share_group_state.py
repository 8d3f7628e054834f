"""DeleteShareGroupState (key 86), version 0 (KIP-932): for other brokers.

Behaviour: UNSUPPORTED_VERSION in each row unless every registered broker has share groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.shares.messages import DeleteState, StateResult
from kafkapy.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
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
    request: DeleteShareGroupStateRequest,
) -> Work[Outcome[DeleteShareGroupStateResponse]]:
    """Delete the state of share partitions."""
    if not features.has_share_groups:
        return refuse(request, ApiError(ErrorCode.UNSUPPORTED_VERSION), context.version)
    starts = [
        partial(
            shares.ask,
            shares.coordinator.handle,
            DeleteState(
                SharePartitionKey(request.group_id, topic.topic_id, row.partition),
            ),
        )
        for topic in request.topics
        for row in topic.partitions
    ]
    return (yield from gather(starts, partial(_response, request)))


def _response(
    request: DeleteShareGroupStateRequest, results: Sequence[StateResult]
) -> DeleteShareGroupStateResponse:
    found = iter(results)
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
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
    request: DeleteShareGroupStateRequest, error: ApiError, version: int
) -> DeleteShareGroupStateResponse:
    """The same error for every share partition."""
    count = sum(len(topic.partitions) for topic in request.topics)
    return _response(request, [StateResult(error.code)] * count)
