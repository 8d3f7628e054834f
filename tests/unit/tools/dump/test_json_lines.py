"""A dump as JSON: one object a line, nothing lost."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.control import end_transaction_marker
from tests.harness.scripted.cli import kafkapy
from tests.harness.storage.legacy_messages import message_set

LOGS = Path(__file__).parents[3] / "data" / "dump_log" / "logs"
NAME = "00000000000000000000"


def objects(*words: str) -> list[dict[str, Any]]:
    outcome = kafkapy("dump-log-segments", "--output", "json", *words)
    assert outcome.status == 0, outcome.stderr
    envelope, *rest = map(json.loads, outcome.stdout.splitlines())
    assert envelope == {"kafkapy": 1, "command": "dump-log-segments"}
    return rest


def of_kind(kind: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["kind"] == kind]


def test_batches_and_records(tmp_path: Path) -> None:
    rows = [
        RecordData(b"k", "é".encode(), 5, [("h", b"\xff"), ("i", None)]),
        RecordData(None, b"\xfe\xff", 6, []),
    ]
    log = tmp_path / "0.log"
    log.write_bytes(build_batch(rows, leader_epoch=4))
    file, segment, batch, first, second = objects("--files", str(log), "--print-data-log")
    assert file == {"kind": "file", "path": str(log)}
    assert segment == {"kind": "segment", "base_offset": 0}
    expected = {"base_offset": 0, "last_offset": 1, "count": 2, "magic": 2, "codec": "none"}
    assert batch.items() >= {"kind": "batch", "is_valid": True, "position": 0, **expected}.items()
    assert first == {
        "kind": "record",
        "offset": 0,
        "timestamp": 5,
        "timestamp_type": "CreateTime",
        "key_size": 1,
        "value_size": 2,
        "sequence": -1,
        "headers": [{"name": "h", "value_base64": "/w=="}, {"name": "i", "value": None}],
        "key": "k",
        "value": "é",
    }
    assert second["key"] is None
    assert base64.b64decode(second["value_base64"]) == b"\xfe\xff"


def test_depth(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(build_batch([RecordData(b"k", b"v", 5, [])]))
    assert not of_kind("record", objects("--files", str(log)))
    (record,) = of_kind("record", objects("--files", str(log), "--deep-iteration"))
    assert "key" not in record
    bare = objects("--files", str(log), "--print-data-log", "--skip-record-metadata")
    assert bare[-1] == {"kind": "record", "offset": 0, "key": "k", "value": "v"}


def test_markers_and_old_formats(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    marker = end_transaction_marker(
        commit=False, producer_id=1, producer_epoch=0, coordinator_epoch=3, timestamp=5
    )
    log.write_bytes(message_set(0, [0]) + marker)
    old, control = of_kind("batch", objects("--files", str(log)))
    assert (old["base_offset"], old["count"], old["max_timestamp"]) == (None, None, -1)
    assert control["is_control"]
    records = of_kind("record", objects("--files", str(log), "--print-data-log"))
    assert records[1]["control"] == "endTxnMarker: ABORT coordinatorEpoch: 3"


def test_decoded_records_are_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LOGS)
    files = ",".join(f"__consumer_offsets-{i}/{NAME}.log" for i in range(4))
    records = of_kind("record", objects("--files", files, "--offsets-decoder"))
    offsets = [r for r in records if r["key"]["type"] == "1" and r["value"] != "<DELETE>"]
    assert {r["value"]["data"]["offset"] for r in offsets} == {7}
    assert any(r["value"] == "<DELETE>" for r in records)


def test_findings_and_tails_are_objects_too(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    whole = build_batch([RecordData(b"k", b"v", 5, [])])
    gap = build_batch([RecordData(b"k", b"v", 5, [])], base_offset=3)
    log.write_bytes(whole + gap + gap[:-1])
    found = objects("--files", str(log), "--deep-iteration")
    assert found[-2:] == [
        {
            "kind": "invalid_tail",
            "bytes": len(gap) - 1,
            "file_name": "0.log",
            "last_good_byte": len(whole + gap) - 1,
        },
        {
            "kind": "finding",
            "finding": "non_consecutive_offsets",
            "path": str(log),
            "offset": 0,
            "next_offset": 3,
        },
    ]


def test_paths_and_numbers_that_json_hardly_has(tmp_path: Path) -> None:
    directory = tmp_path / "\udcff"
    directory.mkdir()
    log = directory / f"{10**20}.log"
    log.write_bytes(build_batch([RecordData(b"k", b"v", 5, [])]))
    file, segment, batch = objects("--files", str(log))
    assert file == {"kind": "file", "path": str(log)}
    assert segment == {"kind": "segment", "base_offset": 10**20}
    assert batch["is_valid"]
