"""`dump-log-segments`: prints files of a log directory (Kafka's `DumpLogSegments`).

Files are read in pieces and never written, so files of a running broker can be read too. A bad
record ends the dump of its batch, and bytes that are not a batch end the dump of their file, but
the run continues. Kafka's tool stops at either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, KafkapyError
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import BatchHeader
from kafkapy.storage import log_names
from kafkapy.storage.file_records import scan_batches
from kafkapy.storage.filesystem import FileSystem, ReadOnlyFileSystem
from kafkapy.tools.dump.decoders import UndecodableRecord
from kafkapy.tools.dump.files import BrokenFile, CorruptSnapshot, IndexChecks, base_offset_of
from kafkapy.tools.dump.findings import NON_CONSECUTIVE, Findings
from kafkapy.tools.dump.items import (
    BootstrapSnapshot,
    DumpedFile,
    InvalidTail,
    Item,
    Note,
    SegmentStart,
    SnapshotStart,
)
from kafkapy.tools.dump.printers import Batch, Printer

ALL_BYTES: Final = 2**31 - 1
_KRAFT_SUFFIX: Final = ".checkpoint"
_KRAFT_BOOTSTRAP: Final = "bootstrap.checkpoint"
# A pattern, compiled on first use: most runs of a command use none.
_KRAFT_NAME: Final = r"(\d{20})-(\d{10})\.checkpoint(?:\.deleted|\.part)?"
_CHECKPOINTS: Final = (
    log_names.RECOVERY_POINT_CHECKPOINT,
    log_names.HIGH_WATERMARK_CHECKPOINT,
    log_names.LOG_START_CHECKPOINT,
    log_names.CLEANER_CHECKPOINT,
)


@dataclass(slots=True)
class Dump:
    """One run over some files. `warn` gets lines that are not results; `notes` precede each .log.

    `unreadable` counts files and batches that cannot be read: Kafka's tool exits with 1.
    `skipped_faults` counts faults that it reports and skips: batches with a wrong CRC, tails,
    snapshots.
    """

    printer: Printer
    warn: Callable[[str], None]
    deep: bool = False
    notes: Sequence[str] = ()
    max_bytes: int = ALL_BYTES
    checks: IndexChecks = field(default_factory=IndexChecks)
    fs: FileSystem = field(default_factory=ReadOnlyFileSystem)
    findings: Findings = field(default_factory=Findings)
    unreadable: int = 0
    skipped_faults: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether no file has a fault."""
        return not (self.unreadable or self.skipped_faults or self.findings)

    def run(self, paths: Sequence[str]) -> None:
        """Print every file, then the findings."""
        for path in paths:
            self.printer.item(DumpedFile(path))
            try:
                self._file(path)
            except BrokenPipeError:
                raise
            except OSError as error:
                self._report_unreadable(f"{path}: {error.strerror or error}")
            except CorruptSnapshot as error:
                self.skipped_faults += 1
                self.warn(str(error))
            except KafkapyError as error:
                self._report_unreadable(str(error))
        self.printer.findings(self.findings)

    def _report_unreadable(self, reason: str) -> None:
        self.unreadable += 1
        self.warn(reason)

    def _file(self, path: str) -> None:
        """Print one file. The text after the last dot selects the kind, as in Kafka; checkpoints
        are selected by their whole name.
        """
        name = os.path.basename(path)
        suffix = name[name.rfind(".") :] if "." in name else ""
        if suffix in (log_names.LOG_SUFFIX, _KRAFT_SUFFIX):
            self._segment(path, name)
            return
        readers = self._small_files()
        reader = readers.get(suffix) or readers.get(name)
        if reader is None:
            self.warn(f"Ignoring unknown file {path}")
            return
        for item in reader(self.fs, path):
            self.printer.item(item)

    def _small_files(self) -> dict[str, Callable[[FileSystem, str], Iterator[Item]]]:
        # Imported here, because most files are segments, and this imports half of `storage`.
        from kafkapy.tools.dump import indexes as dump_indexes

        checks, findings = self.checks, self.findings
        return {
            log_names.INDEX_SUFFIX: partial(
                dump_indexes.offset_index, checks=checks, findings=findings
            ),
            log_names.TIME_INDEX_SUFFIX: partial(
                dump_indexes.time_index, checks=checks, findings=findings
            ),
            log_names.TRANSACTION_INDEX_SUFFIX: dump_indexes.transaction_index,
            log_names.SNAPSHOT_SUFFIX: dump_indexes.producer_snapshot,
            log_names.LEADER_EPOCH_CHECKPOINT: dump_indexes.epoch_checkpoint,
            log_names.PARTITION_METADATA: dump_indexes.partition_metadata,
            **dict.fromkeys(_CHECKPOINTS, dump_indexes.offset_checkpoint),
        }

    def _segment(self, path: str, name: str) -> None:
        for note in self.notes:
            self.printer.item(Note(note))
        self.printer.item(_segment_start(path, name))
        with closing(self.fs.open(path)) as file:
            end = min(file.size(), self.max_bytes)
            good, last_offset = 0, -1
            try:
                for position, header, data in scan_batches(file, 0, end):
                    batch = Batch(position, header, data, _is_valid(header, data))
                    self.skipped_faults += not batch.is_valid
                    try:
                        self.printer.batch(batch)
                        if self.deep:
                            last_offset = self._records(path, batch, last_offset)
                    except (ApiError, UndecodableRecord) as error:
                        where = f"{path}: the batch at position {position}"
                        self._report_unreadable(f"{where} cannot be read whole: {error}")
                        last_offset = header.last_offset
                    good = position + header.size
            except KafkapyError as error:
                raise BrokenFile(_unreadable_text(path, good, end, error)) from error
        if good < end and self.max_bytes == ALL_BYTES:
            self.skipped_faults += 1
            self.printer.item(InvalidTail(end - good, name, good - 1))

    def _records(self, path: str, batch: Batch, last_offset: int) -> int:
        """Print a batch's records. Returns the offset of the last one."""
        offsets = self.printer.records(batch)
        if offsets.first == -1:
            return last_offset
        if last_offset not in (-1, offsets.first - 1):
            self._add_gap(path, (last_offset, offsets.first))
        for gap in offsets.gaps:
            self._add_gap(path, gap)
        return offsets.last

    def _add_gap(self, path: str, pair: tuple[int, int]) -> None:
        self.findings.add(NON_CONSECUTIVE, os.path.abspath(path), pair)


def _segment_start(path: str, name: str) -> Item:
    if name.endswith(log_names.LOG_SUFFIX):
        return SegmentStart(base_offset_of(path))
    if name == _KRAFT_BOOTSTRAP:
        return BootstrapSnapshot()
    match = re.fullmatch(_KRAFT_NAME, name)
    if match is None:
        raise BrokenFile(f"{path}: its name is not <offset>-<epoch>.checkpoint")
    return SnapshotStart(int(match[1]), int(match[2]))


def _is_valid(header: BatchHeader, data: memoryview) -> bool:
    try:
        validate_crc(data, 0, header)
    except ApiError:
        return False
    return True


def _unreadable_text(path: str, good: int, end: int, error: KafkapyError) -> str:
    where = f"the last good byte is {good - 1}" if good else "no byte of it is good"
    return f"{path}: broken at position {good} of {end}, {where}: {error}"
