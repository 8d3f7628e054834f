"""Reads the files beside a `.log`, and checks them against it (`DumpLogSegments`).

Each function yields the file's lines and adds faults to `Findings`. Zeros behind the first entry
are the preallocated rest of an open index, so reading ends there.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from struct import Struct
from typing import Final

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, read_header
from kafkapy.record.records import batch_records
from kafkapy.storage.checkpoints import (
    read_epochs,
    read_offsets,
    read_partition_metadata,
)
from kafkapy.storage.file_records import scan_batches
from kafkapy.storage.filesystem import File, FileSystem, read_file
from kafkapy.storage.log_names import INDEX_SUFFIX, LOG_SUFFIX
from kafkapy.storage.producer_snapshot import decode_snapshot
from kafkapy.storage.producer_state import NO_OFFSET, ProducerEntry
from kafkapy.tools.dump.files import BrokenFile, CorruptSnapshot, IndexChecks, base_offset_of
from kafkapy.tools.dump.findings import (
    INDEX_MISMATCH,
    NOT_FOUND,
    OUT_OF_ORDER,
    TIMESTAMP_MISMATCH,
    Findings,
)
from kafkapy.tools.dump.index_items import (
    AbortedEntry,
    CheckpointEntry,
    EmptyIndex,
    EpochEntry,
    OffsetEntry,
    PartitionMetadata,
    ProducerState,
    SaneIndex,
    TimeEntry,
)
from kafkapy.tools.dump.items import Item

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_ABORTED_ENTRY: Final = Struct(">hqqqq")


def _sibling(path: str, suffix: str) -> str:
    return os.path.join(os.path.dirname(path), os.path.basename(path).split(".")[0] + suffix)


def offset_index(
    fs: FileSystem, path: str, checks: IndexChecks, findings: Findings
) -> Iterator[Item]:
    """Read a `.index`. Each entry's batch must end with the entry's offset."""
    base_offset = base_offset_of(path)
    with closing(fs.open(_sibling(path, LOG_SUFFIX))) as log:
        data = read_file(fs, path)
        entries = _entries(data, _OFFSET_ENTRY)
        if not entries:
            yield EmptyIndex(path)
            return
        if checks.sanity_only:
            _check_sanity(path, data, _OFFSET_ENTRY, base_offset, entries[-1][0])
            yield SaneIndex(path)
            return
        for relative, position in _until_zeros(entries, 0):
            offset = base_offset + relative
            found = _batch_at(log, position, checks.max_message_bytes)
            if found is None:
                raise BrokenFile(f"{path}: no batch begins at position {position}, offset {offset}")
            if found.last_offset != offset:
                findings.add(INDEX_MISMATCH, os.path.abspath(path), (offset, found.last_offset))
            if not checks.verify_only:
                yield OffsetEntry(offset, position)


def time_index(
    fs: FileSystem, path: str, checks: IndexChecks, findings: Findings
) -> Iterator[Item]:
    """Read a `.timeindex`. Each entry's batch must end with the entry's offset, and its newest
    timestamp must be the entry's.
    """
    base_offset, name = base_offset_of(path), os.path.abspath(path)
    with closing(fs.open(_sibling(path, LOG_SUFFIX))) as log:
        positions = list(
            _until_zeros(_entries(read_file(fs, _sibling(path, INDEX_SUFFIX)), _OFFSET_ENTRY), 0)
        )
        data = read_file(fs, path)
        entries = _entries(data, _TIME_ENTRY)
        if checks.sanity_only:
            if entries:
                _check_sanity(path, data, _TIME_ENTRY, base_offset, entries[-1][1])
                _check_times(path, entries[0][0], entries[-1][0])
            yield SaneIndex(path)
            return
        previous = NO_TIMESTAMP
        for timestamp, relative in _until_zeros(entries, 1):
            at = bisect_right(positions, relative, key=lambda entry: entry[0])
            found = _batch_reaching(log, base_offset + relative, positions[at - 1][1] if at else 0)
            last_offset, newest = found or (-1, NO_TIMESTAMP)
            if last_offset != base_offset + relative:
                findings.add(NOT_FOUND, name, (base_offset + relative, last_offset))
            else:
                if newest != timestamp:
                    findings.add(TIMESTAMP_MISMATCH, name, (timestamp, newest))
                if previous >= timestamp:
                    findings.add(OUT_OF_ORDER, name, (timestamp, previous))
            if not checks.verify_only:
                yield TimeEntry(timestamp, base_offset + relative)
            previous = timestamp


def _entries(data: bytes, layout: Struct) -> list[tuple[int, ...]]:
    """All whole entries."""
    whole = len(data) // layout.size * layout.size
    return list(layout.iter_unpack(data[:whole]))


def _until_zeros(entries: list[tuple[int, ...]], field: int) -> Iterator[tuple[int, ...]]:
    for i, entry in enumerate(entries):
        if i and entry[field] == 0:
            return
        yield entry


def _check_sanity(
    path: str, data: bytes, layout: Struct, base_offset: int, last_relative: int
) -> None:
    """Kafka's `sanityCheck` of both indexes."""
    if last_relative < 0:
        raise BrokenFile(
            f"Corrupt index found, index file ({os.path.abspath(path)}) has non-zero size but the"
            f" last offset is {base_offset + last_relative} which is less than the base offset"
            f" {base_offset}."
        )
    if len(data) % layout.size:
        raise BrokenFile(
            f"Index file {os.path.abspath(path)} is corrupt, found {len(data)} bytes which is"
            f" neither positive nor a multiple of {layout.size}."
        )


