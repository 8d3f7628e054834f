"""The states of records in a share group (KIP-932), and ranges of records in one state."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from heapq import heappop, heappush
from itertools import chain
from typing import Final, NamedTuple

from kafkapy.common.uuid import Uuid

UNINITIALIZED_START_OFFSET: Final = -1
"""The start offset of a share partition that nothing was fetched from."""
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


class SharePartitionKey(NamedTuple):
    """A partition as one share group consumes it."""

    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The key of its coordinator: FindCoordinator's, and that of the hash."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


def joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Sorted batches, in which neighbours with the same state and count are one."""
    found: list[StateBatch] = []
    for batch in batches:
        last = found[-1] if found else None
        if last is not None and (last.last + 1, *last[2:]) == (batch.first, *batch[2:]):
            found[-1] = last._replace(last=batch.last)
        else:
            found.append(batch)
    return found


def merged(
    known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """All batches as ones that do not overlap, from the start offset on. Of a record that is in
    several of them the highest delivery count holds, then the latest state, so that a request that
    comes late undoes nothing. Kafka: `PersisterStateBatchCombiner`.
    """
    rows = sorted(row for row in chain(known, new) if row.last >= start_offset)
    found: list[StateBatch] = []
    present: list[tuple[int, int, int]] = []  # a heap: the batch that holds is the first
    offset, index = start_offset, 0
    while index < len(rows) or present:
        if not present:
            offset = max(offset, rows[index].first)
        while index < len(rows) and rows[index].first <= offset:
            row = rows[index]
            heappush(present, (-row.delivery_count, -row.state, row.last))
            index += 1
        while present and present[0][2] < offset:
            heappop(present)
        if not present:
            continue
        count, state, last = present[0]
        if index < len(rows):
            last = min(last, rows[index].first - 1)
        found.append(StateBatch(offset, last, DeliveryState(-state), -count))
        offset = last + 1
    return joined(found)
