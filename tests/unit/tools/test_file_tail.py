"""file_tail: lines once, whatever happens to the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkapy.tools.file_tail import (
    LINE_BYTES_MAX,
    Cursor,
    FileTail,
    Line,
    NotAFile,
    cursor_from_json,
    cursor_to_json,
    find_renamed,
    is_plain_file,
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\r\nthr")
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def values(tail: FileTail, *, ended: bool = False) -> list[bytes]:
    return [line.value for line in tail.read(1 << 20, ended=ended)]


def test_whole_lines_and_where_they_began(log: Path) -> None:
    tail = FileTail(log)
    assert tail.read(1 << 20) == [Line(b"one", 0), Line(b"two", 4)]
    assert values(tail) == []
    append(log, b"ee\n\n")
    assert tail.read(1 << 20) == [Line(b"three", 9), Line(b"", 15)]
    tail.close()


def test_a_last_line_without_end_counts_when_the_file_has_ended(log: Path) -> None:
    tail = FileTail(log)
    assert values(tail, ended=True) == [b"one", b"two", b"thr"]
    assert values(tail, ended=True) == []
    tail.close()


def test_a_backlog_of_a_rotated_file_loses_no_line_to_a_cut(tmp_path: Path) -> None:
    lines = [b"%05d" % number * 20 for number in range(20_000)]
    path = tmp_path / "app.log.1"
    path.write_bytes(b"\n".join(lines))
    tail = FileTail(path)
    found: list[bytes] = []
    while part := values(tail, ended=True):
        found += part
    assert found == lines
    tail.close()


def test_a_cursor_goes_on_where_it_was(log: Path) -> None:
    tail = FileTail(log)
    values(tail)
    cursor = cursor_from_json(cursor_to_json(tail.cursor))
    tail.close()
    append(log, b"ee\n")
    tail = FileTail(log, cursor)
    assert values(tail) == [b"three"]
    tail.close()


def test_a_cursor_of_another_file_begins_anew(log: Path) -> None:
    tail = FileTail(log)
    values(tail)
    tail.close()
    log.write_bytes(b"ONE\nTWO\r\nTHREE\n")  # the same inode, longer than before
    tail = FileTail(log, tail.cursor)
    assert values(tail) == [b"ONE", b"TWO", b"THREE"]
    tail.close()


@pytest.mark.parametrize("after", [b"", b"new\n", b"a new beginning that is longer\n"])
def test_truncation(log: Path, after: bytes) -> None:
    tail = FileTail(log)
    values(tail)
    assert not tail.reset_if_truncated()
    log.write_bytes(after)
    assert tail.reset_if_truncated()
    assert values(tail) == after.splitlines()
    tail.close()


def test_rotation_by_rename(log: Path) -> None:
    tail = FileTail(log)
    values(tail)
    log.rename(log.with_suffix(".log.1"))
    assert not tail.is_replaced()  # nothing new yet; the writer may still have it open
    append(log.with_suffix(".log.1"), b"ee\nlast")
    log.write_bytes(b"new\n")
    assert tail.is_replaced()
    assert values(tail, ended=True) == [b"three", b"last"]
    assert not tail.is_deleted()
    log.with_suffix(".log.1").unlink()
    assert tail.is_deleted()
    tail.close()


def test_a_renamed_file_is_found_again(log: Path) -> None:
    tail = FileTail(log)
    values(tail)
    tail.close()
    log.rename(log.with_name("app.log-2026"))
    log.write_bytes(b"new\n")
    log.with_name("app.log.other").write_bytes(b"x\n")
    found = find_renamed(log, tail.cursor)
    assert found is not None
    assert found.path.name == "app.log-2026"
    found.close()
    log.with_name("app.log-2026").unlink()
    assert find_renamed(log, tail.cursor) is None


def test_a_long_line_becomes_pieces(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (LINE_BYTES_MAX + 5) + b"\nnext\n")
    tail = FileTail(path)
    assert [len(line.value) for line in tail.read(10)] == [LINE_BYTES_MAX]
    assert values(tail) == [b"x" * 5, b"next"]
    tail.close()


def test_the_end_is_the_end_of_the_last_line(log: Path) -> None:
    tail = FileTail(log)
    tail.skip_to_end()
    append(log, b"ee\n")
    assert values(tail) == [b"three"]
    tail.close()


def test_what_is_no_cursor() -> None:
    with pytest.raises(ValueError, match="is no cursor"):
        cursor_from_json({"inode": 1})
    with pytest.raises(ValueError, match="invalid literal"):
        cursor_from_json({**cursor_to_json(Cursor(1, 2)), "offset": "x"})


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileTail(tmp_path / "none")
    assert os.listdir(tmp_path) == []


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a\n")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("a\n")
    (tmp_path / "dir").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dir/file", "pipe", "real"):
        assert not is_plain_file(f"{tmp_path}/{name}")
        with pytest.raises(NotAFile):
            FileTail(tmp_path / name)
    assert is_plain_file(f"{tmp_path}/file")
