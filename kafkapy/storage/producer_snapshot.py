"""The `.snapshot` file: producer state up to the offset in its name (`ProducerStateManager`).

version i16 = 1, CRC-32C u32 of everything after it, count i32, then the entries. Only the last
batch of each producer is stored.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.checksum import crc32c
from kafkapy.storage.filesystem import FileSystem, read_file, write_atomically
from kafkapy.storage.log_names import SNAPSHOT_SUFFIX, offset_file_name
from kafkapy.storage.producer_state import NO_OFFSET, ProducerBatch, ProducerEntry

_VERSION: Final = 1
_HEADER: Final = Struct(">hIi")
_CRC_END: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot file.

    The event loop calls this at each roll, and a client can make each of its requests roll a
    segment. So only the producers that changed are packed: 60,000 took 25 ms of processor time.
    """
    rows = [entry.snapshot_row or _pack(entry) for entry in entries]
    body = b"".join(rows)
    crc = crc32c(body, crc32c(len(rows).to_bytes(4, "big")))
    return _HEADER.pack(_VERSION, crc, len(rows)) + body


def _pack(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else _NO_BATCH
    row = entry.snapshot_row = _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
    return row


_NO_BATCH: Final = ProducerBatch(-1, NO_OFFSET, 0, -1)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers of a snapshot file.

    Raises:
        ApiError: CORRUPT_MESSAGE, with the reason in Kafka's words (`CorruptSnapshotException`);
            the caller tries an older file.
    """
    if len(data) < _HEADER.size:
        raise _schema_error(f"{len(data)} bytes are too few")
    version, crc, count = _HEADER.unpack_from(data)
    size = _HEADER.size + count * _ENTRY.size
    if not _HEADER.size <= size <= len(data):
        raise _schema_error(f"{len(data)} bytes cannot hold {count} producers")
    if version != _VERSION:
        raise _corrupt(f"Snapshot contained an unknown file version {version}")
    computed = crc32c(data[_CRC_END:])
    if computed != crc:
        raise _corrupt(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}."
            f" Computed crc: {computed}"
        )
    if len(data) > size:
        raise _schema_error(f"{len(data) - size} bytes follow its {count} producers")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _entry(
    producer_id: int,
    producer_epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(
        producer_id, producer_epoch, coordinator_epoch, timestamp, transaction_first_offset
    )
    if last_offset != NO_OFFSET:
        entry.batches.append(ProducerBatch(last_sequence, last_offset, offset_delta, timestamp))
    return entry


def _schema_error(reason: str) -> ApiError:
    return _corrupt(f"Snapshot failed schema validation: {reason}")


def _corrupt(reason: str) -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, reason)


class SnapshotFiles:
    """The snapshot files of one log, by offset."""

    __slots__ = ("_directory", "_fs", "offsets")

    def __init__(self, fs: FileSystem, directory: str, offsets: Iterable[int]) -> None:
        self._fs = fs
        self._directory = directory
        self.offsets = sorted(offsets)

    def path(self, offset: int) -> str:
        return f"{self._directory}/{offset_file_name(offset, SNAPSHOT_SUFFIX)}"

    def write(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        """Write the snapshot at `offset`. A crash before the next flush may lose it."""
        write_atomically(self._fs, self.path(offset), encode_snapshot(producers), durable=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self._fs.remove(self.path(offset))
            self.offsets.remove(offset)

    def remove_unless(self, keep: Callable[[int], bool]) -> None:
        """Remove every snapshot whose offset need not be kept."""
        for offset in [offset for offset in self.offsets if not keep(offset)]:
            self.remove(offset)

    def load_latest(self, low: int, high: int) -> tuple[int, list[ProducerEntry]] | None:
        """The newest readable snapshot with offset in [low, high]; unreadable ones are removed."""
        for offset in reversed(self.offsets.copy()):
            if not low <= offset <= high:
                continue
            try:
                return offset, decode_snapshot(read_file(self._fs, self.path(offset)))
            except ApiError:
                self.remove(offset)
        return None
