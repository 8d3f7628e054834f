"""Verifies transactions that begin in a partition with their coordinator (KIP-890, part 1).

A late batch of a producer could open a transaction that its coordinator has ended already. No
marker would ever end it, and read_committed consumers would wait forever. So the first batch of a
transaction in a partition is appended only after the coordinator has confirmed the partition, and
only if no marker was written meanwhile. Kafka: `VerificationGuard` and `VerificationStateEntry`.

The coordinator may refuse the first of a producer's batches in flight, and confirm a later one,
which would be appended without the first. So a transaction must begin with the lowest sequence.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.producer_state import NO_OFFSET, ProducerState


class Verification:
    """One request to a coordinator, and whether it is confirmed. `lowest_sequence` is the first
    sequence with which the transaction may begin here. `adds_partition`: the partition is added to
    the transaction (version 2). `begun_ms`: the time of its first request.
    """

    __slots__ = ("adds_partition", "begun_ms", "is_confirmed", "lowest_sequence", "producer_epoch")

    def __init__(
        self, producer_epoch: int, lowest_sequence: int, begun_ms: int, adds_partition: bool
    ) -> None:
        self.producer_epoch = producer_epoch
        self.adds_partition = adds_partition
        self.begun_ms = begun_ms
        self.lowest_sequence = lowest_sequence
        self.is_confirmed = False


class TransactionVerification:
    """The open verifications of one partition. `is_enabled`: whether verification is enabled."""

    __slots__ = ("_by_producer", "_state", "is_enabled")

    def __init__(self, state: ProducerState, is_enabled: bool) -> None:
        self.is_enabled = is_enabled
        self._state = state
        self._by_producer: dict[int, dict[int, Verification]] = {}  # and by epoch

    def begin(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        now_ms: int,
        adds_partition: bool = False,
    ) -> Verification:
        """The verification for a producer and epoch, shared by concurrent batches. A batch of
        another epoch, which a zombie may send, has another one.
        """
        by_epoch = self._by_producer.setdefault(producer_id, {})
        found = by_epoch.get(producer_epoch)
        if found is None:
            found = by_epoch[producer_epoch] = Verification(
                producer_epoch, sequence, now_ms, adds_partition
            )
        found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def confirm(self, producer_id: int, confirmed: Verification) -> None:
        """Record the coordinator's confirmation. Drop earlier epochs, which are of zombies."""
        confirmed.is_confirmed = True
        by_epoch = self._by_producer.get(producer_id, {})
        for epoch in [each for each in by_epoch if each < confirmed.producer_epoch]:
            self._delete(producer_id, epoch)

    def drop(self, producer_id: int, refused: Verification) -> None:
        """Remove a verification that the coordinator has refused for good."""
        by_epoch = self._by_producer.get(producer_id, {})
        if by_epoch.get(refused.producer_epoch) is refused:
            self._delete(producer_id, refused.producer_epoch)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove the verifications begun `expiration_ms` ago, which no batch has followed. Returns
        their number.
        """
        expired = [
            (producer_id, epoch)
            for producer_id, by_epoch in self._by_producer.items()
            for epoch, each in by_epoch.items()
            if now_ms - each.begun_ms >= expiration_ms
        ]
        for producer_id, epoch in expired:
            self._delete(producer_id, epoch)
        return len(expired)

    def _delete(self, producer_id: int, producer_epoch: int) -> None:
        by_epoch = self._by_producer[producer_id]
        del by_epoch[producer_epoch]
        if not by_epoch:
            del self._by_producer[producer_id]

    def is_needed(
        self, producer_id: int, producer_epoch: int, adds_partition: bool = False
    ) -> bool:
        """Whether a transactional batch of this producer would begin an unverified transaction. A
        batch that adds the partition (`adds_partition`) to its transaction needs that even if
        verification is disabled.
        """
        if not (self.is_enabled or adds_partition):
            return False
        entry = self._state.producers.get(producer_id)
        if (
            entry is not None
            and entry.transaction_first_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        ):
            return False
        found = self._by_producer.get(producer_id, {}).get(producer_epoch)
        return found is None or not found.is_confirmed

    def check(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Refuse a batch that must follow a verification, or another batch.

        Raises:
            ApiError: INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        if self.is_enabled and self.is_needed(producer_id, producer_epoch):
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Record was not part of an ongoing transaction of producer {producer_id}",
            )
        if not self._by_producer:
            return
        found = self._by_producer.get(producer_id, {}).get(producer_epoch)
        if found is not None and sequence > found.lowest_sequence:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number {sequence} of producer {producer_id}: its "
                f"transaction begins with {found.lowest_sequence}",
            )

    def on_transaction_begun(self, producer_id: int) -> None:
        """Remove the verifications of a producer whose transaction has begun here."""
        if self._by_producer:
            self._by_producer.pop(producer_id, None)

    def on_transaction_ended(self, producer_id: int, marker_epoch: int) -> None:
        """Remove the verifications of transactions that a marker has ended. With version 2 the
        marker of the previous transaction has the epoch of the next one, which may be under way.
        """
        by_epoch = self._by_producer.pop(producer_id, None) if self._by_producer else None
        if by_epoch:
            kept = {
                e: each for e, each in by_epoch.items() if each.adds_partition and e >= marker_epoch
            }
            if kept:
                self._by_producer[producer_id] = kept
