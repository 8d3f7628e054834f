"""Finds readable batches behind bytes that cannot be batches.

The length and the base offset of a batch lie outside its CRC. If they are damaged, the position of
the next batch is unknown. The next entry of the offset index, or the next segment, has the position
of a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import Buffer, iter_headers
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_segment import LogSegment


class Batches(NamedTuple):
    """Whole batches in the order of their offsets, and the offset after them.

    `damage` is the reason why they end there; empty if there is no damage.
    """

    records: memoryview
    next_offset: int
    damage: str


def valid_batches(records: Buffer, offset: int, end_offset: int) -> Batches:
    """The batches at the start of `records` that continue from `offset` and end by `end_offset`."""
    size, damage = 0, ""
    try:
        for position, header in iter_headers(records):
            if not offset <= header.last_offset < end_offset:
                damage = f"a batch of offset {header.base_offset} cannot be at offset {offset}"
                break
            size, offset = position + header.size, header.next_offset
    except ApiError as error:
        damage = error.message
    return Batches(memoryview(records)[:size], offset, damage)


def batches_after(local: LocalLog, offset: int, end_offset: int) -> Batches:
    """The first batches that can be found behind damage at `offset`, or none.

    Without batches, `next_offset` is the start of the next segment, or `end_offset`. Raises
    OSError.
    """
    segments = local.segments
    for records in _batches_by_index(segments[max(segments.floor_index(offset), 0)], offset):
        found = valid_batches(records, offset + 1, end_offset)
        if found.records:
            return found
    following = [segment.base_offset for segment in segments if segment.base_offset > offset]
    return Batches(memoryview(b""), min([*following, end_offset]), "")


def _batches_by_index(segment: LogSegment, offset: int) -> Iterator[bytes]:
    """The batches between the entries of the offset index for offsets beyond `offset`."""
    index = segment.offset_index
    for i in range(index.search(0, offset - segment.base_offset), index.count):
        position = index.entry(i)[1]
        stop = index.entry(i + 1)[1] if i + 1 < index.count else segment.size
        yield segment.records.read(position, stop - position)
