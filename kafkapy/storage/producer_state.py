"""Producer state of a partition: sequences, epochs, open transactions (KIP-98).

It is checked before an append, updated after it, and rebuilt from a snapshot and later batches
(Kafka's `ProducerStateManager`, `ProducerAppendInfo`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import NO_SEQUENCE, BatchHeader, add_to_sequence
from kafkapy.record.control import ControlRecordType, EndTransactionMarker

BATCHES_KEPT: Final = 5
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class ProducerBatch(NamedTuple):
    """One of a producer's last batches; first sequence and offset follow from the delta."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return add_to_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


def batch_of(header: BatchHeader, base_offset: int) -> ProducerBatch:
    """The remembered part of a batch at `base_offset`."""
    delta = header.last_offset_delta
    return ProducerBatch(header.last_sequence, base_offset + delta, delta, header.max_timestamp)


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is in the log at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerEntry:
    """One producer. `transaction_first_offset` is -1 when no transaction is open. `snapshot_row` is
    its row in the last snapshot; None after a change.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "snapshot_row",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_EPOCH,
        coordinator_epoch: int = NO_EPOCH,
        last_timestamp: int = -1,
        transaction_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_first_offset
        self.batches: list[ProducerBatch] = []
        self.snapshot_row: bytes | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def set_epoch(self, producer_epoch: int) -> None:
        """Set a newer epoch, which drops the batches of older ones."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()

    def prepend_batches(self, earlier: list[ProducerBatch]) -> None:
        """Add batches before the known ones, up to `BATCHES_KEPT`."""
        self.batches = [*earlier, *self.batches][-BATCHES_KEPT:]

    def add_batch(self, batch: ProducerBatch) -> None:
        if len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp


class ProducerState:
    """The producers of one log.

    Transactions that are open, or complete but not yet below the high watermark, hold the last
    stable offset back.
    """

    __slots__ = ("_first_unreplicated", "_ongoing", "_unreplicated", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        # By first offset, ascending: transactions begin in the order of the log.
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        self._first_unreplicated: int | None = None  # their minimum: each append needs it

    def load(self, entries: list[ProducerEntry]) -> None:
        """Replace the state with the content of a snapshot, or with nothing."""
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._first_unreplicated = None
        for entry in entries:
            self.producers[entry.producer_id] = entry
        started = [e for e in entries if e.transaction_first_offset != NO_OFFSET]
        for entry in sorted(started, key=lambda e: e.transaction_first_offset):
            self._ongoing[entry.transaction_first_offset] = entry.producer_id

    def find_duplicate(self, header: BatchHeader) -> ProducerBatch | None:
        """The cached batch that `header` repeats: same epoch, same first and last sequence."""
        entry = self.producers.get(header.producer_id)
        if entry is None or entry.producer_epoch != header.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for batch in entry.batches:
            if (
                batch.last_sequence == last_sequence
                and batch.first_sequence == header.base_sequence
            ):
                return batch
        return None

    def last_sequence(self, producer_id: int, producer_epoch: int) -> int:
        """The last sequence in the log of a producer's epoch; NO_SEQUENCE if there is none."""
        entry = self.producers.get(producer_id)
        if entry is None or entry.producer_epoch != producer_epoch:
            return NO_SEQUENCE
        return entry.last_sequence

    def validate(self, header: BatchHeader, marker: EndTransactionMarker | None) -> None:
        """Refuse a leader's append that its producer's state does not allow.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, INVALID_TXN_STATE.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than "
                f"the last seen epoch {entry.producer_epoch}",
            )
        if marker is not None:
            if marker.coordinator_epoch < entry.coordinator_epoch:
                raise ApiError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"Coordinator epoch {marker.coordinator_epoch} for producer "
                    f"{header.producer_id} is older than {entry.coordinator_epoch}",
                )
        elif entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has an open transaction from offset "
                f"{entry.transaction_first_offset} and sent a batch outside it",
            )

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer's epoch is open."""
        entry = self.producers.get(producer_id)
        return (
            entry is not None
            and entry.producer_epoch == producer_epoch
            and entry.transaction_first_offset != NO_OFFSET
        )

    def validate_sequence(self, header: BatchHeader) -> None:
        """Refuse a client's batch that does not follow the producer's last one.

        Raises:
            ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None or entry.producer_epoch == NO_EPOCH:
            return
        first = header.base_sequence
        if header.producer_epoch != entry.producer_epoch:
            if first == 0:
                return
            known = f"new epoch {header.producer_epoch} must begin with 0"
        else:
            last = entry.last_sequence
            if first == (0 if last == NO_SEQUENCE else add_to_sequence(last, 1)):
                return
            known = f"the last one was {last}"
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number {first} of producer {header.producer_id}: {known}",
        )

    def append(
        self, header: BatchHeader, base_offset: int, marker: EndTransactionMarker | None
    ) -> CompletedTransaction | None:
        """Apply a batch at `base_offset`. Returns the transaction that it completes, if any."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_id)
        entry.snapshot_row = None
        last_offset = base_offset + header.last_offset_delta
        if header.is_control:
            return self._append_marker(entry, header, last_offset, marker)
        entry.set_epoch(header.producer_epoch)
        entry.add_batch(batch_of(header, base_offset))
        if header.is_transactional and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self._ongoing[base_offset] = entry.producer_id
        return None

    def _append_marker(
        self,
        entry: ProducerEntry,
        header: BatchHeader,
        offset: int,
        marker: EndTransactionMarker | None,
    ) -> CompletedTransaction | None:
        if marker is None:
            return None
        first, entry.transaction_first_offset = entry.transaction_first_offset, NO_OFFSET
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        if first == NO_OFFSET:
            return None
        aborted = marker.control_type is ControlRecordType.ABORT
        return CompletedTransaction(entry.producer_id, first, offset, aborted)

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """The LSO after `completed`: the start of the oldest other open one, or the next offset."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, transaction: CompletedTransaction) -> None:
        """Complete a transaction whose marker is written. It is stable once its marker is below
        the high watermark.
        """
        self._ongoing.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction.last_offset
        self._first_unreplicated = _lower(self._first_unreplicated, transaction.first_offset)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Remove the completed transactions whose markers are below `high_watermark`."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }
            self._first_unreplicated = min(self._unreplicated, default=None)

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the oldest transaction that is open or not replicated yet."""
        first = next(iter(self._ongoing), None)
        return (
            self._first_unreplicated if first is None else _lower(self._first_unreplicated, first)
        )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove the producers idle for `expiration_ms` without an open transaction. Returns their
        number.
        """
        expired = [entry.producer_id for entry in self if is_expired(entry, now_ms, expiration_ms)]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self.producers.values())


def _lower(known: int | None, offset: int) -> int:
    return offset if known is None or offset < known else known


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """Whether a producer was idle for too long. One with an open transaction never expires."""
    idle = now_ms - entry.last_timestamp >= expiration_ms
    return idle and entry.transaction_first_offset == NO_OFFSET
