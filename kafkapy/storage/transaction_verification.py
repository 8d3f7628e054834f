"""Verifies transactions that begin in a partition with their coordinator (KIP-890, part 1).

A late batch of a producer could open a transaction that its coordinator has ended already. No
marker would ever end it, and read_committed consumers would wait for good. So the first batch of a
transaction in a partition is appended only after the coordinator has confirmed the partition, and
only if no marker was written meanwhile. Kafka: `VerificationGuard` and `VerificationStateEntry`.

The coordinator may refuse the first of a producer's batches in flight, and confirm a later one:
that would be appended without the first. So a transaction begins with the lowest sequence.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.producer_state import NO_OFFSET, ProducerState


class Verification:
    """One request to a coordinator; `is_done` once it is confirmed. `lowest_sequence` is the first
    sequence with which the transaction may begin here. `adds`: the partition is added to the
    transaction (version 2).
    """

    __slots__ = ("adds", "is_done", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, lowest_sequence: int, adds: bool) -> None:
        self.producer_epoch = producer_epoch
        self.adds = adds
        self.lowest_sequence = lowest_sequence
        self.is_done = False


class TransactionVerification:
    """The open verifications of one partition. `is_required`: whether verification is enabled."""

    __slots__ = ("_by_producer", "_state", "is_required")

    def __init__(self, state: ProducerState, is_required: bool) -> None:
        self.is_required = is_required
        self._state = state
        self._by_producer: dict[int, Verification] = {}

    def begin(
        self, producer_id: int, producer_epoch: int, sequence: int, adds: bool = False
    ) -> Verification:
        """The verification for a producer and epoch, shared by concurrent batches."""
        found = self._by_producer.get(producer_id)
        if found is None or found.producer_epoch < producer_epoch:
            found = self._by_producer[producer_id] = Verification(producer_epoch, sequence, adds)
        found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def is_needed(self, producer_id: int, producer_epoch: int, adds: bool = False) -> bool:
        """Whether a transactional batch of this producer would begin an unverified transaction. A
        batch that `adds` the partition to its transaction needs that even if verification is
        disabled.
        """
        if not (self.is_required or adds):
            return False
        entry = self._state.producers.get(producer_id)
        if (
            entry is not None
            and entry.transaction_first_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        ):
            return False
        found = self._by_producer.get(producer_id)
        return found is None or not found.is_done or found.producer_epoch != producer_epoch

    def check(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Refuse a batch that needs verification first, or another batch.

        Raises:
            ApiError: INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        if self.is_required and self.is_needed(producer_id, producer_epoch):
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Record was not part of an ongoing transaction of producer {producer_id}",
            )
        found = self._by_producer.get(producer_id) if self._by_producer else None
        if found is not None and sequence > found.lowest_sequence:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number {sequence} of producer {producer_id}: its "
                f"transaction begins with {found.lowest_sequence}",
            )

    def begun(self, producer_id: int) -> None:
        """Remove the verification of a transaction that has begun here."""
        if self._by_producer:
            self._by_producer.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """Remove the verification of a transaction that a marker has ended. With version 2 the
        marker of the previous transaction has the epoch of the next one, which may be under way.
        """
        found = self._by_producer.get(producer_id) if self._by_producer else None
        if found is not None and not (found.adds and marker_epoch <= found.producer_epoch):
            del self._by_producer[producer_id]
