"""Text of control records, and the offsets of a dump."""

from __future__ import annotations

import struct

import pytest

from kafkapy.record.batch_header import TimestampType
from kafkapy.record.records import Record
from kafkapy.tools.dump.decoders import UndecodableRecord
from kafkapy.tools.dump.printers import OffsetTracker, control_text


def control(type_id: int, value: bytes) -> str:
    key = struct.pack(">hh", 0, type_id)
    return control_text(Record(7, 0, TimestampType.CREATE_TIME, key, value, [], -1))


def test_control_records() -> None:
    assert control(1, struct.pack(">hi", 0, 9)) == "endTxnMarker: COMMIT coordinatorEpoch: 9"
    assert control(2, b"") == "controlType: LEADER_CHANGE(2)"
    assert control(99, b"") == "controlType: UNKNOWN(99)"
    header = struct.pack(">hq", 0, 8) + b"\0"
    assert control(3, header) == 'SnapshotHeader {"version":0,"lastContainedLogTimestamp":8}'
    assert control(4, b"\0\0\0") == 'SnapshotFooter {"version":0}'
    with pytest.raises(UndecodableRecord, match="offset 7"):
        control(3, b"\0")


def test_offsets_are_followed() -> None:
    walk = OffsetTracker()
    assert walk.offsets().first == -1
    for offset in (5, 6, 9, 10, 12):
        walk.add(offset)
    assert walk.offsets() == (5, 12, [(6, 9), (10, 12)])
