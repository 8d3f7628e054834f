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
from kafkapy.server.request import Pending, RequestContext


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> Any:
    """Write them; the answer waits for all."""
    pending = Pending()
    results: dict[int, WritableTxnMarkerResult] = {}

    def written(number: int, errors: dict[TopicPartition, ErrorCode]) -> None:
        results[number] = _result(request.markers[number], errors)
        if len(results) == len(request.markers):
            rows = [results[n] for n in range(len(request.markers))]
            pending.complete(WriteTxnMarkersResponse(markers=rows))

    for number, marker in enumerate(request.markers):
        decision = Markers(
            "",
            Producer(marker.producer_id, marker.producer_epoch),
            marker.transaction_result,
            marker.coordinator_epoch,
            tuple(
                TopicPartition(topic.name, index)
                for topic in marker.topics
                for index in topic.partition_indexes
            ),
        )
        context.broker.markers.write(decision, partial(written, number))
    if not request.markers:
        return WriteTxnMarkersResponse()
    return pending.response if pending.done else pending


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
    rows = []
    for marker in request.markers:
        partitions = [
            TopicPartition(topic.name, index)
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        rows.append(_result(marker, dict.fromkeys(partitions, error.code)))
    return WriteTxnMarkersResponse(markers=rows)
