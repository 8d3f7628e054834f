"""WriteTxnMarkers (key 27), versions 0-1.

Behaviour: writes a marker to the log of each partition, with acks=all, for a coordinator, or an
administrator that aborts a hanging transaction. Markers in `__consumer_offsets` commit or drop the
offsets of their producers. A partition that is named twice for a marker gets it once.
"""

from __future__ import annotations

from functools import partial
from typing import Final

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
from kafkapy.server.api.handler_support import gather
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import CHANGE_UNITS, ROW_UNITS, Work, chunks

Errors = dict[TopicPartition, ErrorCode]
_MARKERS_AT_ONCE: Final = 16


def handle(
    markers: MarkerWriter, context: RequestContext, request: WriteTxnMarkersRequest
) -> Work[Outcome[WriteTxnMarkersResponse]]:
    """Write markers, a few at a time. The response waits for all."""
    write = markers.write
    starts, part_counts = [], []
    for marker in request.markers:
        partitions = yield from _partitions(marker)
        few = range(0, len(partitions), _MARKERS_AT_ONCE)
        parts = [partitions[start : start + _MARKERS_AT_ONCE] for start in few]
        starts += [partial(write, _markers(marker, part)) for part in parts]
        part_counts.append(len(parts))
        yield ROW_UNITS + len(parts)

    def response(errors: list[Errors]) -> Work[WriteTxnMarkersResponse]:
        remaining_errors = iter(errors)
        rows = []
        for marker, count in zip(request.markers, part_counts, strict=True):
            found: Errors = {}
            for _ in range(count):
                found |= next(remaining_errors)
            rows.append((yield from _result(marker, found)))
            yield 1
        return WriteTxnMarkersResponse(markers=rows)

    return (yield from gather(starts, response, _MARKERS_AT_ONCE * CHANGE_UNITS))


def _partitions(marker: WritableTxnMarker) -> Work[tuple[TopicPartition, ...]]:
    """The partitions of a marker, each once."""
    found: dict[TopicPartition, None] = {}
    for topic in marker.topics:
        for few in chunks(topic.partition_indexes):
            found.update(dict.fromkeys(TopicPartition(topic.name, index) for index in few))
            yield len(few)
        yield 1
    return tuple(found)


def _markers(marker: WritableTxnMarker, partitions: tuple[TopicPartition, ...]) -> Markers:
    return Markers(
        "",
        Producer(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        partitions,
        marker.transaction_version,
    )


def _result(marker: WritableTxnMarker, errors: Errors) -> Work[WritableTxnMarkerResult]:
    result = WritableTxnMarkerResult(producer_id=marker.producer_id)
    for topic in marker.topics:
        rows: list[WritableTxnMarkerPartitionResult] = []
        for few in chunks(topic.partition_indexes):
            rows += [_row(index, errors[TopicPartition(topic.name, index)]) for index in few]
            yield len(few)
        result.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        yield 1
    return result


def _row(index: int, error: ErrorCode) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)


def refuse(
    request: WriteTxnMarkersRequest, error: ApiError, version: int
) -> WriteTxnMarkersResponse:
    """The same error for every partition of every marker."""
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        for topic in marker.topics:
            rows = [_row(index, error.code) for index in topic.partition_indexes]
            result.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        response.markers.append(result)
    return response
