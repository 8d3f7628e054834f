"""Verifies transactions that begin in a partition with their coordinator (KIP-890, part 1).

A late batch of a producer could open a transaction that its coordinator has ended already. No
marker would ever end it, and read_committed consumers would wait for good. So the first batch of a
transaction in a partition is appended only after the coordinator has confirmed the partition, and
only if no marker was written meanwhile. Kafka: `VerificationGuard` and `VerificationStateEntry`.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.producer_state import NO_OFFSET, ProducerState


class Verification:
    """One request to a coordinator; `is_done` once it is confirmed."""

    __slots__ = ("is_done", "producer_epoch")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.is_done = False


class TransactionVerification:
    """The open verifications of one partition. `is_required`: whether verification is enabled."""

    __slots__ = ("_by_producer", "_state", "is_required")

    def __init__(self, state: ProducerState, is_required: bool) -> None:
        self.is_required = is_required
        self._state = state
        self._by_producer: dict[int, Verification] = {}

    def begin(self, producer_id: int, producer_epoch: int) -> Verification:
        """The verification for a producer and epoch, shared by concurrent batches."""
        found = self._by_producer.get(producer_id)
        if found is None or found.producer_epoch < producer_epoch:
            found = self._by_producer[producer_id] = Verification(producer_epoch)
        return found

    def is_needed(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transactional batch of this producer would begin an unverified transaction."""
        if not self.is_required:
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

    def check(self, producer_id: int, producer_epoch: int) -> None:
        """Refuse a batch that needs verification first.

        Raises:
            ApiError: INVALID_TXN_STATE.
        """
        if self.is_required and self.is_needed(producer_id, producer_epoch):
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Record was not part of an ongoing transaction of producer {producer_id}",
            )

    def forget(self, producer_id: int) -> None:
        """Remove the verification of a transaction that began or ended here."""
        if self._by_producer:
            self._by_producer.pop(producer_id, None)
