"""Prints a dump as Kafka's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kafkapy.record.batch_header import MAGIC
from kafkapy.record.codec import Codec
from kafkapy.record.records import Record, batch_records, records_payload
from kafkapy.tools.dump.decoders import is_text, java_text, json_text
from kafkapy.tools.dump.findings import Findings
from kafkapy.tools.dump.items import Item, optional_long
from kafkapy.tools.dump.printers import (
    Batch,
    Depth,
    Offsets,
    OffsetTracker,
    Write,
    control_text,
)
from kafkapy.tools.dump.record_lines import record_lines


class TextPrinter:
    """Prints Kafka's lines."""

    def __init__(self, write: Write, depth: Depth, warn: Callable[[str], None]) -> None:
        self._write = write
        self._depth = depth
        self._warn = warn
        # A batch is formatted at once if keys and values are text, or are not shown.
        self._in_bulk = depth.decoder is None or is_text(depth.decoder)

    def item(self, item: Item) -> None:
        self._line(item.text())

    def findings(self, findings: Findings) -> None:
        """Print the findings to stderr, as Kafka's tool does."""
        for line in findings.lines():
            self._warn(line)

    def batch(self, batch: Batch) -> None:
        """Print the line of a batch."""
        header = batch.header
        if header.magic == MAGIC:
            line = (
                f"baseOffset: {header.base_offset} lastOffset: {header.last_offset}"
                f" count: {header.record_count} baseSequence: {header.base_sequence}"
                f" lastSequence: {header.last_sequence} producerId: {header.producer_id}"
                f" producerEpoch: {header.producer_epoch}"
                f" partitionLeaderEpoch: {header.partition_leader_epoch}"
                f" isTransactional: {_java_bool(header.is_transactional)}"
                f" isControl: {_java_bool(header.is_control)}"
                f" deleteHorizonMs: {optional_long(header.delete_horizon_ms)}"
            )
        else:
            line = f"offset: {header.last_offset}"
        self._line(
            f"{line} position: {batch.position}"
            f" {header.timestamp_type.label}: {header.max_timestamp} size: {header.size}"
            f" magic: {header.magic} compresscodec: {header.codec.label} crc: {header.crc}"
            f" isvalid: {_java_bool(batch.is_valid)}"
        )

    def records(self, batch: Batch) -> Offsets:
        """Print a line for each record."""
        header = batch.header
        if header.record_count == 0:
            return Offsets()
        if self._in_bulk and header.magic == MAGIC and not header.is_control:
            found = record_lines(
                records_payload(batch.data, header),
                header,
                metadata=self._depth.metadata,
                contents=self._depth.decoder is not None,
            )
            if found is not None:
                self._write(_as_utf8(found.text.encode("latin-1")))
                return Offsets(found.first_offset, found.last_offset, found.gaps)
        return self._one_by_one(batch)

    def _one_by_one(self, batch: Batch) -> Offsets:
        tracker = OffsetTracker()
        crcs: Iterator[int] = iter(())
        if batch.header.magic != MAGIC:
            from kafkapy.record.legacy import read_messages  # rare, as in `records`

            crcs = (m.crc for m in read_messages(batch.data, batch.header))
        for record in batch_records(batch.data, batch.header):
            tracker.add(record.offset)
            self._line(self._record(batch, record, next(crcs, None)))
        return tracker.offsets()

    def _record(self, batch: Batch, record: Record, crc: int | None) -> str:
        line, header = "", batch.header
        if self._depth.metadata:
            line = (
                f"| offset: {record.offset} {record.timestamp_type.label}: {record.timestamp}"
                f" keySize: {-1 if record.key is None else len(record.key)}"
                f" valueSize: {-1 if record.value is None else len(record.value)}"
            )
            if header.magic == MAGIC:
                names = ",".join(name for name, _ in record.headers)
                line += f" sequence: {record.sequence} headerKeys: [{names}]"
            if crc is not None:
                # Messages within a compressed one were checked when they were read.
                is_valid = batch.is_valid or header.codec is not Codec.NONE
                # Kafka prints the unmatched brace.
                line += f" isValid: {_java_bool(is_valid)} crc: {crc}}}"
            if header.is_control:
                line += f" {control_text(record)}"
        if self._depth.decoder is not None and not header.is_control:
            key, value = self._depth.decoder.decode(record)
            if key is not None:
                line = f"{line or '|'} key: {_value_text(key)}"
            if value is not None:
                line = f"{line} payload: {_value_text(value)}"
        return line

    def _line(self, text: str) -> None:
        self._write((text + "\n").encode(errors="surrogateescape"))


def _java_bool(value: bool) -> str:
    return "true" if value else "false"


def _as_utf8(lines: bytes) -> bytes:
    """The same bytes if they are UTF-8, else with Java's replacement characters.

    Keys and values are between ASCII characters, so they can be replaced all at once.
    """
    try:
        lines.decode()
    except UnicodeDecodeError:
        return java_text(lines).encode()
    return lines


def _value_text(value: str | dict[str, Any]) -> str:
    return value if isinstance(value, str) else json_text(value)
