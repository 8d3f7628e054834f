"""What compaction keeps of a batch (Kafka's `Cleaner.cleanInto`, `MemoryRecords.filterTo`).

Batches are shown in the order of the log, so that the transactions they belong to are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.record.batch_header import MAGIC, NO_PRODUCER_ID, BatchHeader, Buffer
from kafkapy.record.builder import RecordData, build_batch, rebuild_batch
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import Record, batch_records
from kafkapy.storage.offset_map import OffsetMap
from kafkapy.storage.transaction_index import AbortedTransaction


class LastRecord(NamedTuple):
    """The last data offset of an active producer, -1 if it only has markers, and its epoch."""

    last_data_offset: int
    producer_epoch: int


class CleanedTransactions:
    """Which transactions still have data in what has been read so far.

    `kept_aborts` gets the aborted ones that must stay in the cleaned transaction index.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
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
        """Whether nothing of the marker's transaction is left, so that it may go in time."""
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
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
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
        # Old formats have no place for a horizon: the age of their segment stands for it.
        self.keep_legacy_deletes = True

    def retain(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """What stays of a batch: itself, a smaller one, or None.

        Raises:
            ApiError: the batch cannot be read.
        """
        if header.is_control:
            without_data = self._transactions.on_marker(header, batch)
            horizon = header.delete_horizon_ms
            discard = without_data and horizon is not None and horizon <= self._now_ms
        else:
            without_data = False
            discard = self._transactions.on_data(header)
        is_last_of_producer = self._is_last_of_producer(header)
        if discard and not is_last_of_producer:
            return None
        records = list(batch_records(batch, header))
        kept = [] if discard else [r for r in records if self._keeps(header, r)]
        if not kept:
            if not is_last_of_producer:
                return None
            return batch if not records else rebuild_batch(header, kept)
        new_horizon = None
        if header.magic == MAGIC and not header.has_delete_horizon:
            tombstone = not header.is_control and any(r.value is None for r in kept)
            if tombstone or without_data:
                new_horizon = self._now_ms + self._delete_retention_ms
        if len(kept) == len(records) and new_horizon is None:
            return batch
        if header.magic != MAGIC:
            return _converted(kept)
        return rebuild_batch(header, kept, delete_horizon_ms=new_horizon)

    def _keeps(self, header: BatchHeader, record: Record) -> bool:
        if header.is_control or record.offset > self._offsets.latest_offset:
            return True
        if record.key is None or record.offset < self._offsets.get(record.key):
            return False
        if record.value is not None:
            return True
        horizon = header.delete_horizon_ms
        if header.magic != MAGIC:
            return self.keep_legacy_deletes
        return horizon is None or self._now_ms < horizon

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether it holds the last sequence, or the fencing epoch, of an active producer."""
        if header.producer_id == NO_PRODUCER_ID:
            return False
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _converted(records: list[Record]) -> bytes:
    """Rows of an old format as v2 batches, one for each row: their offsets may have gaps."""
    return b"".join(
        build_batch(
            [RecordData(r.key, r.value, r.timestamp, r.headers)],
            base_offset=r.offset,
        )
        for r in records
    )
