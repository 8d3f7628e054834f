"""One partition as a share group consumes it, at the partition's leader: acquisition, locks and
acknowledgement.

Calls take the time and return `Change`s for the share coordinator; the caller reports each with
`complete_change` or `roll_back_change`. Until then its records are neither delivered nor
acknowledged again. The expiry of a lock applies at once, stored or not. Kafka:
`kafka.server.share.SharePartition`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import DeliveryState, StateBatch, combine_batches
from kafkapy.replication.shares.records_in_flight import (
    TRANSITIONS,
    AckType,
    Delivery,
    PendingChange,
    RecordsInFlight,
    Run,
)

_AVAILABLE, _ARCHIVED = DeliveryState.AVAILABLE, DeliveryState.ARCHIVED
_ACQUIRED: Final = DeliveryState.ACQUIRED
_ARCHIVED_GAP: Final = Delivery(_ARCHIVED, 0)


class ShareLimits(NamedTuple):
    """Configs of a share partition: those of the broker, or of the group."""

    record_locks_max: int = 2_000
    delivery_count_limit: int = 5
    lock_duration_ms: int = 30_000
    may_renew: bool = True


class RecordBatch(NamedTuple):
    """The offsets of one batch of the log."""

    first: int
    last: int


class AcquiredRecords(NamedTuple):
    """Records that a member acquired, with their delivery count."""

    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """Acknowledged records: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def ranges(self, offset: int) -> Iterable[tuple[int, int, AckType]]:
        """The ranges with one type, from an offset on."""
        start = max(0, offset - self.first)
        if len(self.types) == 1:
            yield self.first + start, self.last, AckType(self.types[0])
            return
        for index in range(start + 1, len(self.types) + 1):
            if index == len(self.types) or self.types[index] != self.types[start]:
                first = self.first + start
                yield first, self.first + index - 1, AckType(self.types[start])
                start = index


@dataclass(slots=True)
class Change:
    """State to store."""

    number: int
    batches: list[StateBatch] = field(default_factory=list)


