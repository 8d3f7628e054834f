"""From timestamps to offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.time_index import TimeIndex


@pytest.fixture
def index(tmp_path: Path) -> TimeIndex:
    made = TimeIndex(OsFileSystem(), str(tmp_path / "00.timeindex"), 100, 48, 0)
    made.create()
    made.maybe_append(1000, 103)
    made.maybe_append(2000, 110)
    return made


def test_entries_ascend(index: TimeIndex) -> None:
    index.maybe_append(2000, 115)
    index.maybe_append(1999, 116)
    assert index.all_entries() == [(1000, 3), (2000, 10)]
    assert index.last_entry == (2000, 110)


def test_one_slot_is_kept_for_the_closing_entry(index: TimeIndex) -> None:
    index.maybe_append(3000, 120)
    assert index.is_full
    index.maybe_append(4000, 130)
    assert index.count == 3
    index.maybe_append(4000, 130, closing=True)
    index.maybe_append(5000, 140, closing=True)
    assert index.last_entry == (4000, 130)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("timestamp", "offset"), [(0, 100), (999, 100), (1000, 103), (1999, 103), (5000, 110)]
)
def test_look_up(index: TimeIndex, timestamp: int, offset: int, closed: bool) -> None:
    if closed:
        index.write(trim=True)
    assert index.lookup(timestamp) == offset


def test_truncation(index: TimeIndex) -> None:
    index.truncate_to(110)
    assert index.all_entries() == [(1000, 3)]
    index.truncate_to(0)
    assert index.last_entry == (-1, 100)


def test_the_bytes(index: TimeIndex, tmp_path: Path) -> None:
    index.write(trim=True)
    assert (tmp_path / "00.timeindex").read_bytes() == bytes.fromhex(
        "00000000000003e8 00000003 00000000000007d0 0000000a"
    )


def test_zeros_are_not_sane(index: TimeIndex, tmp_path: Path) -> None:
    assert index.is_sane()
    index.write()
    assert not TimeIndex(OsFileSystem(), index.path, 100, 48, 48).is_sane()
    assert TimeIndex(OsFileSystem(), index.path, 100, 48, 0).is_sane()


def test_a_timestamp_of_zero_is_sane(tmp_path: Path) -> None:
    made = TimeIndex(OsFileSystem(), str(tmp_path / "00.timeindex"), 100, 48, 0)
    made.create()
    made.maybe_append(0, 100)
    assert made.is_sane()
