"""Small files that survive a power cut, each at once or many together."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafkapy.storage.durable_files import DurableFiles
from kafkapy.storage.filesystem import OsFileSystem, read_file
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.short_filesystem import ShortFileSystem
from tests.simulation.sim_filesystem import SimFileSystem


def disk_with(*directories: str) -> SimFileSystem:
    disk = SimFileSystem()
    for directory in directories:
        disk.make_dir(directory)
    return disk


def contents(disk: SimFileSystem, *paths: str) -> list[bytes | None]:
    return [None if disk.stat(path) is None else read_file(disk, path) for path in paths]


def test_alone_each_is_durable_on_return() -> None:
    disk = disk_with("/logs")
    durable = DurableFiles(disk)
    durable.write("/logs/a", b"1")
    disk.open("/logs/b", create=True)
    durable.fsync_dir("/logs")
    disk.crash(1)
    assert contents(disk, "/logs/a", "/logs/b") == [b"1", b""]


@pytest.mark.parametrize("seed", range(20))
def test_together_all_are_durable_after_the_commit(seed: int) -> None:
    disk = disk_with("/logs/x", "/logs/y")
    durable = DurableFiles(disk)
    paths = [f"/logs/{parent}/{number}" for parent in "xy" for number in range(300)]
    with durable.defer_writes():
        for path in paths:
            durable.write(path, b"first")
            durable.write(path, path.encode())
        durable.fsync_dir("/logs")
    durable.commit("/logs")
    disk.crash(seed)
    assert contents(disk, *paths) == [path.encode() for path in paths]
    assert sorted(entry.name for entry in disk.list("/logs")) == ["x", "y"]


@pytest.mark.parametrize("fail_at", range(1, 15))
def test_a_crash_in_the_commit_leaves_the_old_or_the_new_of_each(fail_at: int) -> None:
    disk = disk_with("/logs")
    for name in "abc":
        DurableFiles(disk).write(f"/logs/{name}", b"old")
    durable = DurableFiles(FaultyFileSystem(disk, fail_at, for_good=True))
    with durable.defer_writes():
        for name in "abc":
            durable.write(f"/logs/{name}", b"new")
    with pytest.raises(OSError) as failed:
        durable.commit("/logs")
    assert failed.value.errno == errno.ENOSPC
    disk.crash(fail_at)
    assert set(contents(disk, "/logs/a", "/logs/b", "/logs/c")) <= {b"old", b"new"}


def test_a_commit_is_of_one_directory_and_what_is_dropped_is_never_written() -> None:
    disk = disk_with("/logs", "/logs2")
    durable = DurableFiles(disk)
    with durable.defer_writes():
        durable.write("/logs/a", b"1")
        durable.write("/logs2/a", b"1")
        durable.fsync_dir("/logs2")
    durable.commit("/logs")
    durable.discard_all()
    durable.commit("/logs2")
    assert contents(disk, "/logs/a", "/logs2/a") == [b"1", None]


def test_what_follows_is_durable_at_once_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = f"{tmp_path_factory.mktemp('logs')}/a"
    durable = DurableFiles(OsFileSystem())
    with pytest.raises(ZeroDivisionError), durable.defer_writes():
        raise ZeroDivisionError
    durable.write(path, b"1")
    assert read_file(OsFileSystem(), path) == b"1"


def test_with_few_descriptors_files_are_written_one_by_one(tmp_path: Path) -> None:
    fs = ShortFileSystem(Disk())
    durable = DurableFiles(fs)
    paths = [str(tmp_path / f"{i}") for i in range(5)]
    with durable.defer_writes():
        for path in paths:
            durable.write(path, path.encode())
    fs.descriptors_left = 2
    durable.commit(str(tmp_path))
    assert [Path(path).read_bytes().decode() for path in paths] == paths
    assert fs.descriptors_left == 2
