"""Files that a crash during a replacement leaves, completed or removed."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.file_records import FilePool
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.swap_files import finish_swaps
from tests.harness.storage.log_builder import LogBuilder

A, B, C = (f"{base:020d}" for base in (0, 2, 4))


def directory(tmp_path: Path) -> Path:
    """Segments at 0, 2 and 4, closed."""
    builder = LogBuilder(tmp_path).append(count=2).roll().append(count=2).roll().append().stop()
    return Path(builder.directory)


def names(path: Path) -> set[str]:
    return {p.name for p in path.iterdir() if p.suffix not in (".snapshot", ".metadata", "")}


def finish(path: Path) -> None:
    finish_swaps(FilePool(OsFileSystem()), str(path))


def segment_files(*bases: str) -> set[str]:
    return {f"{base}.{kind}" for base in bases for kind in ("log", "index", "timeindex")}


def test_plain_files_are_left_alone(tmp_path: Path) -> None:
    path = directory(tmp_path)
    finish(path)
    assert names(path) == segment_files(A, B, C)


def test_waste_and_unfinished_files_go(tmp_path: Path) -> None:
    path = directory(tmp_path)
    for name in (f"{A}.log.deleted", f"{A}.log.cleaned", f"{A}.index.cleaned", "x.tmp"):
        (path / name).write_bytes(b"waste")
    finish(path)
    assert names(path) == segment_files(A, B, C)


def test_a_swap_next_to_unfinished_files_goes_too(tmp_path: Path) -> None:
    path = directory(tmp_path)
    (path / f"{A}.log.swap").write_bytes((path / f"{A}.log").read_bytes())
    (path / f"{A}.index.cleaned").write_bytes(b"")
    finish(path)
    assert names(path) == segment_files(A, B, C)


def test_a_complete_swap_replaces_its_range(tmp_path: Path) -> None:
    path = directory(tmp_path)
    merged = (path / f"{A}.log").read_bytes() + (path / f"{B}.log").read_bytes()
    for kind in ("log", "index", "timeindex"):
        (path / f"{A}.{kind}.swap").write_bytes(merged if kind == "log" else b"")
    finish(path)
    assert names(path) == segment_files(A, C)
    assert (path / f"{A}.log").read_bytes() == merged
    finish(path)
    assert names(path) == segment_files(A, C)


def test_the_last_renames_are_made_up_for(tmp_path: Path) -> None:
    path = directory(tmp_path)
    (path / f"{A}.timeindex").rename(path / f"{A}.timeindex.swap")
    finish(path)
    assert names(path) == segment_files(A, B, C)


def test_an_emptied_segment_replaces_its_source(tmp_path: Path) -> None:
    path = directory(tmp_path)
    (path / f"{B}.log.swap").write_bytes(b"")
    finish(path)
    assert names(path) == segment_files(A, C) | {f"{B}.log"}
    assert (path / f"{B}.log").read_bytes() == b""
