"""The states of records in a share group (KIP-932), and ranges of records in one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from kafkapy.common.uuid import Uuid

UNINITIALIZED_START_OFFSET: Final = -1
"""The start offset of a share partition from which nothing has been fetched."""
UNKNOWN_COUNT: Final = -1


class DeliveryState(IntEnum):
    """State of a record, as Kafka writes it. ACQUIRED is never stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


class StateBatch(NamedTuple):
    """Records of one state; `last` is inclusive."""

    first: int
    last: int
    state: DeliveryState
    delivery_count: int


_PROGRESS: Final = attrgetter("delivery_count", "state")


class SharePartitionKey(NamedTuple):
    """A partition as one share group consumes it."""

    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The key that FindCoordinator uses, and whose hash selects the coordinator."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


def combine_batches(
    known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """Combine batches into batches that do not overlap, from the start offset on. Neighbours with
    the same state and count are joined. If a record is in several batches, the highest delivery
    count wins, then the latest state, so that a late request undoes nothing.
    Kafka: `PersisterStateBatchCombiner`.
    """
    rows = [row for row in chain(known, new) if row.last >= start_offset]
    found: list[StateBatch] = []
    overlapping: list[StateBatch] = []
    end = start_offset
    for row in sorted(
        row if row.first >= start_offset else row._replace(first=start_offset) for row in rows
    ):
        if overlapping and row.first > end:
            _add(found, overlapping)
            overlapping = []
        if overlapping and overlapping[-1][:2] == row[:2]:  # usually a run that changes again
            overlapping[-1] = max(overlapping[-1], row, key=_PROGRESS)
        else:
            overlapping.append(row)
        end = max(end, row.last)
    _add(found, overlapping)
    return found


def _add(found: list[StateBatch], rows: Sequence[StateBatch]) -> None:
    """Add sorted rows. Each row but the first overlaps a row before it."""
    for row in rows if len(rows) < 2 else _split_overlaps(rows):
        before = found[-1] if found else None
        if before is not None and before.last + 1 == row.first and before[2:] == row[2:]:
            found[-1] = StateBatch(before.first, *row[1:])
        else:
            found.append(row)


def _split_overlaps(rows: Sequence[StateBatch]) -> Iterator[StateBatch]:
    """Split overlapping rows into rows that do not overlap."""
    present: list[tuple[int, int, int, StateBatch]] = []  # a heap: its first row wins
    offset, index = rows[0].first, 0
    while index < len(rows) or present:
        while index < len(rows) and rows[index].first <= offset:
            row = rows[index]
            heappush(present, (-row.delivery_count, -row.state, row.last, row))
            index += 1
        while present and present[0][2] < offset:
            heappop(present)
        if present:
            _, _, last, row = present[0]
            if index < len(rows):
                last = min(last, rows[index].first - 1)
            yield StateBatch(offset, last, row.state, row.delivery_count)
            offset = last + 1
        elif index < len(rows):
            offset = max(offset, rows[index].first)
