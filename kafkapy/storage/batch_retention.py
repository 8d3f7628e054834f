"""Retention of a batch by compaction (Kafka's `Cleaner.cleanInto`, `MemoryRecords.filterTo`).

Batches must be passed in the order of the log, so that their transactions are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.record.batch_header import (
    CODEC_MASK,
    INT64_MAX,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Buffer,
)
from kafkapy.record.builder import keep_rows, rebuild_batch
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import Record, batch_records
from kafkapy.record.row_index import RowIndex, index_rows
from kafkapy.storage.offset_map import OffsetMap
from kafkapy.storage.transaction_index import AbortedTransaction


class LastRecord(NamedTuple):
    """The last data offset and the epoch of an active producer; offset -1 if it has only
    markers.
    """

    last_data_offset: int
    producer_epoch: int


class CleanedTransactions:
    """Transactions that still have data in the batches read so far.

    `kept_aborts` collects the aborted ones that must stay in the cleaned transaction index.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._pending_aborts = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen_aborted: set[int] = set()
        self._seen_committed: set[int] = set()
        self.kept_aborts: list[AbortedTransaction] = []

    def on_data(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen_aborted.add(header.producer_id)
            return True
        self._seen_committed.add(header.producer_id)
        return False

    def on_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether the marker's transaction has no data left, so that the marker may be removed
        after its delete horizon.
        """
        self._begin_up_to(header.last_offset)
        record = next(batch_records(batch, header), None)
        if record is None:
            return True
        kind = control_type_id(record.key)
        producer_id = header.producer_id
        if kind == ControlRecordType.ABORT:
            entry = self._aborted.pop(producer_id, None)
            if entry is None or producer_id not in self._seen_aborted:
                return True
            self._seen_aborted.discard(producer_id)
            self.kept_aborts.append(entry)
            return False
        if kind == ControlRecordType.COMMIT:
            if producer_id not in self._seen_committed:
                return True
            self._seen_committed.discard(producer_id)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._pending_aborts and self._pending_aborts[-1].first_offset <= offset:
            entry = self._pending_aborts.pop()
            self._aborted.setdefault(entry.producer_id, entry)


class BatchRetention:
    """Filters batches against an offset map; times in ms."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        delete_retention_ms: int,
        now_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._delete_retention_ms = delete_retention_ms
        self._now_ms = now_ms
        # Old formats have no field for a horizon: the age of their segment replaces it.
        self.keep_legacy_deletes = True

    def retain(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The retained part of a batch: itself, a smaller one, or None.

        Raises:
            ApiError: the batch cannot be read.
        """
        if header.is_control:
            return self._retain_marker(header, batch)
        discard = self._transactions.on_data(header)
        offsets = self._offsets
        if discard or offsets.is_superseded(header.base_offset, header.last_offset):
            return self._empty_batch(header, batch)
        if header.magic == MAGIC:
            return self._retain_rows(header, batch)
        return self._retain_messages(header, batch)

    def _retain_marker(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """Set a delete horizon if the transaction has no data left; remove the marker after it."""
        without_data = self._transactions.on_marker(header, batch)
        horizon = header.delete_horizon_ms
        is_due = without_data and horizon is not None and horizon <= self._now_ms
        if is_due or header.record_count == 0:
            return self._empty_batch(header, batch)
        if without_data and horizon is None:
            return self._rebuild_with_horizon(header, list(batch_records(batch, header)))
        return batch

    def _retain_rows(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        index = index_rows(batch, header)
        tombstones = set(index.tombstones)
        kept = self._kept_rows(header, index, tombstones)
        if not kept:
            return self._empty_batch(header, batch)
        if not header.has_delete_horizon and not tombstones.isdisjoint(kept):
            rows = list(batch_records(batch, header))
            return self._rebuild_with_horizon(header, [rows[i] for i in kept])
        return batch if len(kept) == len(index.offsets) else keep_rows(header, index, kept)

    def _kept_rows(self, header: BatchHeader, index: RowIndex, tombstones: set[int]) -> list[int]:
        """The positions of the retained rows."""
        offsets, latest = index.offsets, self._offsets.latest_offset
        superseded = self._offsets.supersedes(index.keys, offsets)
        kept = [i for i, offset in enumerate(offsets) if offset > latest or not superseded[i]]
        horizon = header.delete_horizon_ms
        if not tombstones or horizon is None or self._now_ms < horizon:
            return kept
        return [i for i in kept if i not in tombstones or offsets[i] > latest]

    def _retain_messages(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """Filter a batch of an old format, which has no producers and no delete horizon."""
        records = list(batch_records(batch, header))
        kept = [record for record in records if self._keeps(record)]
        if not kept:
            return None
        return batch if len(kept) == len(records) else _convert_to_v2(header, kept)

    def _keeps(self, record: Record) -> bool:
        if record.offset > self._offsets.latest_offset:
            return True
        [superseded] = self._offsets.supersedes([record.key], [record.offset])
        return not superseded and (record.value is not None or self.keep_legacy_deletes)

    def _rebuild_with_horizon(self, header: BatchHeader, records: list[Record]) -> bytes:
        horizon_ms = min(self._now_ms + self._delete_retention_ms, INT64_MAX)
        return rebuild_batch(header, records, delete_horizon_ms=horizon_ms)

    def _empty_batch(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The batch without its records, if it holds an active producer's last state; or None."""
        if not self._is_last_of_producer(header):
            return None
        return batch if header.record_count == 0 else rebuild_batch(header, [])

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether the batch holds the last sequence, or the fencing epoch, of an active
        producer.
        """
        if header.producer_id == NO_PRODUCER_ID:
            return False
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _convert_to_v2(header: BatchHeader, records: list[Record]) -> bytes:
    """The retained rows of a compressed set of an old format as one v2 batch, with the codec and
    the timestamp type of the set.
    """
    base_offset = records[0].offset
    attributes = header.attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT)
    converted = BatchHeader(
        base_offset, 0, NO_LEADER_EPOCH, MAGIC, 0, attributes, records[-1].offset - base_offset,
        0, header.max_timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, len(records),
    )  # fmt: skip
    return rebuild_batch(converted, records)
