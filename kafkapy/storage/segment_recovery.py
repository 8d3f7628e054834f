"""Reads a segment batch by batch, finds its valid part, and rebuilds its indexes.

Base offset and length of a batch are outside its CRC, so the order of offsets is checked too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import MAGIC, NO_LEADER_EPOCH, NO_TIMESTAMP, BatchHeader
from kafkapy.storage.file_records import scan_batches
from kafkapy.storage.leader_epoch_cache import EpochEntries, LeaderEpochCache
from kafkapy.storage.log_append import appended_marker
from kafkapy.storage.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from kafkapy.storage.producer_log import ProducerLog


class RecoveryResult(NamedTuple):
    """The result of a recovery: the valid bytes, the offset after them, and the damage behind them
    ('' if none).
    """

    valid_bytes: int
    next_offset: int
    damage: str


class ValidBatches:
    """Iterates over (position, header, bytes) of a segment up to its end or first damage.

    Afterwards `position` and `next_offset` are its end, and `damage` is the damage found there.
    """

    def __init__(self, segment: LogSegment) -> None:
        self._segment = segment
        self.position = 0
        self.next_offset = segment.base_offset
        self.damage = ""

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        segment, end = self._segment, self._segment.size
        try:
            for at, header, batch in scan_batches(segment.records.handle(), 0, end):
                self.damage = _damage(segment, header, batch, self.next_offset)
                if self.damage:
                    return
                self.position, self.next_offset = at + header.size, header.next_offset
                yield at, header, batch
        except ApiError as error:
            self.damage = error.message
        if self.position < end and not self.damage:
            self.damage = "the last batch is cut off"


def damage_of(segment: LogSegment) -> str:
    """The first damage of a segment; '' if there is none."""
    batches = ValidBatches(segment)
    for _ in batches:
        pass
    return batches.damage


def recover_segment(
    segment: LogSegment,
    index_interval_bytes: int,
    epochs: LeaderEpochCache | None = None,
    producers: ProducerLog | None = None,
) -> RecoveryResult:
    """Read the segment to its end or first damage, and rebuild its indexes. The `.log` is
    unchanged.

    Batches are applied to `epochs` and `producers` as if they were appended. Without `producers`
    the transaction index is kept, because it cannot be rebuilt alone.
    """
    segment.offset_index.create()
    segment.time_index.create()
    segment.set_max_timestamp(NO_TIMESTAMP, segment.base_offset)
    if producers is not None:
        segment.transaction_index.reset()
    indexed = 0
    batches = ValidBatches(segment)
    for position, header, batch in batches:
        if header.max_timestamp > segment.max_timestamp:
            segment.set_max_timestamp(header.max_timestamp, header.last_offset)
        if position - indexed > index_interval_bytes:
            segment.add_index_entry(header.last_offset, position)
            indexed = position
        _apply_batch(header, batch, segment, epochs, producers)
    segment.bytes_since_index_entry = batches.position - indexed
    return RecoveryResult(batches.position, batches.next_offset, batches.damage)


def _damage(segment: LogSegment, header: BatchHeader, batch: memoryview, expected: int) -> str:
    try:
        validate_crc(batch, 0, header)
    except ApiError as error:
        return error.message
    if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return f"offset {header.last_offset} cannot be in the segment {segment.base_offset}"
    first = header.base_offset if header.magic == MAGIC else header.last_offset
    if first < expected:
        return f"offset {first} comes after offset {expected - 1}"
    return ""


def _apply_batch(
    header: BatchHeader,
    batch: memoryview,
    segment: LogSegment,
    epochs: LeaderEpochCache | None,
    producers: ProducerLog | None,
) -> None:
    if header.magic < MAGIC:
        return
    if epochs is not None and header.partition_leader_epoch > epochs.latest:
        epochs.assign(header.partition_leader_epoch, header.base_offset)
    if producers is not None and header.producer_id >= 0:
        producers.append(header, header.base_offset, appended_marker(header, batch), segment)


def epochs_in(segment: LogSegment) -> tuple[EpochEntries, bool]:
    """(leader epoch, first offset) from the batch headers, and whether batches of an old format,
    without epochs, precede them. Ends at bytes that cannot be batches.
    """
    entries: EpochEntries = []
    is_old = False
    with suppress(ApiError):
        for _, header in segment.records.headers():
            if header.magic < MAGIC:
                entries.clear()
                is_old = True
            elif header.partition_leader_epoch > (entries[-1][0] if entries else NO_LEADER_EPOCH):
                entries.append((header.partition_leader_epoch, header.base_offset))
    return entries, is_old


def has_sane_indexes(segment: LogSegment, has_offset_index: bool, has_time_index: bool) -> bool:
    """Whether the indexes of a closed segment can be trusted without reading the segment."""
    return (
        has_offset_index
        and has_time_index
        and segment.offset_index.is_sane(segment.size)
        and segment.time_index.is_sane()
        and not _lacks_timestamp(segment)
        and segment.transaction_index.is_sane()
    )


def _lacks_timestamp(segment: LogSegment) -> bool:
    """Whether the only time index entry has a zero that is not the timestamp of the batches."""
    index = segment.time_index
    return index.count == 1 and index.last_entry[0] == 0 and segment.max_timestamp != 0
