"""Prints a dump as JSON, one object on each line.

The first line is the envelope, `{"kafkapy":1,"command":"dump-log-segments"}`; every other line is
an object with a `kind`. Keys and values that are not UTF-8 are under `key_base64` and
`value_base64`, so that nothing is lost.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson

from kafkapy.record.batch_header import MAGIC, UNKNOWN_COUNT
from kafkapy.record.records import Record, batch_records
from kafkapy.tools.dump.decoders import Decoder, is_text
from kafkapy.tools.dump.findings import Findings
from kafkapy.tools.dump.items import Item
from kafkapy.tools.dump.printers import (
    Batch,
    Depth,
    Offsets,
    OffsetTracker,
    Write,
    control_text,
)


class JsonPrinter:
    """Prints one object on each line."""

    def __init__(self, write: Write, depth: Depth, envelope: dict[str, Any]) -> None:
        self._write = write
        self._depth = depth
        self._object(envelope)

    def item(self, item: Item) -> None:
        self._object({"kind": item.kind, **item._asdict()})

    def findings(self, findings: Findings) -> None:
        """Print the findings as objects."""
        for found in findings.objects():
            self._object(found)

    def batch(self, batch: Batch) -> None:
        """Print the object of a batch. Fields that its format does not have are null."""
        header = batch.header
        is_v2 = header.magic == MAGIC
        self._object(
            {
                "kind": "batch",
                "base_offset": header.base_offset if is_v2 else None,
                "last_offset": header.last_offset,
                "count": None if header.record_count == UNKNOWN_COUNT else header.record_count,
                "base_sequence": header.base_sequence,
                "last_sequence": header.last_sequence,
                "producer_id": header.producer_id,
                "producer_epoch": header.producer_epoch,
                "partition_leader_epoch": header.partition_leader_epoch,
                "is_transactional": header.is_transactional,
                "is_control": header.is_control,
                "delete_horizon_ms": header.delete_horizon_ms,
                "position": batch.position,
                "timestamp_type": header.timestamp_type.label,
                "max_timestamp": header.max_timestamp,
                "size": header.size,
                "magic": header.magic,
                "codec": header.codec.label,
                "crc": header.crc,
                "is_valid": batch.is_valid,
            }
        )

    def records(self, batch: Batch) -> Offsets:
        """Print an object for each record."""
        tracker = OffsetTracker()
        is_control = batch.header.is_control
        lines: list[bytes] = []
        try:
            for record in batch_records(batch.data, batch.header):
                tracker.add(record.offset)
                lines.append(_json(self._record(record, is_control)))
        finally:
            if lines:
                self._write(b"\n".join([*lines, b""]))
        return tracker.offsets()

    def _record(self, record: Record, is_control: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": "record", "offset": record.offset}
        if self._depth.metadata:
            found |= {
                "timestamp": record.timestamp,
                "timestamp_type": record.timestamp_type.label,
                "key_size": -1 if record.key is None else len(record.key),
                "value_size": -1 if record.value is None else len(record.value),
                "sequence": record.sequence,
                "headers": [
                    {"name": name, **_content("value", value)} for name, value in record.headers
                ],
            }
        if is_control:
            found["control"] = control_text(record)
        elif self._depth.decoder is not None:
            found |= _contents(self._depth.decoder, record)
        return found

    def _object(self, found: dict[str, Any]) -> None:
        self._write(_json(found) + b"\n")


def _json(found: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(found)
    except orjson.JSONEncodeError:
        # A path that is not UTF-8, or a number of more than 64 bits. Python's `json` accepts both.
        import json

        return json.dumps(found, separators=(",", ":")).encode()


def _contents(decoder: Decoder, record: Record) -> dict[str, Any]:
    if is_text(decoder):
        return {**_content("key", record.key), **_content("value", record.value)}
    key, value = decoder.decode(record)
    return {"key": key, "value": value}


def _content(name: str, raw: bytes | None) -> dict[str, str | None]:
    """The field of a key or value: text, or base64 under another name."""
    if raw is None:
        return {name: None}
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}
