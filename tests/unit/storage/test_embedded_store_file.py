"""The embedded store's file keeps every byte that it said it has, and nothing else."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkapy.storage.embedded_store_file import EmbeddedStoreFile
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.embedded.memory import MemoryServer
from kafkapy.zk.zookeeper import StoreUnavailable
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import run
from tests.harness.storage.faulty_filesystem import FaultyFileSystem


def on(path: Path, disk: FaultyFileSystem | None = None) -> EmbeddedStoreFile:
    return EmbeddedStoreFile(disk or OsFileSystem(), str(path / "embedded-store"))


def replace(file: EmbeddedStoreFile, data: bytes) -> None:
    rewrite = file.rewrite()
    rewrite.write(b"?" + data[1:])
    rewrite.finish(data[:1])


def test_no_file_is_an_empty_one(tmp_path: Path) -> None:
    assert on(tmp_path).read() == b""
    assert list(tmp_path.iterdir()) == []


def test_appends_go_behind_what_is_there_in_this_life_and_the_next(tmp_path: Path) -> None:
    file = on(tmp_path)
    replace(file, b"snapshot ")
    file.append(b"one ")
    file.append(b"two ")
    file.close()
    file.append(b"three ")
    file.close()
    later = on(tmp_path)
    later.append(b"four")
    assert later.read() == b"snapshot one two three four"
    later.close()


def test_replacing_and_cutting(tmp_path: Path) -> None:
    file = on(tmp_path)
    file.append(b"old and long")
    replace(file, b"new")
    file.append(b"er")
    assert file.read() == b"newer"
    file.truncate(3)
    file.append(b"s")
    assert file.read() == b"news"
    file.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["embedded-store"]


def test_a_replacement_that_fails_leaves_the_old(tmp_path: Path) -> None:
    disk = FaultyFileSystem(OsFileSystem())
    file = on(tmp_path, disk)
    replace(file, b"old")
    disk.fail_at, disk.for_good = disk.changes + 2, True
    with pytest.raises(OSError, match="No space left"):
        replace(file, b"new")
    disk.for_good = False
    file.append(b"er")
    assert file.read() == b"older"
    file.close()


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_an_append_is_on_disk_before_it_returns(tmp_path: Path, step: str) -> None:
    disk = FaultyFileSystem(OsFileSystem())
    file = on(tmp_path, disk)
    file.append(b"first ")
    disk.fail_at = disk.changes + (1 if step == "write" else 2)
    with pytest.raises(OSError, match="No space left"):
        file.append(b"second ")
    file.truncate(len(b"first "))
    file.append(b"third")
    assert file.read() == b"first third"
    file.close()


@pytest.mark.parametrize("n", range(1, 39))
def test_a_store_over_it_forgets_what_it_refused_and_nothing_else(tmp_path: Path, n: int) -> None:
    """Each append is a write and an fsync; the n-th of these fails, the next append makes good."""
    disk = FaultyFileSystem(OsFileSystem())
    file = on(tmp_path, disk)
    client = MemoryServer(ManualClock(), Journal(file)).connect()
    disk.fail_at = disk.changes + n
    refused = (n - 1) // 2
    for i in range(20):
        if i == refused:
            with pytest.raises(StoreUnavailable):
                run(client.create(f"/n{i}", b""))
        else:
            run(client.create(f"/n{i}", b""))
    file.close()
    later = on(tmp_path)
    found = run(MemoryServer(ManualClock(), Journal(later)).connect().children("/"))
    later.close()
    assert set(found) & {f"n{i}" for i in range(20)} == {f"n{i}" for i in range(20) if i != refused}


def test_a_store_goes_on_without_free_descriptors(tmp_path: Path) -> None:
    """A client that takes them all must not end the server."""
    file = on(tmp_path)
    replace(file, b"snapshot ")
    with no_free_descriptors():
        file.append(b"one ")
    rewrite = file.rewrite()
    rewrite.write(b"?napshot 2 ")
    with no_free_descriptors():
        rewrite.finish(b"s")
        file.append(b"two")
    assert file.read() == b"snapshot 2 two"
    file.close()


@contextmanager
def no_free_descriptors() -> Iterator[None]:
    """A limit at which none can be opened but those that are closed meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as lowest:
        free = lowest.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_appends_during_a_rewrite_are_where_they_were(tmp_path: Path) -> None:
    file = on(tmp_path)
    file.append(b"old ")
    rewrite = file.rewrite()
    rewrite.write(b"?ew ")
    file.append(b"and more")
    assert on(tmp_path).read() == b"old and more"
    rewrite.write(b"and more")
    rewrite.finish(b"n")
    file.append(b" since")
    assert file.read() == b"new and more since"
    file.close()


def test_a_rewrite_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    file = on(tmp_path)
    file.append(b"old")
    first = file.rewrite()
    first.write(b"1")
    second = file.rewrite()
    second.write(b"2")
    file.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["embedded-store"]
    for rewrite in (first, second):
        with pytest.raises(OSError, match="abandoned"):
            rewrite.finish(b"")
    assert file.read() == b"old"


def test_a_long_rewrite_leaves_little_to_its_last_fsync(tmp_path: Path) -> None:
    disk = FaultyFileSystem(OsFileSystem())
    file = on(tmp_path, disk)
    rewrite = file.rewrite()
    for _ in range(3):
        before = disk.changes
        rewrite.write(bytes(1 << 20))
        assert disk.changes == before + 2
    rewrite.abandon()


def test_nothing_is_said_to_be_there_before_the_new_name_is_durable(tmp_path: Path) -> None:
    """After a crash the name might be that of the old content, without the append."""
    disk = FaultyFileSystem(OsFileSystem())
    file = on(tmp_path, disk)
    replace(file, b"old")
    before = disk.changes
    replace(file, b"new")
    disk.fail_at, disk.for_good = disk.changes + (disk.changes - before), True
    replace(file, b"newer")
    with pytest.raises(OSError, match="No space left"):
        file.append(b" still")
    disk.for_good = False
    file.append(b" still")
    assert file.read() == b"newer still"
    file.close()


def test_nobody_else_reads_it(tmp_path: Path) -> None:
    """SCRAM verifiers and delegation tokens are in it."""
    path = tmp_path / "embedded-store"
    file = on(tmp_path)
    file.append(b"one")
    assert mode(path) == 0o600
    replace(file, b"snapshot")
    assert mode(path) == 0o600
    file.close()
    path.chmod(0o644)  # as an earlier version left it
    assert on(tmp_path).read() == b"snapshot"
    assert mode(path) == 0o600


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
