"""The producer state of a log: checked and updated by appends, saved in snapshots, rebuilt.

Kafka's snapshots hold only the last batch of each producer. If a producer repeats its batches in
flight after the broker has loaded a snapshot, Kafka refuses them as out of order. Here the batches
before the last are read from the end of the log (`docs/decisions/0018`).
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import MAGIC, NO_PRODUCER_ID, TRANSACTIONAL_BIT, BatchHeader
from kafkapy.record.control import EndTransactionMarker
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_append import appended_marker
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.producer_snapshot import SnapshotFiles
from kafkapy.storage.producer_state import (
    BATCHES_KEPT,
    ProducerBatch,
    ProducerEntry,
    ProducerState,
    batch_of,
    is_expired,
)
from kafkapy.storage.transaction_index import AbortedTransaction
from kafkapy.storage.transaction_verification import TransactionVerification

logger = logging.getLogger("kafka.log.ProducerStateManager")

RESTORE_BYTES_MAX: Final = 512 * 1024
RESTORE_AGE_MAX_MS: Final = 10 * 60_000
"""The time for which a producer may repeat a batch (delivery.timeout.ms is 2 minutes)."""


class ProducerConfig(NamedTuple):
    """The lifetime of idle producers; whether transactions are verified (KIP-890)."""

    id_expiration_ms: int = 86_400_000
    verifies_transactions: bool = False


DEFAULT_PRODUCER_CONFIG: Final = ProducerConfig()


class ProducerLog:
    """Producer state and its files. `unflushed` has the snapshots for the next flush."""

    __slots__ = ("config", "snapshots", "state", "unflushed", "verification")

    def __init__(self, snapshots: SnapshotFiles, config: ProducerConfig) -> None:
        self.state = ProducerState()
        self.verification = TransactionVerification(self.state, config.verifies_transactions)
        self.snapshots = snapshots
        self.config = config
        self.unflushed: list[str] = []

    def check(
        self, header: BatchHeader, marker: EndTransactionMarker | None, is_client: bool
    ) -> ProducerBatch | None:
        """The earlier append that a client's batch repeats; None if it may be appended.

        Raises:
            ApiError: the producer's epoch, sequence or transaction forbids it.
        """
        state = self.state
        if is_client:
            duplicate = state.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        if marker is None and header.attributes & TRANSACTIONAL_BIT:
            self.verification.check(header.producer_id, header.producer_epoch, header.base_sequence)
        state.validate(header, marker)
        if is_client:
            state.validate_sequence(header)
        return None

    def append(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: EndTransactionMarker | None,
        segment: LogSegment | None,
    ) -> None:
        """Apply an appended batch to the state. An ABORT is added to the index of `segment`."""
        if header.attributes & TRANSACTIONAL_BIT:
            if marker is None:
                self.verification.on_transaction_begun(header.producer_id)
            else:
                self.verification.on_transaction_ended(header.producer_id, header.producer_epoch)
        completed = self.state.append(header, base_offset, marker)
        if completed is None:
            return
        if completed.aborted and segment is not None:
            segment.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    self.state.last_stable_offset(completed),
                )
            )
        self.state.complete(completed)

    def expire(self, now_ms: int) -> int:
        """Remove idle producers, and verifications as old. Returns the number of both."""
        expiration_ms = self.config.id_expiration_ms
        verifications = self.verification.expire(now_ms, expiration_ms)
        return verifications + self.state.expire(now_ms, expiration_ms)

    def take_over(self, other: ProducerLog) -> None:
        """Take the producers and verifications of `other`, of a log with the same content."""
        self.state = other.state
        self.verification = other.verification

    def take_snapshot(self, offset: int) -> None:
        """Save the state at `offset`."""
        self.snapshots.write(offset, self.state)
        self.unflushed.append(self.snapshots.path(offset))

    def rebuild(self, local: LocalLog, start: int, end: int, now_ms: int) -> None:
        """Rebuild the state from [start, end): load the newest snapshot, then apply the batches
        after it. If they cannot be read, the state is incomplete.
        """
        self.snapshots.remove_unless(lambda offset: offset <= end)
        position = self.load_snapshot(start, end, now_ms)
        if position > start and self.state.producers:
            self._restore_earlier_batches(local, position, now_ms)
        try:
            self._replay(local, position, end)
        except ApiError as error:
            logger.error("Producer state of %s is incomplete: %s", local.directory, error)

    def at_offset(self, local: LocalLog, offset: int, now_ms: int) -> ProducerLog:
        """The producers as of an earlier offset. This state does not change.

        Raises:
            ApiError: CORRUPT_MESSAGE, the batches cannot be read.
        """
        producers = ProducerLog(self.snapshots, self.config)
        start = local.segments.first.base_offset
        producers._replay(local, producers.load_snapshot(start, offset, now_ms), offset)
        return producers

    def check_rebuild(self, local: LocalLog, start: int, end: int) -> None:
        """Check the CRCs of the batches that `rebuild` would apply. It reads only their headers,
        and a wrong bit there would create producers or transactions that are not in the log.

        Raises:
            ApiError: CORRUPT_MESSAGE.
        """
        found = self.snapshots.load_latest(start, end)
        for segment, at, header in _batches(local, start if found is None else found[0], end):
            if header.magic != MAGIC or header.producer_id != NO_PRODUCER_ID:
                segment.records.check(at, header)

    def _replay(self, local: LocalLog, position: int, end: int) -> None:
        """Apply the batches from `position` up to `end` to the state."""
        for segment, at, header in _batches(local, position, end):
            if header.producer_id >= 0 and header.magic == MAGIC:
                batch = segment.records.read(at, header.size) if header.is_control else b""
                self.append(header, header.base_offset, appended_marker(header, batch), None)

    def load_snapshot(self, start: int, end: int, now_ms: int) -> int:
        """Load the newest readable snapshot in [start, end]. Returns its offset, or `start`."""
        found = self.snapshots.load_latest(start, end)
        entries = [] if found is None else found[1]
        self.state.load(
            [e for e in entries if not is_expired(e, now_ms, self.config.id_expiration_ms)]
        )
        return start if found is None else found[0]

    def _restore_earlier_batches(self, local: LocalLog, end: int, now_ms: int) -> None:
        """Find the batches before the last one of each producer, in the last part of the log before
        `end`. Ends at a segment that was not written in the last `RESTORE_AGE_MAX_MS`.
        """
        segments, left = local.segments, RESTORE_BYTES_MAX
        for i in range(segments.floor_index(end - 1), -1, -1):
            segment = segments[i]
            if left <= 0 or now_ms - segment.modified_ms() > RESTORE_AGE_MAX_MS:
                return
            try:
                begin = segment.position_before(end, left)
                self._restore_from_segment(segment, begin, end)
            except ApiError as error:
                logger.warning("What producers may send again is not known: %s", error)
                return
            left -= segment.records.size - begin

    def _restore_from_segment(self, segment: LogSegment, begin: int, end: int) -> None:
        """Find the batches before the known ones, from a position in a segment to offset `end`.

        Raises:
            ApiError: CORRUPT_MESSAGE. A producer whose batches cannot be read keeps what it had.
        """
        earlier: defaultdict[int, deque[tuple[int, BatchHeader]]] = defaultdict(_last_batches)
        producers = self.state.producers
        for at, header in segment.records.headers(begin):
            if header.base_offset >= end:
                break
            entry = producers.get(header.producer_id) if header.magic == MAGIC else None
            if entry is not None and _precedes(header, entry):
                earlier[header.producer_id].append((at, header))
        for producer_id, batches in earlier.items():
            for at, header in batches:
                segment.records.check(at, header)
            producers[producer_id].prepend_batches([batch_of(h, h.base_offset) for _, h in batches])


def _last_batches() -> deque[tuple[int, BatchHeader]]:
    return deque(maxlen=BATCHES_KEPT)


def _batches(
    local: LocalLog, position: int, end: int
) -> Iterator[tuple[LogSegment, int, BatchHeader]]:
    """(segment, position in it, header) of the batches from one offset up to another."""
    for segment in local.segments.from_offset(position) if position < end else ():
        first = segment.find(max(position, segment.base_offset))
        for at, header in segment.records.headers(first[0]) if first is not None else ():
            if header.base_offset >= end:
                return
            yield segment, at, header


def _precedes(header: BatchHeader, entry: ProducerEntry) -> bool:
    """Whether this batch has the entry's epoch, and precedes its known batches."""
    return (
        not header.is_control
        and header.producer_epoch == entry.producer_epoch
        and bool(entry.batches)
        and header.last_offset < entry.batches[0].first_offset
    )
