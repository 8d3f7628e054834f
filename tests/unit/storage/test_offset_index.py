"""From offsets to positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.offset_index import OffsetIndex


@pytest.fixture
def index(tmp_path: Path) -> OffsetIndex:
    made = OffsetIndex(OsFileSystem(), str(tmp_path / "00.index"), 100, 32, 0)
    made.create()
    for offset, position in ((104, 50), (109, 90), (120, 200)):
        made.append(offset, position)
    return made


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("offset", "position"),
    [(100, 0), (103, 0), (104, 50), (108, 50), (109, 90), (119, 90), (120, 200), (9999, 200)],
)
def test_look_up(index: OffsetIndex, offset: int, position: int, closed: bool) -> None:
    if closed:
        index.write(trim=True)
    assert index.lookup(offset) == position


def test_full(index: OffsetIndex) -> None:
    assert not index.is_full
    index.append(130, 300)
    assert index.is_full


@pytest.mark.parametrize(("offset", "left"), [(104, 0), (105, 1), (120, 2), (121, 3)])
def test_truncation_drops_entries_at_or_above(index: OffsetIndex, offset: int, left: int) -> None:
    index.truncate_to(offset)
    assert index.count == left


def test_sanity(tmp_path: Path, index: OffsetIndex) -> None:
    assert index.is_sane(201)
    assert not index.is_sane(200)
    index.write()
    zeros = OffsetIndex(OsFileSystem(), index.path, 100, 32, 32)
    assert not zeros.is_sane(10_000)
    empty = OffsetIndex(OsFileSystem(), index.path, 100, 32, 0)
    assert empty.is_sane(0)
