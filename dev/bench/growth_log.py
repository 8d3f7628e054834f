"""A sparse log of many GiB that uses little disk space: all batches are valid, and their values
are holes of the files."""

from __future__ import annotations

from pathlib import Path

from kafkapy.record.batch_header import HEADER_SIZE, BatchHeader, read_header
from kafkapy.record.builder import RecordData, assemble, build_batch
from kafkapy.storage import log_names
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.offset_index import OffsetIndex
from kafkapy.storage.time_index import TimeIndex

BATCH_BYTES = 1 << 20
SEGMENT_BYTES = 1 << 30
BETWEEN_BATCHES_MS = 1000
_INDEX_BYTES = 10 << 20
_HEAD = HEADER_SIZE + 16  # the rest of a batch is zeros


class SparseLog:
    """The log in a partition's directory, with one record per batch.

    `first_ms` is the timestamp of the first record. The log may grow only while its broker is down.
    """

    def __init__(self, directory: Path, first_ms: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.directory = directory
        self.first_ms = first_ms
        self.end = 0
        batch = build_batch([RecordData(None, bytes(BATCH_BYTES - 100), 0)], leader_epoch=0)
        assert not any(batch[_HEAD:])
        self._header: BatchHeader = read_header(batch)
        self._body = batch[HEADER_SIZE:]
        self._per_segment = segment_bytes // len(batch)

    def timestamp(self, offset: int) -> int:
        return self.first_ms + offset * BETWEEN_BATCHES_MS

    def grow(self, segments: int) -> None:
        """Grow to `segments` full segments, and an active one of a single batch."""
        for path in self.directory.glob(f"{self.end - 1 if self.end else 0:020d}.*"):
            path.unlink()
        for path in self.directory.glob(f"*{log_names.SNAPSHOT_SUFFIX}"):
            path.unlink()
        for number in range(max(0, self.end - 1) // self._per_segment, segments):
            self._write(number * self._per_segment, self._per_segment)
        self._write(segments * self._per_segment, 1)
        self.end = segments * self._per_segment + 1

    def _write(self, base_offset: int, count: int) -> None:
        path = f"{self.directory}/{log_names.offset_file_name(base_offset, '')}"
        fs = OsFileSystem()
        offsets = OffsetIndex(fs, path + log_names.INDEX_SUFFIX, base_offset, _INDEX_BYTES, 0)
        times = TimeIndex(fs, path + log_names.TIME_INDEX_SUFFIX, base_offset, _INDEX_BYTES, 0)
        offsets.create()
        times.create()
        size = self._header.size
        with Path(path + log_names.LOG_SUFFIX).open("wb") as log:
            for number in range(count):
                offset = base_offset + number
                log.seek(number * size)
                log.write(self._batch(offset)[:_HEAD])
                if number:
                    offsets.append(offset, number * size)
                    times.maybe_append(self.timestamp(offset), offset)
            log.truncate(count * size)
        offsets.write(trim=True)
        times.write(trim=True)

    def _batch(self, offset: int) -> bytes:
        time_ms = self.timestamp(offset)
        header = self._header._replace(
            base_offset=offset, base_timestamp=time_ms, max_timestamp=time_ms
        )
        return assemble(header, self._body)