class SharePartition:
    """The delivery states of a partition's records, from the start offset on."""

    def __init__(self, limits: ShareLimits) -> None:
        self.limits = limits
        self.state_epoch = 0
        self.start_offset = 0
        self._records = RecordsInFlight()
        self._may_acquire_earlier = False
        """Whether records before the end may be available: released ones, or gaps."""
        self._last_number = 0
        self._lock_deadlines: list[int] = []

    def restore(self, start_offset: int, state_epoch: int, batches: Iterable[StateBatch]) -> None:
        """Load the stored state."""
        self.start_offset, self.state_epoch = start_offset, state_epoch
        for batch in sorted(batches):
            delivery = Delivery(batch.state, batch.delivery_count)
            self._records.add(batch.first, batch.last, delivery)
            self._may_acquire_earlier = True
        self._move_start()

    # Offsets.

    @property
    def end_offset(self) -> int:
        """The offset after the last record that was delivered."""
        end = self._records.end
        return self.start_offset if end is None else max(self.start_offset, end + 1)

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired."""
        end = self.end_offset
        if self._may_acquire_earlier:
            offset = self.start_offset
            for run in self._records.overlapping(offset, end):
                if run.first > offset or run.is_available:
                    return offset
                offset = run.last + 1
            self._may_acquire_earlier = False
        return end

    @property
    def can_acquire(self) -> bool:
        """Whether a member may get more records."""
        end = self.end_offset
        in_flight = end - self.start_offset
        return self.next_fetch_offset < end or in_flight < self.limits.record_locks_max

    @property
    def is_idle(self) -> bool:
        """Whether no member has records, and nothing is being stored."""
        return not any(run.is_locked or run.pending is not None for run in self._records.runs)

    @property
    def delivery_complete_count(self) -> int:
        """The number of records from the start offset on that are never delivered again."""
        runs = self._records.overlapping(self.start_offset, self.end_offset)
        return sum(run.last - run.first + 1 for run in runs if run.state.is_terminal)

    def advance_start(self, log_start_offset: int) -> None:
        """Drop records before the start of the log. Acquired ones stay until acknowledged."""
        if log_start_offset <= self.start_offset:
            return
        for run in self._records.split_range(self.start_offset, log_start_offset - 1):
            if run.is_available:
                run.delivery = run.delivery._replace(state=_ARCHIVED)
        self.start_offset = log_start_offset
        self._may_acquire_earlier = True
        if all(not run.is_locked for run in self._records.overlapping(0, log_start_offset - 1)):
            self._records.remove_before(log_start_offset)
        self._move_start()

    # Acquisition.

    def available_count(self, batches: Iterable[RecordBatch]) -> int:
        """The number of offsets of these batches that a member could acquire."""
        count = 0
        for batch in batches:
            count += batch.last - batch.first + 1
            for run in self._records.overlapping(batch.first, batch.last):
                if not run.is_available:
                    count -= min(run.last, batch.last) - max(run.first, batch.first) + 1
        return count

    def acquire(
        self,
        now_ms: int,
        member_id: str,
        fetch_offset: int,
        batches: Sequence[RecordBatch],
        max_records: int,
        batch_size: int,
        *,
        is_limit_strict: bool = False,
        aborted: Sequence[RecordBatch] = (),
    ) -> list[AcquiredRecords]:
        """Acquire for a member the available records of `batches`, which a read of the log at
        `fetch_offset` found. Acquires whole batches, unless the limit is strict. Archives batches
        of `aborted` transactions, and offsets between batches, which compaction has removed."""
        if not batches:
            return []
        for batch in aborted:
            self._archive_new(batch)
        offset, end = max(fetch_offset, self.start_offset), self.end_offset
        capacity = self.limits.record_locks_max - (end - self.start_offset)
        remaining = max_records
        found: list[Run] = []
        for batch in batches:
            if remaining <= 0 or (batch.first >= end and capacity <= 0):
                break
            if batch.first > offset:
                self._archive_new(RecordBatch(offset, batch.first - 1))
            first = max(batch.first, self.start_offset)
            limit = remaining if is_limit_strict else None
            # The end is inside a batch if the acquisition of the rest was not stored.
            last = batch.last if capacity > 0 else min(batch.last, end - 1)
            taken = self._acquire_batch(now_ms, member_id, first, last, limit)
            offset = batch.last + 1
            found += taken
            remaining -= sum(run.last - run.first + 1 for run in taken)
            capacity -= sum(run.last - run.first + 1 for run in taken if run.first >= end)
        self._move_start()
        if found:
            self._add_lock_deadline(now_ms + self.limits.lock_duration_ms)
        return _join_runs(found, batch_size)

    def _acquire_batch(
        self, now_ms: int, member_id: str, first: int, last: int, limit: int | None
    ) -> list[Run]:
        records = self._records
        for gap in records.gaps(first, last):
            records.add(*gap, Delivery(_AVAILABLE, 0))
        taken = []
        for run in records.split_range(first, last):
            if not run.is_available:
                continue
            if limit is not None and run.last - run.first >= limit:
                if limit:
                    run = records.split_range(run.first, run.first + limit - 1)[0]
                    taken.append(self._lock(now_ms, member_id, run))
                self._may_acquire_earlier = True
                break
            taken.append(self._lock(now_ms, member_id, run))
            limit = None if limit is None else limit - (run.last - run.first + 1)
        return taken

    def _lock(self, now_ms: int, member_id: str, run: Run) -> Run:
        deadline_ms = now_ms + self.limits.lock_duration_ms
        count = run.delivery.delivery_count + 1
        run.delivery = Delivery(_ACQUIRED, count, member_id, deadline_ms)
        return run

    def _archive_new(self, batch: RecordBatch) -> None:
        """Archive the offsets of a batch, except acquired ones: they are never delivered."""
        first = max(batch.first, self.start_offset)
        for gap in self._records.gaps(first, batch.last):
            self._records.add(*gap, _ARCHIVED_GAP)
        for run in self._records.split_range(first, batch.last):
            if run.is_available:
                run.delivery = run.delivery._replace(state=_ARCHIVED)

    # Acknowledgement.

    def acknowledge(
        self, now_ms: int, member_id: str, batches: Iterable[Acknowledgement]
    ) -> Change | None:
        """Apply a member's acknowledgements, all or none. Returns the change to store, if any.

        Raises:
            ApiError: INVALID_RECORD_STATE, for records that the member has not acquired;
                INVALID_REQUEST, for records that no member has acquired yet.
        """
        change = self._begin_change()
        renewed: list[tuple[int, int]] = []
        try:
            for batch in batches:
                if batch.last >= self.start_offset:
                    self._check_in_flight(batch)
                elif batch.last < self._records.start:
                    continue
                for first, last, kind in batch.ranges(self._records.start):
                    self._acknowledge(member_id, first, last, kind, change)
                    if kind is AckType.RENEW:
                        renewed.append((first, last))
        except ApiError:
            self.roll_back_change(change)
            raise
        self._renew(now_ms, renewed)
        return self._finish_change(change)

    def _check_in_flight(self, batch: Acknowledgement) -> None:
        """Require that all records of a batch from the start offset on are in flight. An earlier
        leader may have delivered others, because acquisitions are not stored. The errors are those
        of Kafka's `fetchSubMapForAcknowledgementBatch`.
        """
        records = self._records
        gaps = records.gaps(max(batch.first, self.start_offset), batch.last)
        if not gaps:
            return
        if not records.runs or self.start_offset <= batch.first < records.start:
            raise _invalid(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        first, last = gaps[-1]
        if last < batch.last:
            raise _not_acquired()
        name = "first" if first == batch.first else "last"
        message = f"The {name} offset in request is past acquired records."
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Batch record not found. {message}")

    def _acknowledge(
        self, member_id: str, first: int, last: int, kind: AckType, change: Change
    ) -> None:
        """Check a range, and apply the acknowledgement unless it is a renewal."""
        if kind is AckType.RENEW and not self.limits.may_renew:
            raise _invalid("Renewing acquisition locks is not enabled for the group.")
        for run in self._records.split_range(first, last):
            if run.last < self.start_offset and not run.is_locked:
                continue
            if run.pending is not None or not run.is_locked:
                raise _not_acquired()
            if run.delivery.member_id != member_id:
                raise _invalid("Member is not the owner of batch record")
            if kind is not AckType.RENEW:
                self._end_lock(
                    run, self._delivery_after_lock(run, TRANSITIONS[kind]), change, is_pending=True
                )

    def _renew(self, now_ms: int, ranges: Iterable[tuple[int, int]]) -> None:
        """Renew locks, when the whole request is accepted. A request may name a record twice, so an
        earlier renewal could not be undone."""
        deadline_ms = now_ms + self.limits.lock_duration_ms
        for first, last in ranges:
            for run in self._records.split_range(first, last):
                if run.is_locked:
                    run.delivery = run.delivery._replace(lock_deadline_ms=deadline_ms)
                    self._add_lock_deadline(deadline_ms)

    def release(self, member_id: str) -> Change | None:
        """Release all records that a member has acquired, because its session has ended. That
        delivery does not count, because the member may not have seen the records."""
        change = self._begin_change()
        for run in self._records.runs:
            if run.is_locked and run.delivery.member_id == member_id:
                is_kept = run.last >= self.start_offset
                state = _AVAILABLE if is_kept else _ARCHIVED
                count = run.delivery.delivery_count - is_kept
                self._end_lock(run, Delivery(state, count), change, is_pending=True)
        return self._finish_change(change)

    # Locks.

    def next_deadline_ms(self) -> int | None:
        """The time at which `expire` is due."""
        return self._lock_deadlines[0] if self._lock_deadlines else None

    def expire(self, now_ms: int) -> Change | None:
        """Release the records that were not acknowledged in time."""
        while self._lock_deadlines and self._lock_deadlines[0] <= now_ms:
            heapq.heappop(self._lock_deadlines)
        change = self._begin_change()
        for run in self._records.runs:
            if run.is_locked and run.delivery.lock_deadline_ms <= now_ms:
                self._end_lock(
                    run, self._delivery_after_lock(run, _AVAILABLE), change, is_pending=False
                )
        finished = self._finish_change(change)
        self._may_acquire_earlier = True
        self._move_start()
        return finished

    def _add_lock_deadline(self, deadline_ms: int) -> None:
        if deadline_ms not in self._lock_deadlines[-1:]:
            heapq.heappush(self._lock_deadlines, deadline_ms)

    # Changes.

    def _begin_change(self) -> Change:
        self._last_number += 1
        return Change(self._last_number)

    def _delivery_after_lock(self, run: Run, state: DeliveryState) -> Delivery:
        """The delivery of a run after its lock. Undeliverable records are archived."""
        count = run.delivery.delivery_count
        is_last = count >= self.limits.delivery_count_limit
        if state is _AVAILABLE and (is_last or run.last < self.start_offset):
            state = _ARCHIVED
        return Delivery(state, count)

    def _end_lock(self, run: Run, after: Delivery, change: Change, *, is_pending: bool) -> None:
        if is_pending:
            run.pending = PendingChange(change.number, run.delivery)
        run.delivery = after
        change.batches.append(run.batch)

    def _finish_change(self, change: Change) -> Change | None:
        change.batches = combine_batches((), change.batches, self.start_offset)
        if not change.batches:
            self.complete_change(change)  # nothing to store
            return None
        return change

    def complete_change(self, change: Change) -> None:
        """Complete a change that is in the share coordinator's log."""
        for run in self._runs_of(change):
            run.pending = None
        self._may_acquire_earlier = True
        self._move_start()

    def roll_back_change(self, change: Change) -> None:
        """Undo a change that could not be stored: its records are acquired as before."""
        for run in self._runs_of(change):
            assert run.pending is not None, "this run is not of the change"
            run.delivery, run.pending = run.pending.previous, None
            self._add_lock_deadline(run.delivery.lock_deadline_ms)

    def _runs_of(self, change: Change) -> list[Run]:
        return [
            run
            for run in self._records.runs
            if run.pending is not None and run.pending.number == change.number
        ]

    def _move_start(self) -> None:
        """Advance the start offset to the first record that may still be delivered."""
        offset = self.start_offset
        for run in self._records.overlapping(offset, self.end_offset):
            if run.first > offset or run.pending is not None or not run.state.is_terminal:
                break
            offset = run.last + 1
        self.start_offset = offset
        runs = self._records.runs
        while runs and runs[0].last < offset and runs[0].pending is None and not runs[0].is_locked:
            del runs[0]


def _join_runs(runs: list[Run], batch_size: int) -> list[AcquiredRecords]:
    """Join adjacent runs with the same delivery count, up to the batch size."""
    found: list[AcquiredRecords] = []
    for run in runs:
        count = run.delivery.delivery_count
        if found:
            last = found[-1]
            joins = last.last + 1 == run.first and last.delivery_count == count
            if joins and run.last - last.first < batch_size:
                found[-1] = last._replace(last=run.last)
                continue
        found.append(AcquiredRecords(run.first, run.last, count))
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD_STATE, message)


def _not_acquired() -> ApiError:
    return _invalid("The offset cannot be acknowledged. The offset is not acquired.")
