"""Common part of both indexes: memory, the preallocated file, trimming."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.offset_index import OffsetIndex

FS = OsFileSystem()


def new_index(path: Path, max_bytes: int = 100) -> OffsetIndex:
    index = OffsetIndex(FS, str(path), 1000, max_bytes, 0)
    index.create()
    return index


def test_the_file_is_preallocated_to_whole_entries_and_sparse(tmp_path: Path) -> None:
    path = tmp_path / "i"
    new_index(path, 10_485_763)
    assert path.stat().st_size == 10_485_760
    assert path.stat().st_blocks == 0


def test_entries_reach_the_file_on_write_and_trim_cuts_it(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = new_index(path)
    index.append(1005, 70)
    assert path.read_bytes() == bytes(96)
    index.write()
    assert path.read_bytes() == b"\0\0\0\5\0\0\0\x46" + bytes(88)
    index.append(1009, 140)
    index.write(trim=True)
    assert path.read_bytes() == b"\0\0\0\5\0\0\0\x46\0\0\0\x09\0\0\0\x8c"
    assert (index.count, index.byte_size) == (2, 16)


def test_a_closed_index_is_searched_in_the_file_and_can_go_on(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = new_index(path, 8000)
    for i in range(1, 500):
        index.append(1000 + 2 * i, 10 * i)
    index.write(trim=True)
    reopened = OffsetIndex(FS, str(path), 1000, 8000, path.stat().st_size)
    for target in (0, 1, 2, 3, 500, 997, 998, 5000):
        assert index.search(0, target) == reopened.search(0, target) == min(target // 2, 499)
    assert reopened.entry(-1) == (998, 4990)
    reopened.append(2000, 5000)
    assert reopened.entry(-1) == (1000, 5000)
    reopened.write()
    assert path.stat().st_size == 500 * 8
    assert reopened.all_entries() == [(2 * i, 10 * i) for i in range(1, 501)]


def test_keep_drops_the_newest_entries_in_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = new_index(path)
    for i in range(1, 6):
        index.append(1000 + i, i)
    index.write()
    index.truncate_to_entries(2)
    index.truncate_to_entries(4)
    index.append(1009, 9)
    index.write(trim=True)
    assert OffsetIndex(FS, str(path), 0, 100, 24).all_entries() == [(1, 1), (2, 2), (9, 9)]


def test_create_empties_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "i"
    path.write_bytes(b"\xff" * 300)
    index = new_index(path)
    assert index.count == 0
    assert path.read_bytes() == bytes(96)
