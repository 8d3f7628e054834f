"""The production adapter, verb by verb."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from kafkapy.storage.filesystem import OsFileSystem, ReadOnlyFileSystem, read_file, write_atomically

FS = OsFileSystem()


def test_a_file_is_read_and_written_at_positions(tmp_path: Path) -> None:
    file = FS.open(f"{tmp_path}/a", create=True)
    file.pwritev([b"hello", memoryview(b" world")], 3)
    assert file.pread(100, 0) == b"\0\0\0hello world"
    assert file.pread(5, 3) == b"hello"
    file.truncate(8)
    assert file.size() == 8
    twin = file.duplicate()
    file.close()
    file.close()
    twin.fsync()
    assert twin.pread(8, 0) == b"\0\0\0hello"
    twin.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        twin.pread(1, 0)


def test_a_short_write_goes_on_until_the_disk_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FS.open(f"{tmp_path}/a", create=True)
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: os.pwrite(fd, buffers[0][:2], at))
    file.pwritev([b"abcdef", b"ghi"], 0)
    assert file.pread(100, 0) == b"abcdefghi"
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(OSError) as caught:
        file.pwritev([b"abcdef"], 0)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, f"{tmp_path}/a")
    os.close(file._fd)
    for step in (file.fsync, lambda: file.truncate(0), lambda: file.pwritev([b"x"], 0)):
        with pytest.raises(OSError, match=f"{tmp_path}/a"):
            step()
    file._fd = -1


def test_a_missing_file_is_not_made_by_opening(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FS.open(f"{tmp_path}/none")
    assert FS.stat(f"{tmp_path}/none") is None


def test_forcing_many_files_raises_what_one_of_them_does(tmp_path: Path) -> None:
    files = [FS.open(f"{tmp_path}/{number}", create=True) for number in range(40)]
    FS.fsync_all([])
    FS.fsync_all(files)
    files.append(FS.open("/dev/null"))
    with pytest.raises(OSError, match="/dev/null"):
        FS.fsync_all(files)
    for file in files:
        file.close()


def test_renaming_many_files_raises_what_one_of_them_does(tmp_path: Path) -> None:
    pairs = [(f"{tmp_path}/{number}.tmp", f"{tmp_path}/{number}") for number in range(40)]
    for source, target in pairs:
        write_atomically(FS, target, b"old", durable=False)
        write_atomically(FS, source, b"new", durable=False)
    FS.rename_all([])
    FS.rename_all(pairs)
    assert {read_file(FS, target) for _, target in pairs} == {b"new"}
    with pytest.raises(FileNotFoundError):
        FS.rename_all(pairs)


def test_names(tmp_path: Path) -> None:
    FS.make_dir(f"{tmp_path}/x/y")
    FS.make_dir(f"{tmp_path}/x/y")
    write_atomically(FS, f"{tmp_path}/x/f", b"one")
    write_atomically(FS, f"{tmp_path}/x/f", b"two", durable=False)
    assert read_file(FS, f"{tmp_path}/x/f") == b"two"
    assert [(e.name, e.is_dir, e.size) for e in sorted(FS.list(f"{tmp_path}/x"))] == [
        ("f", False, 3),
        ("y", True, FS.stat(f"{tmp_path}/x/y").size),  # type: ignore[union-attr]
    ]
    FS.set_modified(f"{tmp_path}/x/f", 1_700_000_000_123)
    assert FS.stat(f"{tmp_path}/x/f") == ("f", False, 3, 1_700_000_000_123)
    FS.rename(f"{tmp_path}/x/f", f"{tmp_path}/x/g")
    FS.fsync_dir(f"{tmp_path}/x")
    FS.fsync_dirs([str(tmp_path), f"{tmp_path}/x"])
    with pytest.raises(FileNotFoundError):
        FS.fsync_dirs([f"{tmp_path}/x", f"{tmp_path}/none"])
    FS.remove(f"{tmp_path}/x/g")
    FS.remove(f"{tmp_path}/x/g")
    assert list(FS.remove_tree(f"{tmp_path}/x")) == []
    assert list(FS.remove_tree(f"{tmp_path}/x")) == []
    assert FS.list(str(tmp_path)) == []
    total, usable = FS.disk_space(str(tmp_path))
    assert total >= usable > 0


def test_a_name_that_goes_during_a_listing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cleaner's thread lists a directory while the loop renames and removes files there."""
    for name in ("a", "b.deleted"):
        write_atomically(FS, f"{tmp_path}/{name}", b"", durable=False)
    names = list(os.scandir(tmp_path))
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext(names))
    FS.remove(f"{tmp_path}/b.deleted")
    assert [entry.name for entry in FS.list(str(tmp_path))] == ["a"]


def test_a_link_that_leads_nowhere_is_not_left_out(tmp_path: Path) -> None:
    """The partition's disk is not there: its log must not seem to be none."""
    (tmp_path / "orders-0").symlink_to(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        FS.list(str(tmp_path))


def test_an_older_temporary_file_does_not_show_through(tmp_path: Path) -> None:
    (tmp_path / "f.tmp").write_bytes(b"something much longer")
    write_atomically(FS, f"{tmp_path}/f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"


def test_the_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    path = f"{tmp_path}/.lock"
    held = FS.lock(path)
    assert held is not None
    ask = (
        "from kafkapy.storage.filesystem import OsFileSystem;"
        f"print(OsFileSystem().lock({path!r}) is None)"
    )
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True)
    assert told.stdout == b"True\n"
    held.close()
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True)
    assert told.stdout == b"False\n"


def test_a_tool_cannot_write_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"bytes")
    file = ReadOnlyFileSystem().open(str(path))
    assert file.pread(5, 0) == b"bytes"
    with pytest.raises(OSError, match=r"0\.log"):
        file.pwritev([b"x"], 0)
    file.close()
    with pytest.raises(FileNotFoundError):
        ReadOnlyFileSystem().open(str(tmp_path / "new"), create=True)
