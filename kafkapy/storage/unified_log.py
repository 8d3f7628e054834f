"""One partition's log, appended to and read (Kafka's `UnifiedLog`). Hot file.

A method that touches the disk raises LogDirFailure when the disk fails; the log must not be used
after that.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import CONTROL_BIT, MAGIC, BatchHeader, first_16_bytes
from kafkapy.record.control import ControlRecordType
from kafkapy.record.long_preparation import PreparedAhead
from kafkapy.record.validation import (
    PRODUCE_VERSION_LATEST,
    prepare_client_batch,
    prepare_internal_batch,
)
from kafkapy.storage import time_lookup
from kafkapy.storage.damage import Batches, batches_after
from kafkapy.storage.file_records import FileRegion
from kafkapy.storage.local_log import Found
from kafkapy.storage.log_append import (
    AppendOrigin,
    LogAppendInfo,
    UnexpectedAppendOffset,
    appended_marker,
    fetched_batches,
    marker_of,
)
from kafkapy.storage.log_offset import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment, TimestampOffset
from kafkapy.storage.partition_log import PartitionLog
from kafkapy.storage.producer_state import ProducerBatch
from kafkapy.storage.transaction_index import AbortedTransaction

__all__ = ["AppendOrigin", "FetchDataInfo", "LogAppendInfo", "LogOffsetMetadata", "UnifiedLog"]


@dataclass(slots=True)
class FetchDataInfo:
    """The result of a read: bytes of whole batches, the last one perhaps cut off by the size limit.

    `first_entry_incomplete`: even the first batch is larger than the limit, so there are no
    records. `aborted_transactions` by first offset; None unless asked for. `span` is the bytes or,
    of a read `in_place`, where they lie.
    """

    span: bytes | FileRegion
    fetch_offset_metadata: LogOffsetMetadata
    aborted_transactions: list[AbortedTransaction] | None = None
    first_entry_incomplete: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.span)

    @property
    def records(self) -> bytes:
        """The bytes of a read that was not `in_place`."""
        assert isinstance(self.span, bytes)
        return self.span


class UnifiedLog(PartitionLog):
    """A log that is appended to and read; its offsets are in the base class."""

    __slots__ = ()

    # append

    def append_as_leader(
        self,
        records: memoryview | bytes,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int = PRODUCE_VERSION_LATEST,
        briefly: bool = False,
        ahead: PreparedAhead | None = None,
    ) -> LogAppendInfo:
        """Check a producer's batch, unless that was done `ahead`, give it offsets and append it.
        One that repeats one of its producer's last five is not: its first offsets are the answer.

        Raises:
            TakesLong: it cannot be done `briefly`.
            ApiError: what `record.validation`, `producer_state` and the segment size refuse.
        """
        local, rules, base_offset = self.local, self._rules, self.local.log_end_offset
        try:
            if ahead is not None:
                prepared = ahead.batch(rules, now_ms, produce_version)
            elif origin is AppendOrigin.CLIENT:
                records = memoryview(records)
                prepared = prepare_client_batch(records, rules, now_ms, produce_version, briefly)
            else:
                prepared = prepare_internal_batch(records, rules, now_ms)
            header = prepared.header
            if (size := len(prepared.records)) > self.config.segment_bytes:
                raise self._too_large(size)
            marker = None
            if header.producer_id >= 0:
                marker = marker_of(header, prepared.records)
                earlier = self.producers.check(header, marker, origin is AppendOrigin.CLIENT)
                if earlier is not None:
                    return self._repeated(earlier, leader_epoch, header.record_count, size)
            if leader_epoch > self.epochs.latest:
                self.epochs.assign(leader_epoch, base_offset)
            if marker is not None and marker.control_type is ControlRecordType.ABORT:
                local.probe()  # it is noted in an index once it is in the log
            last_offset = base_offset + header.last_offset_delta
            max_timestamp = header.max_timestamp
            segment = self._segment_for(size, max_timestamp, base_offset, last_offset, now_ms)
            head = first_16_bytes(base_offset, header.batch_length, leader_epoch)
            segment.append(
                [head, memoryview(prepared.records)[16:]],
                size, base_offset, last_offset, max_timestamp, last_offset,
                self.config.index_interval_bytes,
            )  # fmt: skip
            local.log_end_offset = last_offset + 1
            if header.producer_id >= 0:
                self.producers.append(header, base_offset, marker, segment)
                self.first_unstable_offset = self.producers.state.first_unstable_offset
        except OSError as error:
            raise self._failure(error, local.log_end_offset != base_offset) from error
        if local.log_end_offset - local.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return LogAppendInfo(
            base_offset, last_offset, max_timestamp, prepared.log_append_time,
            self.log_start_offset, leader_epoch, header.record_count, size,
        )  # fmt: skip

    def _repeated(
        self, batch: ProducerBatch, leader_epoch: int, records: int, size: int
    ) -> LogAppendInfo:
        return LogAppendInfo(
            batch.first_offset, batch.last_offset, batch.timestamp, batch.timestamp,
            self.log_start_offset, leader_epoch, records, size, duplicate=True,
        )  # fmt: skip

    def append_as_follower(self, records: memoryview | bytes, now_ms: int) -> LogAppendInfo:
        """Append what a leader sent, byte for byte, as one set; a cut-off last batch is left out.

        Raises:
            ApiError: CORRUPT_MESSAGE, RECORD_LIST_TOO_LARGE.
            UnexpectedAppendOffset: the records begin before the log end offset.
        """
        local = self.local
        base_offset = local.log_end_offset
        batches = fetched_batches(records, base_offset)
        if not batches:
            return LogAppendInfo(
                base_offset, base_offset - 1, -1, -1, self.log_start_offset, -1, 0, 0
            )
        first, last = batches[0][1], batches[-1][1]
        size = batches[-1][0] + last.size
        if size > self.config.segment_bytes:
            raise self._too_large(size)
        newest, record_count = first, 0
        last_offset = last.last_offset
        try:
            for _, header in batches:
                if header.partition_leader_epoch > self.epochs.latest or header.magic < MAGIC:
                    self._assign_epoch(header)
                if header.max_timestamp > newest.max_timestamp:
                    newest = header
                if header.attributes & CONTROL_BIT:
                    local.probe()
                if header.record_count > 0:
                    record_count += header.record_count
            segment = self._segment_for(
                size, newest.max_timestamp, first.base_offset, last_offset, now_ms
            )
            segment.append(
                [memoryview(records)[:size]], size, -1, last_offset, newest.max_timestamp,
                newest.last_offset, self.config.index_interval_bytes,
            )  # fmt: skip
            local.log_end_offset = last_offset + 1
            for position, header in batches:
                if header.producer_id >= 0:
                    marker = appended_marker(header, records, position)
                    self.producers.append(header, header.base_offset, marker, segment)
                    self.first_unstable_offset = self.producers.state.first_unstable_offset
        except OSError as error:
            raise self._failure(error, local.log_end_offset != base_offset) from error
        if local.log_end_offset - local.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return LogAppendInfo(
            first.base_offset, last_offset, newest.max_timestamp, -1, self.log_start_offset,
            last.partition_leader_epoch, record_count, size,
        )  # fmt: skip

    def append_fetched(self, records: memoryview | bytes, now_ms: int) -> LogAppendInfo:
        """`append_as_follower`; an empty log that starts inside the first batch goes back to its
        base offset.

        After DeleteRecords a log may start in the middle of a batch, and a replica that is made
        from it gets the whole batch (`Partition.appendRecordsToFollowerOrFutureReplica`). The
        caller raises the log start offset again.

        Raises:
            ApiError, UnexpectedAppendOffset: as `append_as_follower`.
        """
        try:
            return self.append_as_follower(records, now_ms)
        except UnexpectedAppendOffset as error:
            if not self.log_start_offset == self.local.log_end_offset < error.next_offset:
                raise
            self.truncate_fully_and_start_at(error.first_offset, now_ms)
            return self.append_as_follower(records, now_ms)

    def _assign_epoch(self, header: BatchHeader) -> None:
        """A batch that follows says of which leader epoch it is, or is too old to say it."""
        if header.magic < MAGIC:
            self.epochs.clear()
        else:
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _segment_for(
        self, size: int, max_timestamp: int, first_offset: int, last_offset: int, now_ms: int
    ) -> LogSegment:
        segment = self.local.segments.active
        if segment.should_roll(size, max_timestamp, last_offset, now_ms, self.config):
            return self._roll(first_offset, last_offset, now_ms)
        return segment

    def _too_large(self, size: int) -> ApiError:
        return ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes of batches for {self.topic_partition} exceed segment.bytes "
            f"{self.config.segment_bytes}",
        )

    # read

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound: int,
        min_one_message: bool,
        include_aborted: bool = False,
        in_place: bool = False,
    ) -> FetchDataInfo:
        """Batches of one segment from the one that holds `start_offset`, none at `upper_bound`.

        With `min_one_message` the first batch is given even if it is larger than `max_bytes`.
        `in_place`: they are to be sent, so a long span stays in its file, as a `FileRegion`.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE on bytes that cannot be batches.
        """
        if not self.log_start_offset <= start_offset <= self.local.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition "
                f"{self.topic_partition}, but we only have log segments from offset "
                f"{self.log_start_offset} to {self.local.log_end_offset}.",
            )
        found: Found | None = None
        if start_offset < upper_bound:
            end = self.offset_metadata(upper_bound)
            try:
                found = self.local.read(start_offset, max_bytes, end, min_one_message, in_place)
            except OSError as error:
                raise self._failure(error) from error
            if found is not None:
                info = FetchDataInfo(found.records, found.metadata)
                info.first_entry_incomplete = found.first_entry_incomplete
                if include_aborted:
                    stop = upper_bound if found.end_offset is None else found.end_offset
                    info.aborted_transactions = self.aborted_transactions(start_offset, stop)
                return info
            start_offset = upper_bound
        aborted: list[AbortedTransaction] | None = [] if include_aborted else None
        return FetchDataInfo(b"", self.offset_metadata(start_offset), aborted)

    def batches_after_damage(self, offset: int, end_offset: int) -> Batches:
        """The first batches that can be found behind bytes at `offset` that cannot be batches."""
        with self._disk():
            return batches_after(self.local, offset, end_offset)

    def read_tail(self, offset: int, max_bytes: int) -> bytes | FileRegion | None:
        """All from `offset` on, where that is one of the batches appended last and not too much;
        None if it is not, and `read` must look for it."""
        segment = self.local.segments.active
        position = segment.recent_position(offset)
        if position is None or segment.records.size - position > max_bytes:
            return None
        try:
            return segment.records.region(position, segment.records.size - position)
        except OSError as error:
            raise self._failure(error) from error

    def aborted_transactions(self, start: int, stop: int) -> list[AbortedTransaction]:
        """The aborted transactions with data in [start, stop), by first offset."""
        found: list[AbortedTransaction] = []
        with self._disk():
            for segment in self.local.segments.from_offset(start):
                more, complete = segment.transaction_index.collect(start, stop)
                found += more
                if complete:
                    break
        return sorted(found, key=lambda entry: entry.first_offset)

    def offset_for_timestamp(self, timestamp: int, upper_bound: int) -> TimestampOffset | None:
        """The first record below `upper_bound` whose timestamp is at least `timestamp`."""
        with self._disk():
            found = time_lookup.first_at_or_after(self.local, timestamp, self.log_start_offset)
        return found if found is not None and found.offset < upper_bound else None

    def offsets_before(self, timestamp: int | None, now_ms: int) -> list[int]:
        """Where segments written by `timestamp` begin, newest first, as ListOffsets v0 wants."""
        with self._disk():
            return time_lookup.offsets_before(self.local, timestamp, self.log_start_offset, now_ms)

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp of the log."""
        with self._disk():
            return time_lookup.latest(self.local)
