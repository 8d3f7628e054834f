"""Files for Spark are made once, whole, under a name that says what is in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkapy.spark.workers.kept_files import cached_file


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    cache = tmp_path / "not" / "there yet"
    first = cached_file(cache, "job-1.0", ".zip", b"content")
    made = os.stat(first).st_mtime_ns
    assert cached_file(cache, "job-1.0", ".zip", b"content") == first
    assert os.stat(first).st_mtime_ns == made
    other = cached_file(cache, "job-1.0", ".zip", b"another")
    assert sorted(cache.iterdir()) == sorted([first, other])
    assert (first.read_bytes(), other.read_bytes()) == (b"content", b"another")
    assert first.name.startswith("job-1.0-")
    assert first.suffix == ".zip"


def test_only_what_is_to_be_run_can_be_run(tmp_path: Path) -> None:
    assert os.access(cached_file(tmp_path, "python", "", b"#!/bin/sh", executable=True), os.X_OK)
    assert not cached_file(tmp_path, "data", "", b"x").stat().st_mode & 0o111


def test_two_commands_that_make_the_same_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one has only begun to write when the first one has its file."""
    replace = Path.replace

    def replace_later(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        other = cached_file(tmp_path, "python", "", b"#!/bin/sh", executable=True)
        assert other.read_bytes() == b"#!/bin/sh"
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replace_later)
    made = cached_file(tmp_path, "python", "", b"#!/bin/sh", executable=True)
    assert made.read_bytes() == b"#!/bin/sh"
    assert list(tmp_path.iterdir()) == [made]


def test_a_file_that_a_power_cut_left_empty_is_made_again(tmp_path: Path) -> None:
    made = cached_file(tmp_path, "python", "", b"#!/bin/sh", executable=True)
    made.write_bytes(b"")
    assert cached_file(tmp_path, "python", "", b"#!/bin/sh", executable=True) == made
    assert made.read_bytes() == b"#!/bin/sh"


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        cached_file(tmp_path, "data", "", b"x")
    assert list(tmp_path.iterdir()) == []
