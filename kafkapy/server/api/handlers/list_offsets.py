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
from collections.abc import Callable
from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkapy.record.batch_header import CODEC_MASK, HEADER_SIZE, iter_headers
from kafkapy.replication.partition import CONSUMER, DEBUGGING_CONSUMER, Partition
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.turns import ROW_UNITS, Work, run_in_thread
from kafkapy.storage.file_records import FileRecords
from kafkapy.storage.log_segment import TimestampOffset, first_record_of_batch, may_have_record
from kafkapy.storage.unified_log import UnifiedLog

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
_BRIEF_BYTES: Final = 4096
"""The bytes of headers and uncompressed batches that a search reads in the event loop."""
_PIECE_BYTES: Final = 1 << 18
"""The bytes that a search reads for the other thread at a time, or one batch."""
_BYTES_A_UNIT: Final = 4


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
    search = _TimeSearch()
    while True:
        # The replica may be deleted, or moved to another directory, while a thread searches.
        partition = _partition(replicas, context, request, topic, wanted)
        search.begin(partition.log)
        try:
            _find(context, request, partition, wanted, row, search)
            break
        except _TakesLong as long:
            search.found, search.start_offset = yield from run_in_thread(long.search, may_drop=True)
    yield search.units


def _find(
    context: RequestContext,
    request: ListOffsetsRequest,
    partition: Partition,
    wanted: ListOffsetsPartition,
    row: ListOffsetsPartitionResponse,
    search: _TimeSearch,
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


class _TakesLong(Exception):
    """A piece of a segment that another thread must search, because the search would block the
    event loop. `search` returns the record, if any, and the offset at which to continue.
    """

    def __init__(self, search: Callable[[], tuple[TimestampOffset | None, int]]) -> None:
        super().__init__()
        self.search = search


class _TimeSearch:
    """A search by time. It reads few bytes in the event loop, and continues from `start_offset`
    after another thread has searched a piece.

    Batches that decompress to 500,000 records took a second. A batch that claims a later timestamp
    than its records have made the search read all later headers of its segment: up to 50 seconds.
    """

    def __init__(self) -> None:
        self.found: TimestampOffset | None = None
        self.start_offset = 0
        self._log_state: tuple[UnifiedLog, int] | None = None
        self._bytes_left = _BRIEF_BYTES

    @property
    def units(self) -> int:
        """The cost of the search in the event loop since `begin`."""
        return (_BRIEF_BYTES - self._bytes_left) // _BYTES_A_UNIT

    def begin(self, log: UnifiedLog) -> None:
        """Begin a turn of the event loop. If the offsets may have other records than in the turn
        before, the search begins again.
        """
        state = log, log.local.truncation_count
        if state != self._log_state:
            self._log_state, self.found, self.start_offset = state, None, 0
        self._bytes_left = _BRIEF_BYTES

    def __call__(
        self, records: FileRecords, position: int, timestamp: int, start_offset: int
    ) -> TimestampOffset | None:
        """
        Raises:
            _TakesLong: another thread must search a piece. The caller stores the result.
        """
        for at, header in records.headers(position):
            if may_have_record(header, timestamp, start_offset):
                if header.attributes & CODEC_MASK or header.size > self._bytes_left:
                    raise _takes_long(records, at, header.size, timestamp, start_offset)
                self._bytes_left -= header.size
                batch = records.read(at, header.size)
                found = first_record_of_batch(batch, header, timestamp, start_offset)
                if found is not None:
                    return found
            self._bytes_left -= HEADER_SIZE
            start_offset = max(start_offset, header.next_offset)  # damage must not make it endless
            if self._bytes_left <= 0:
                raise _takes_long(records, at + header.size, 0, timestamp, start_offset)
        return None


def _takes_long(
    records: FileRecords, position: int, size_min: int, timestamp: int, start_offset: int
) -> _TakesLong:
    size = min(max(size_min, _PIECE_BYTES), records.size - position)
    return _TakesLong(partial(_search, records.read(position, size), timestamp, start_offset))


def _search(piece: bytes, timestamp: int, start_offset: int) -> tuple[TimestampOffset | None, int]:
    """Search the whole batches of a piece, or up to the first one that must be decompressed."""
    for at, header in iter_headers(piece):
        next_offset = max(start_offset, header.next_offset)
        if may_have_record(header, timestamp, start_offset):
            found = first_record_of_batch(piece, header, timestamp, start_offset, at)
            if found is not None or header.attributes & CODEC_MASK:
                return found, next_offset
        start_offset = next_offset
    return None, start_offset


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
