"""The states of records in a share group (KIP-932), and ranges of records in one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
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
    """The known batches with the new ones over them, from the start offset on."""
    rows = sorted(known)
    for batch in new:
        rows = sorted([batch, *_without(rows, batch)])
    kept = (
        row._replace(first=max(row.first, start_offset)) for row in rows if row.last >= start_offset
    )
    return joined(kept)


def _without(rows: list[StateBatch], batch: StateBatch) -> Iterator[StateBatch]:
    """The parts of rows that a batch does not cover."""
    for row in rows:
        if row.first < batch.first:
            yield row._replace(last=min(row.last, batch.first - 1))
        if row.last > batch.last:
            yield row._replace(first=max(row.first, batch.last + 1))
