"""WriteTxnMarkers (key 27), versions 0-1.

Behaviour: a coordinator, or an administrator who aborts a hanging transaction, has each partition
get a marker in its log, with acks=all. Markers in `__consumer_offsets` decide on the offsets that
their producers committed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.server.handler_support import gather
from kafkapy.server.request import RequestContext


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> Any:
    """Write them; the answer waits for all."""
    write = context.broker.markers.write

    def response(errors: list[dict[TopicPartition, ErrorCode]]) -> WriteTxnMarkersResponse:
        rows = zip(request.markers, errors, strict=True)
        return WriteTxnMarkersResponse(markers=[_result(*row) for row in rows])

    return gather([partial(write, _decision(marker)) for marker in request.markers], response)


def _decision(marker: WritableTxnMarker) -> Markers:
    return Markers(
        "",
        Producer(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        _partitions(marker),
    )


def _partitions(marker: WritableTxnMarker) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    )


def _result(
    marker: WritableTxnMarker, errors: dict[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def refuse(
    request: WriteTxnMarkersRequest, error: ApiError, version: int
) -> WriteTxnMarkersResponse:
    """The same error for every partition of every marker."""
    rows = [
        _result(marker, dict.fromkeys(_partitions(marker), error.code))
        for marker in request.markers
    ]
    return WriteTxnMarkersResponse(markers=rows)
