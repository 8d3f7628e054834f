"""Refuses batches that a producer sent after a refused one, with the same error.

A producer has up to five batches in flight. Suppose that the leader refuses one because too few
replicas are in sync, or because it does not lead yet, and that this changes a moment later.
Kafka then refuses the next batch in flight with OUT_OF_ORDER_SEQUENCE_NUMBER. librdkafka begins a
new producer epoch and sends all unacknowledged batches again, also one that an earlier
NOT_ENOUGH_REPLICAS_AFTER_APPEND left in the log: a duplicate. Here the following batches get the
error of the first, so the producer sends them again in order. A refusal ends when the refused batch
is in the log: its producer may have sent it to another leader, from which this replica copied it.
`docs/decisions/0009-batches-after-a-refused-batch.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.record.batch_header import NO_PRODUCER_ID, NO_SEQUENCE, Buffer, read_header
from kafkapy.storage.producer_state import ProducerState

PIPELINED_MAX: Final = 4
"""The batches that may be in flight behind a refused one (max.in.flight.requests.per.connection is
5)."""
REFUSAL_TTL_MS: Final = 5_000
"""The lifetime of a refusal. By then, batches in flight at the refusal have arrived, or their
connection has failed."""
PRODUCERS_MAX: Final = 1_000
PARTITIONS_MAX: Final = 1_000

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_HALF_RANGE: Final = 1 << 30


@dataclass(slots=True)
class _Refusal:
    producer_epoch: int
    first_sequence: int
    code: ErrorCode
    message: str
    until_ms: int
    remaining: int


class RefusedBatches:
    """The first refused batch of each producer, until the producer sends it again.

    Empty unless a batch was refused lately, so the hot path's only cost is `if refused:`.
    """

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refusal] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def refuse(self, records: Buffer, error: ApiError, now_ms: int) -> ApiError:
        """Record that `records` is refused with `error`. Returns `error` for the caller to
        raise.
        """
        header = _producer_of(records)
        if header is None:
            return error
        producer_id, epoch, sequence = header
        known = self._by_producer.get(producer_id)
        if known is not None and known.producer_epoch == epoch and now_ms <= known.until_ms:
            if _is_after(sequence, known.first_sequence):
                known.remaining -= 1
                return error
        elif len(self._by_producer) >= PRODUCERS_MAX:
            del self._by_producer[next(iter(self._by_producer))]
        self._by_producer[producer_id] = _Refusal(
            epoch, sequence, error.code, error.message, now_ms + REFUSAL_TTL_MS, PIPELINED_MAX
        )
        return error

    def add(self, earlier: RefusedBatches) -> None:
        """Add the earlier refusals of other producers."""
        self._by_producer = earlier._by_producer | self._by_producer

    def check(self, records: Buffer, log: ProducerState, now_ms: int) -> None:
        """Refuse a batch that was sent after a refused one, if the refused one is not in the `log`.

        Raises:
            ApiError: the error of the first refused batch.
        """
        header = _producer_of(records)
        if header is None:
            return
        producer_id, epoch, sequence = header
        known = self._by_producer.get(producer_id)
        if known is None:
            return
        if (
            known.producer_epoch == epoch
            and _is_after(sequence, known.first_sequence)
            and known.remaining > 0
            and now_ms <= known.until_ms
            and not _log_has_batch(log, producer_id, known)
        ):
            known.remaining -= 1
            raise ApiError(known.code, known.message)
        del self._by_producer[producer_id]


Key = tuple[str | Uuid, int]
"""A topic's name or id, and a partition index."""


class UnhostedRefusals:
    """The refused batches of partitions that this broker does not host yet, or whose topic id is
    unknown yet, after a restart or for a new topic. The partition may be found when the producer's
    next batch in flight arrives.
    """

    __slots__ = ("by_partition",)

    def __init__(self) -> None:
        self.by_partition: dict[Key, tuple[RefusedBatches, int]] = {}

    def refuse(self, key: Key, records: Buffer, error: ApiError, now_ms: int) -> ApiError:
        """As `RefusedBatches.refuse`."""
        known = self.by_partition
        refused, _ = known.pop(key, (RefusedBatches(), 0))
        error = refused.refuse(records, error, now_ms)
        if refused:
            known[key] = refused, now_ms + REFUSAL_TTL_MS
        if len(known) > PARTITIONS_MAX:
            del known[next(iter(known))]
        return error

    def move_to(self, keys: Iterable[Key], refused: RefusedBatches, now_ms: int) -> None:
        """Move the refusals of a partition that is found now to the partition's own `refused`."""
        known = self.by_partition
        while known and next(iter(known.values()))[1] < now_ms:  # entries are in the order of time
            del known[next(iter(known))]
        for key in keys:
            found = known.pop(key, None)
            if found is not None:
                refused.add(found[0])


def _producer_of(records: Buffer) -> tuple[int, int, int] | None:
    """(id, epoch, base sequence) of an idempotent producer's batch; None for any other bytes."""
    try:
        header = read_header(records)
    except ApiError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        return None  # The append reports it.
    if header.producer_id == NO_PRODUCER_ID:
        return None
    return header.producer_id, header.producer_epoch, header.base_sequence


def _log_has_batch(log: ProducerState, producer_id: int, refusal: _Refusal) -> bool:
    """Whether the log has the refused batch, or a later one, by now."""
    last = log.last_sequence(producer_id, refusal.producer_epoch)
    return last != NO_SEQUENCE and not _is_after(refusal.first_sequence, last)


def _is_after(sequence: int, other: int) -> bool:
    """Whether `sequence` comes after `other`; 2^31-1 is followed by 0."""
    return 0 < (sequence - other) & _SEQUENCE_MASK < _HALF_RANGE
