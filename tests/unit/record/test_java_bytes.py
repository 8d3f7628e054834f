"""Bytes that kafka-clients 3.9.1 wrote: each codec in each format, markers, an empty batch.

`java_batches.txt` came from `MemoryRecordsBuilder`, `MemoryRecords.withEndTransactionMarker` and
`DefaultRecordBatch.writeEmptyHeader`: a line is "magic codec hex".
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import iter_headers, read_header
from kafkapy.record.batch_rules import BatchRules
from kafkapy.record.builder import RecordData, build_batch, rebuild_batch
from kafkapy.record.codec import codec_by_name
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import batch_records, iter_records
from kafkapy.record.validation import prepare_client_batch
from tests.harness.storage.batches import NOW_MS

_LINES = Path(__file__).with_name("java_batches.txt").read_text().splitlines()
JAVA = {(kind, name): bytes.fromhex(data) for kind, name, data in map(str.split, _LINES)}
BATCHES = [(int(kind), name) for kind, name in JAVA if kind.isdigit()]
ROWS = [
    RecordData(b"key0", b"some value ", NOW_MS, []),
    RecordData(None, b"some value " * 2, NOW_MS + 10, []),
    RecordData(b"key2", None, NOW_MS + 20, []),
    RecordData(b"key3", b"some value " * 4, NOW_MS + 30, [("h", b"x"), ("n", None)]),
]


def java_rows(magic: int) -> list[RecordData]:
    if magic == 2:
        return ROWS
    return [row._replace(headers=[], timestamp=row.timestamp if magic else -1) for row in ROWS]


@pytest.mark.parametrize(("magic", "codec"), BATCHES)
def test_read(magic: int, codec: str) -> None:
    data = JAVA[str(magic), codec]
    for position, header in iter_headers(data):
        validate_crc(data, position, header)
        assert (header.magic, header.codec) == (magic, codec_by_name(codec))
    records = list(iter_records(data))
    rows = [RecordData(r.key, r.value, r.timestamp, r.headers) for r in records]
    assert rows == java_rows(magic)
    assert [r.offset for r in records] == [100, 101, 102, 103]
    assert [r.sequence for r in records] == ([5, 6, 7, 8] if magic == 2 else [-1] * 4)


@pytest.mark.parametrize(("magic", "codec"), [pair for pair in BATCHES if pair[0] < 2])
def test_convert_up(magic: int, codec: str) -> None:
    data = memoryview(JAVA[str(magic), codec])
    prepared = prepare_client_batch(data, BatchRules(), NOW_MS, 2)
    assert prepared.header.codec is codec_by_name(codec)
    assert prepared.records == build_batch(java_rows(magic), codec=prepared.header.codec)


def test_our_uncompressed_batch_is_javas() -> None:
    ours = build_batch(ROWS, base_offset=100, producer_id=9, producer_epoch=1, base_sequence=5)
    assert ours == JAVA["2", "none"]


@pytest.mark.parametrize("name", ["commit", "abort"])
def test_our_markers_are_javas(name: str) -> None:
    ours = end_transaction_marker(
        commit=name == "commit", producer_id=7, producer_epoch=3, coordinator_epoch=11,
        timestamp=NOW_MS, base_offset=50, leader_epoch=2,
    )  # fmt: skip
    assert ours == JAVA["marker", name]


def test_our_empty_batch_is_javas() -> None:
    batch = build_batch(
        [ROWS[0]._replace(timestamp=NOW_MS + i) for i in range(4)], base_offset=9, producer_id=5,
        producer_epoch=1, base_sequence=0, leader_epoch=8,
    )  # fmt: skip
    java = JAVA["empty", "batch"]
    assert rebuild_batch(read_header(batch), []) == java
    assert list(batch_records(java, read_header(java))) == []