def _check_times(path: str, first: int, last: int) -> None:
    if last < first:
        raise BrokenFile(
            f"Corrupt time index found, time index file ({os.path.abspath(path)}) has non-zero size"
            f" but the last timestamp is {last} which is less than the first timestamp {first}"
        )


def _batch_at(log: File, position: int, max_bytes: int) -> BatchHeader | None:
    """The header of the whole batch at `position`, if it is no larger than `max_bytes`."""
    end = min(log.size(), position + max_bytes)
    try:
        header = read_header(log.pread(min(HEADER_SIZE, max(0, end - position)), position))
    except ApiError:
        return None
    return header if position + header.size <= end else None


def _batch_reaching(log: File, offset: int, position: int) -> tuple[int, int] | None:
    """(last offset, newest timestamp) of the first batch from `position` on that has `offset` or
    a later one.
    """
    for _, header, data in scan_batches(log, position, log.size()):
        if header.last_offset >= offset:
            newest = NO_TIMESTAMP
            if header.last_offset == offset:
                times = (record.timestamp for record in batch_records(data, header))
                newest = max(times, default=NO_TIMESTAMP)
            return header.last_offset, newest
    return None


def transaction_index(fs: FileSystem, path: str) -> Iterator[Item]:
    """A `.txnindex`."""
    base_offset_of(path)
    for entry in _entries(read_file(fs, path), _ABORTED_ENTRY):
        yield AbortedEntry(*entry)


def producer_snapshot(fs: FileSystem, path: str) -> Iterator[Item]:
    """A `.snapshot`.

    Raises:
        CorruptSnapshot: the file is corrupt.
    """
    try:
        entries = decode_snapshot(read_file(fs, path))
    except ApiError as error:
        raise CorruptSnapshot(error.message) from None
    yield from map(_producer, entries)


def _producer(entry: ProducerEntry) -> ProducerState:
    first_offset = entry.transaction_first_offset
    known = (
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        None if first_offset == NO_OFFSET else first_offset,
        entry.last_timestamp,
    )
    if not entry.batches:
        return ProducerState(*known, None, None, None, None, None)
    last = entry.batches[0]
    return ProducerState(
        *known,
        last.first_sequence,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        last.timestamp,
    )


def _existing(fs: FileSystem, path: str) -> str:
    """The path of a file that can be opened; the readers below take an absent file for an empty
    one.

    Raises:
        OSError: it cannot be opened.
    """
    fs.open(path).close()
    return path


def offset_checkpoint(fs: FileSystem, path: str) -> Iterator[Item]:
    """A `*-offset-checkpoint` of a log directory."""
    for partition, offset in read_offsets(fs, _existing(fs, path)).items():
        yield CheckpointEntry(partition.topic, partition.partition, offset)


def epoch_checkpoint(fs: FileSystem, path: str) -> Iterator[Item]:
    """A `leader-epoch-checkpoint`."""
    for epoch, start_offset in read_epochs(fs, _existing(fs, path)):
        yield EpochEntry(epoch, start_offset)


def partition_metadata(fs: FileSystem, path: str) -> Iterator[Item]:
    """A `partition.metadata`."""
    topic_id = read_partition_metadata(fs, _existing(fs, path))
    if topic_id is not None:
        yield PartitionMetadata(str(topic_id))
