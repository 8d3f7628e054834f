"""The checker sees each kind of damage and none where there is none."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kafkapy.storage.filesystem import OsFile, OsFileSystem
from kafkapy.storage.verify import verify_log_dir, verify_partition
from tests.harness.storage.log_builder import LogBuilder

FIRST = "00000000000000000000"


@pytest.fixture
def builder(tmp_path: Path) -> LogBuilder:
    made = LogBuilder(tmp_path, index_interval_bytes="0")
    for _ in range(4):
        made.append(count=3)
    made.produce(9, 0, is_transactional=True)
    made.end_transaction(9, commit=False)
    return made.roll().append(count=2).stop()


def test_a_stopped_broker_leaves_nothing_to_complain_about(builder: LogBuilder) -> None:
    assert verify_log_dir(builder.fs, builder.root) == []
    report = verify_partition(builder.fs, builder.directory)
    assert report == (0, 16, [])


@pytest.mark.parametrize(
    ("name", "position", "data", "said"),
    [
        (f"{FIRST}.log", 70, b"\xff", "damaged at position 0"),
        (f"{FIRST}.index", 3, b"\x01", "no batch from position"),
        (f"{FIRST}.index", 7, b"\xff", "no batch begins at position 255"),
        (f"{FIRST}.index", 8, bytes(4), "does not ascend"),
        (f"{FIRST}.index", 0, b"x" * 41, "not a multiple of 8"),
        (f"{FIRST}.timeindex", 12, bytes(8), "does not ascend"),
        (f"{FIRST}.timeindex", 7, b"\xfe", "say"),
        (f"{FIRST}.timeindex", 11, b"\x03", "no batch ends with offset 3"),
        (f"{FIRST}.txnindex", 0, b"\xff", "corrupt"),
        ("00000000000000000014.snapshot", 20, b"\x07", "Snapshot is corrupt"),
        ("leader-epoch-checkpoint", 0, b"0\n1\n0 99\n", "beyond the log end offset"),
        ("leader-epoch-checkpoint", 0, b"x", "has the version"),
        (f"{FIRST}.log.swap", 0, b"", "left over"),
    ],
)
def test_damage(builder: LogBuilder, name: str, position: int, data: bytes, said: str) -> None:
    path = builder.path(name)
    content = bytearray(path.read_bytes() if path.exists() else b"")
    content[position : position + len(data)] = data
    path.write_bytes(content)
    problems = verify_log_dir(builder.fs, builder.root)
    assert any(said in str(problem) for problem in problems), problems


def test_missing_files(builder: LogBuilder) -> None:
    builder.path(f"{FIRST}.timeindex").unlink()
    [problem] = verify_log_dir(builder.fs, builder.root)
    assert str(problem) == f"{builder.directory}/{FIRST}.timeindex: missing"


def test_overlapping_segments(builder: LogBuilder) -> None:
    for kind in ("log", "index", "timeindex"):
        source = builder.path(f"{FIRST}.{kind}")
        builder.path(f"00000000000000000003.{kind}").write_bytes(source.read_bytes())
    messages = [p.message for p in verify_partition(builder.fs, builder.directory).problems]
    assert "the segment before it ends at offset 14" in messages


class Broken(OsFileSystem):
    """Cannot read some files."""

    def open(self, path: str, create: bool = False) -> OsFile:
        if path.endswith(("orders-0/00000000000000000000.log", "cleaner-offset-checkpoint")):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().open(path, create)


def test_an_unreadable_file_hides_no_other_problem(builder: LogBuilder, tmp_path: Path) -> None:
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"0\n0\n")
    shutil.copytree(builder.directory, tmp_path / "orders-1")
    (tmp_path / "orders-1" / f"{FIRST}.timeindex").unlink()
    assert [str(problem) for problem in verify_log_dir(Broken(), builder.root)] == [
        f"{builder.directory}/{FIRST}.log: Input/output error",
        f"{tmp_path}/orders-1/{FIRST}.timeindex: missing",
        f"{tmp_path}/cleaner-offset-checkpoint: Input/output error",
    ]


def test_the_log_directory_itself(builder: LogBuilder, tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "replication-offset-checkpoint").write_bytes(b"0\n1\norders 0 17\n")
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"nonsense")
    said = [str(problem) for problem in verify_log_dir(builder.fs, builder.root)]
    assert len(said) == 3
    assert "lost+found" in said[0]
    assert "orders-0 has offset 17, its log ends at 16" in said[1]
    assert "cleaner-offset-checkpoint" in said[2]
