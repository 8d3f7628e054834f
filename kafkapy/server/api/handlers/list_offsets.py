"""ListOffsets (key 2), versions 0-11.

Behaviour: earliest, latest (high watermark, last stable offset or log end, depending on the
reader), max timestamp, and the first offset at or after a time. Not done: tiered storage, so -4 is
handled as -2, and there is no offset for -5 and -6. Version notes: v0 returns a number of base
offsets of segments, by the time of their last write; v4 leader epochs; v7 max timestamp (-3); v8
earliest local (-4); v9 latest tiered (-5); v10 a timeout for tiered storage; v11 earliest pending
upload.
"""

from __future__ import annotations

from collections import Counter

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkapy.replication.partition import CONSUMER, DEBUGGING_CONSUMER, Partition
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.replicas.time_search import TimeSearch, search_in_turns
from kafkapy.server.requests.turns import ROW_UNITS, Work
from kafkapy.storage.log_segment import TimestampOffset

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
EARLIEST_PENDING_UPLOAD = -6
_SEGMENT_UNITS = 4  # reads the time of a segment's last write from the file system
_FIRST_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


def handle(
    replicas: ReplicaManager, clock: Clock, context: RequestContext, request: ListOffsetsRequest
) -> Work[ListOffsetsResponse]:
    """Look up an offset for each partition."""
    request_counts = Counter(
        (t.name, p.partition_index) for t in request.topics for p in t.partitions
    )
    topics = []
    for topic in request.topics:
        rows = []
        for wanted in topic.partitions:
            row = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            rows.append(row)
            try:
                if context.version and request_counts[topic.name, wanted.partition_index] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                if context.version == 0:
                    partition = _partition(replicas, context, request, topic.name, wanted)
                    offsets = _segment_offsets(clock, request, partition, wanted)
                    row.old_style_offsets = yield from offsets
                else:
                    yield from _look_up(replicas, context, request, topic.name, wanted, row)
            except ApiError as error:
                row.error_code = error.code
            except LogDirFailure as failure:
                replicas.log_dir_failed(failure)
                row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            yield ROW_UNITS
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        yield 1
    return ListOffsetsResponse(topics=topics)


def _look_up(
    replicas: ReplicaManager,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
    row: ListOffsetsPartitionResponse,
) -> Work[None]:
    def find(search: TimeSearch) -> None:
        partition = _partition(replicas, context, request, topic, wanted)
        search.begin(partition.log)
        _find(context, request, partition, wanted, row, search)

    yield from search_in_turns(find)


def _find(
    context: RequestContext,
    request: ListOffsetsRequest,
    partition: Partition,
    wanted: ListOffsetsPartition,
    row: ListOffsetsPartitionResponse,
    search: TimeSearch,
) -> None:
    timestamp = wanted.timestamp
    log = partition.log
    bound = partition.upper_bound(request.replica_id, request.isolation_level)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        row.offset = log.log_start_offset
        row.leader_epoch = log.epochs.epoch_for_offset(row.offset)
        return
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return
    if timestamp == LATEST:
        _require_known_end(context, request, partition)
        row.offset, row.leader_epoch = bound, partition.leader_epoch
        return
    if search.found is not None:
        found: TimestampOffset | None = search.found
    elif timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp(search, search.start_offset)
    else:
        found = log.offset_for_timestamp(timestamp, bound, search, search.start_offset)
    if found is not None and found[1] < bound:
        row.timestamp, row.offset, row.leader_epoch = found
    else:
        _require_known_end(context, request, partition)


def _partition(
    replicas: ReplicaManager,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
) -> Partition:
    """The partition of a row, after a check of the row against its version."""
    if wanted.timestamp < 0 and context.version < _FIRST_VERSION.get(wanted.timestamp, 99):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    partition = replicas.get(topic, wanted.partition_index)
    partition.check_leader(wanted.current_leader_epoch, request.replica_id != DEBUGGING_CONSUMER)
    return partition


def _segment_offsets(
    clock: Clock, request: ListOffsetsRequest, partition: Partition, wanted: ListOffsetsPartition
) -> Work[list[int]]:
    """Handle version 0: at most `max_num_offsets`, newest first. For consumers, the high watermark
    replaces offsets above it (`Partition.legacyFetchOffsetsForTimestamp`).
    """
    if wanted.max_num_offsets < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The number of offsets is negative")
    log, timestamp = partition.log, wanted.timestamp
    yield _SEGMENT_UNITS * len(log.segments)
    if timestamp == EARLIEST:
        offsets = log.offsets_before(None, 0)[-1:]
    else:
        before_timestamp = None if timestamp == LATEST else timestamp
        offsets = log.offsets_before(before_timestamp, clock.time_ms())
    offsets = offsets[: wanted.max_num_offsets]
    if request.replica_id == CONSUMER and offsets and offsets[0] > log.high_watermark:
        return [log.high_watermark, *[o for o in offsets if o <= log.high_watermark]]
    return offsets


def _require_known_end(
    context: RequestContext, request: ListOffsetsRequest, partition: Partition
) -> None:
    """Refuse a consumer while a new leader's high watermark lags: offsets must not go back
    (KIP-207).

    Raises:
        ApiError: OFFSET_NOT_AVAILABLE, or its equivalent for older clients.
    """
    lags = partition.log.high_watermark < partition.leader_epoch_start_offset
    if request.replica_id == CONSUMER and lags:
        raise ApiError(
            ErrorCode.OFFSET_NOT_AVAILABLE
            if context.version >= 5
            else ErrorCode.LEADER_NOT_AVAILABLE
        )


def refuse(request: ListOffsetsRequest, error: ApiError, version: int) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=p.partition_index, error_code=error.code
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
