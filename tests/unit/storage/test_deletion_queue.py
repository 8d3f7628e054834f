"""Removal when it is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.filesystem import OsFileSystem
from tests.harness.storage.faulty_filesystem import FaultyFileSystem


def test_what_is_due_goes_and_the_rest_waits(tmp_path: Path) -> None:
    queue = DeletionQueue(OsFileSystem())
    for name in ("a", "b"):
        (tmp_path / name).touch()
    (tmp_path / "d" / "e").mkdir(parents=True)
    queue.add_files([f"{tmp_path}/a"], 10)
    queue.add_files([f"{tmp_path}/b"], 20)
    queue.add_directory(f"{tmp_path}/d", 10)
    assert sum(queue.run(9)) == 0
    assert sum(queue.run(10)) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert sum(queue.run(99)) == 1
    assert sum(queue.run(99)) == 0


def test_a_directory_that_goes_itself_takes_its_files_off_the_queue(tmp_path: Path) -> None:
    queue = DeletionQueue(OsFileSystem())
    (tmp_path / "x").touch()
    queue.add_files([f"{tmp_path}/x"], 1)
    queue.discard_files(str(tmp_path))
    assert sum(queue.run(99)) == 0


def test_other_work_gets_its_turn_between_the_files_of_a_deleted_topic(tmp_path: Path) -> None:
    queue = DeletionQueue(OsFileSystem())
    gone = tmp_path / "t-0.x-delete"
    (gone / "nested").mkdir(parents=True)
    for name in ("1.log", "2.log", "nested/3.log"):
        (gone / name).touch()
    queue.add_directory(str(gone), 1)
    left = [len(list(gone.rglob("*.log"))) for _ in queue.run(1)]
    assert left == [2, 1, 0, 0]
    assert not gone.exists()


def test_files_that_are_discarded_between_the_steps_are_left_alone(tmp_path: Path) -> None:
    queue = DeletionQueue(OsFileSystem())
    for name in ("a", "b"):
        (tmp_path / name).touch()
    queue.add_files([f"{tmp_path}/a", f"{tmp_path}/b"], 1)
    steps = queue.run(1)
    assert next(steps) == 1
    queue.discard_files(str(tmp_path))
    assert sum(steps) == 0
    assert (tmp_path / "b").exists()


def test_a_failure_does_not_hold_up_the_next_run(tmp_path: Path) -> None:
    disk = FaultyFileSystem(OsFileSystem(), fail_at=1)
    queue = DeletionQueue(disk)
    for name in ("a", "b"):
        (tmp_path / name).touch()
        queue.add_files([f"{tmp_path}/{name}"], 1)
    with pytest.raises(OSError, match="No space left"):
        sum(queue.run(5))
    sum(queue.run(5))
    assert not (tmp_path / "b").exists()
