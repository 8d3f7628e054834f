"""Files for Spark are made once, whole, under a name that says what is in them."""

from __future__ import annotations

import os
from pathlib import Path

from kafkapy.spark.workers.kept_files import kept_file


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    cache = tmp_path / "not" / "there yet"
    first = kept_file(cache, "job-1.0", ".zip", b"content")
    made = os.stat(first).st_mtime_ns
    assert kept_file(cache, "job-1.0", ".zip", b"content") == first
    assert os.stat(first).st_mtime_ns == made
    other = kept_file(cache, "job-1.0", ".zip", b"another")
    assert sorted(cache.iterdir()) == sorted([first, other])
    assert (first.read_bytes(), other.read_bytes()) == (b"content", b"another")
    assert first.name.startswith("job-1.0-")
    assert first.suffix == ".zip"


def test_only_what_is_to_be_run_can_be_run(tmp_path: Path) -> None:
    assert os.access(kept_file(tmp_path, "python", "", b"#!/bin/sh", executable=True), os.X_OK)
    assert not kept_file(tmp_path, "data", "", b"x").stat().st_mode & 0o111
