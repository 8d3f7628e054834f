"""Indexes held against their log: what is found, and when reading ends."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kafkapy.record.builder import RecordData, build_batch
from kafkapy.storage.filesystem import ReadOnlyFileSystem
from kafkapy.tools.dump.files import BrokenFile, IndexChecks
from kafkapy.tools.dump.findings import (
    INDEX_MISMATCH,
    NOT_FOUND,
    OUT_OF_ORDER,
    TIMESTAMP_MISMATCH,
    Findings,
)
from kafkapy.tools.dump.indexes import offset_index, time_index

FS = ReadOnlyFileSystem()
BASE = 100


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three batches of two records from offset 100 on, with the times 1000, 1001 ..."""
    path = tmp_path / "100.log"
    batches = [
        build_batch(
            [RecordData(None, b"v", 1000 + i + j, []) for j in range(2)], base_offset=BASE + i
        )
        for i in (0, 2, 4)
    ]
    assert len({len(batch) for batch in batches}) == 1
    path.write_bytes(b"".join(batches))
    return path


def size(log: Path) -> int:
    return log.stat().st_size // 3


def check_offsets(
    log: Path, *entries: tuple[int, int], tail: bytes = b"", checks: IndexChecks | None = None
) -> tuple[list[str], list[tuple[int, int]]]:
    """(lines, mismatches) of an index with these entries."""
    path = log.with_suffix(".index")
    path.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries) + tail)
    findings = Findings()
    found = offset_index(FS, str(path), checks or IndexChecks(), findings)
    lines = [item.text() for item in found]
    pairs = [(o["index_offset"], o["log_offset"]) for o in findings.objects()]
    assert {o["finding"] for o in findings.objects()} <= {INDEX_MISMATCH}
    return lines, pairs


def test_offset_entries(log: Path) -> None:
    one, two = (3, size(log)), (5, 2 * size(log))
    assert check_offsets(log, one, two) == (
        [f"offset: 103 position: {size(log)}", f"offset: 105 position: {2 * size(log)}"],
        [],
    )
    assert check_offsets(log, one, (4, 0))[1] == [(104, 101)]
    assert check_offsets(log, one, tail=bytes(24)) == ([f"offset: 103 position: {size(log)}"], [])
    verify = IndexChecks(verify_only=True)
    assert check_offsets(log, (2, 0), checks=verify) == ([], [(102, 101)])


def test_an_entry_that_leads_nowhere(log: Path) -> None:
    for position in (7, 3 * size(log), 10**6):
        with pytest.raises(BrokenFile, match=f"no batch begins at position {position}"):
            check_offsets(log, (3, position))
    with pytest.raises(BrokenFile, match="no batch begins at position 0"):
        check_offsets(log, (1, 0), checks=IndexChecks(max_message_bytes=size(log) - 1))


def test_sanity_of_offset_indexes(log: Path) -> None:
    sane = IndexChecks(sanity_only=True)
    path = log.with_suffix(".index")
    assert check_offsets(log, checks=sane)[0] == [f"{path} is empty."]
    assert check_offsets(log, (3, 1), checks=sane)[0] == [f"{path} passed sanity check."]
    with pytest.raises(BrokenFile, match="found 9 bytes which is neither positive nor a multiple"):
        check_offsets(log, (3, 1), tail=b"\0", checks=sane)
    with pytest.raises(BrokenFile, match="the last offset is 99 which is less than the base"):
        check_offsets(log, (-1, 1), checks=sane)


def check_times(
    log: Path, *entries: tuple[int, int], checks: IndexChecks | None = None
) -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """(lines, the last finding of each kind) of a time index with these entries."""
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 3, size(log)))
    path = log.with_suffix(".timeindex")
    path.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries))
    findings = Findings()
    found = time_index(FS, str(path), checks or IndexChecks(), findings)
    lines = [item.text() for item in found]
    return lines, {o["finding"]: tuple(o.values())[3:] for o in findings.objects()}


def test_time_entries(log: Path) -> None:
    assert check_times(log, (1001, 1), (1005, 5), (0, 0)) == (
        ["timestamp: 1001 offset: 101", "timestamp: 1005 offset: 105"],
        {},
    )
    assert check_times(log, (1002, 1))[1] == {TIMESTAMP_MISMATCH: (1002, 1001)}
    assert check_times(log, (1001, 1), (1001, 1))[1] == {OUT_OF_ORDER: (1001, 1001)}
    assert check_times(log, (1004, 4))[1] == {NOT_FOUND: (104, 105)}
    assert check_times(log, (1009, 9))[1] == {NOT_FOUND: (109, -1)}


def test_sanity_of_time_indexes(log: Path) -> None:
    sane = IndexChecks(sanity_only=True)
    assert check_times(log, checks=sane)[0][0].endswith("passed sanity check.")
    assert check_times(log, (5, 1), (6, 1), checks=sane)[0][0].endswith("passed sanity check.")
    with pytest.raises(BrokenFile, match="last timestamp is 0 which is less than the first"):
        check_times(log, (5, 1), (0, 0), checks=sane)
