"""Locks and identity of log directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.storage.checkpoints import MetaProperties
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.log_dirs import LogDirLocks, claim, read_identity
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.log_builder import CLUSTER_ID
from tests.simulation.sim_filesystem import SimFileSystem

FS = OsFileSystem()


def test_a_second_broker_is_told_which_directory_is_taken() -> None:
    disk = SimFileSystem()
    first, second = LogDirLocks(disk), LogDirLocks(disk)
    first.acquire("/a")
    first.acquire("/b")
    with pytest.raises(ConfigError, match=r"Log directory /b is in use by another broker"):
        second.acquire("/b")
    first.release("/b")
    first.release("/b")
    second.acquire("/b")
    first.release_all()
    second.acquire("/a")


def test_the_directory_is_made(tmp_path: Path) -> None:
    locks = LogDirLocks(FS)
    locks.acquire(f"{tmp_path}/x/y")
    assert (tmp_path / "x/y/.lock").exists()
    locks.release_all()


def test_claiming_fills_in_what_is_missing(tmp_path: Path) -> None:
    dirs = [f"{tmp_path}/a", f"{tmp_path}/b"]
    for path in dirs:
        FS.make_dir(path)
    assert read_identity(FS, dirs) == MetaProperties(None, None)
    claim(FS, dirs[:1], 3, CLUSTER_ID, NOW_MS)
    assert read_identity(FS, dirs) == MetaProperties(3, CLUSTER_ID)
    before = (tmp_path / "a/meta.properties").read_bytes()
    claim(FS, dirs, 3, CLUSTER_ID, NOW_MS + 5000)
    assert (tmp_path / "a/meta.properties").read_bytes() == before
    assert b"broker.id=3" in (tmp_path / "b/meta.properties").read_bytes()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "said"),
    [(4, CLUSTER_ID, "stored broker.id 3"), (3, "z" * 22, "wrong cluster")],
)
def test_a_directory_of_another_broker_is_refused(
    tmp_path: Path, broker_id: int, cluster_id: str, said: str
) -> None:
    claim(FS, [str(tmp_path)], 3, CLUSTER_ID, NOW_MS)
    with pytest.raises(ConfigError, match=said):
        claim(FS, [str(tmp_path)], broker_id, cluster_id, NOW_MS)


def test_directories_that_disagree(tmp_path: Path) -> None:
    for i, (broker_id, cluster_id) in enumerate([(1, CLUSTER_ID), (2, CLUSTER_ID)]):
        FS.make_dir(f"{tmp_path}/{i}")
        claim(FS, [f"{tmp_path}/{i}"], broker_id, cluster_id, NOW_MS)
    with pytest.raises(ConfigError, match=r"says broker\.id=2, another log directory says 1"):
        read_identity(FS, [f"{tmp_path}/0", f"{tmp_path}/1"])
