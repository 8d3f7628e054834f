"""The records of a share partition that are in flight: sorted runs of offsets in one state.

The transitions of a record (`TRANSITIONS`); each but the first ends its acquisition:

    AVAILABLE -acquire-> ACQUIRED      the delivery count grows
    ACQUIRED  -accept->  ACKNOWLEDGED
    ACQUIRED  -release-> AVAILABLE     ARCHIVED at the delivery limit; also when a lock expires
    ACQUIRED  -reject->  ARCHIVED      also for gaps, which have no records

Kafka: `InFlightBatch`, `InFlightState`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple

from kafkapy.common.share_state import DeliveryState, StateBatch

NO_MEMBER: Final = ""
_FIRST: Final = attrgetter("first")


class AckType(IntEnum):
    """Acknowledgement types of the protocol."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


TRANSITIONS: Final[Mapping[AckType, DeliveryState]] = {
    AckType.GAP: DeliveryState.ARCHIVED,
    AckType.ACCEPT: DeliveryState.ACKNOWLEDGED,
    AckType.RELEASE: DeliveryState.AVAILABLE,
    AckType.REJECT: DeliveryState.ARCHIVED,
    AckType.RENEW: DeliveryState.ACQUIRED,
}
"""The state of an ACQUIRED record after its acknowledgement."""


class Delivery(NamedTuple):
    """The state of a run's records. Only ACQUIRED records have an owner and a lock."""

    state: DeliveryState
    delivery_count: int
    member_id: str = NO_MEMBER
    lock_deadline_ms: int = 0


class PendingChange(NamedTuple):
    """A change that is being stored: its number, and the delivery to restore if that fails."""

    number: int
    previous: Delivery


class Run:
    """Records with the same delivery. `pending` is set while a change of it is being stored."""

    __slots__ = ("delivery", "first", "last", "pending")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        self.last = last
        self.delivery = delivery
        self.pending: PendingChange | None = None

    @property
    def state(self) -> DeliveryState:
        return self.delivery.state

    @property
    def is_available(self) -> bool:
        """Whether the records can be acquired."""
        return self.delivery.state is DeliveryState.AVAILABLE and self.pending is None

    @property
    def is_locked(self) -> bool:
        """Whether a member has acquired the records, and has not acknowledged them."""
        return self.delivery.state is DeliveryState.ACQUIRED

    @property
    def batch(self) -> StateBatch:
        """The run as it is stored."""
        return StateBatch(self.first, self.last, self.state, self.delivery.delivery_count)


class RecordsInFlight:
    """The runs, sorted; offsets between them have not been delivered yet."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []

    @property
    def start(self) -> int:
        """The first offset; 0 without runs."""
        return self.runs[0].first if self.runs else 0

    @property
    def end(self) -> int | None:
        """The last offset; None without runs."""
        return self.runs[-1].last if self.runs else None

    def overlapping(self, first: int, last: int) -> Iterator[Run]:
        """The runs that overlap a range."""
        for index in range(self._index(first), len(self.runs)):
            run = self.runs[index]
            if run.first > last:
                return
            yield run

    def split_range(self, first: int, last: int) -> list[Run]:
        """The runs in a range. Runs that extend beyond it are split."""
        self._split(first)
        self._split(last + 1)
        return list(self.overlapping(first, last))

    def add(self, first: int, last: int, delivery: Delivery) -> Run:
        """Add a run of offsets that are in no other run."""
        run = Run(first, last, delivery)
        self.runs.insert(bisect_right(self.runs, first, key=_FIRST), run)
        return run

    def gaps(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of a range that are in no run."""
        found = []
        for run in self.overlapping(first, last):
            if run.first > first:
                found.append((first, run.first - 1))
            first = run.last + 1
        if first <= last:
            found.append((first, last))
        return found

    def remove_before(self, offset: int) -> None:
        """Remove the records before an offset."""
        self._split(offset)
        del self.runs[: bisect_right(self.runs, offset - 1, key=_FIRST)]

    def _index(self, offset: int) -> int:
        """The index of the first run that ends at or after an offset."""
        index = bisect_right(self.runs, offset, key=_FIRST)
        if index and self.runs[index - 1].last >= offset:
            return index - 1
        return index

    def _split(self, offset: int) -> None:
        """Split the run that has an offset, so that a run begins there."""
        index = self._index(offset)
        if index == len(self.runs) or self.runs[index].first >= offset:
            return
        run = self.runs[index]
        rest = Run(offset, run.last, run.delivery)
        rest.pending = run.pending
        run.last = offset - 1
        self.runs.insert(index + 1, rest)
