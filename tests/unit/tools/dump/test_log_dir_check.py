"""Directories checked whole: sound ones, broken ones, and what is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkapy.tools.dump.log_dir_check import problems
from tests.harness.scripted.cli import kafkapy

LOGS = Path(__file__).parents[3] / "data" / "dump_log" / "logs"
NAME = "00000000000000000000"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    for name in ("codec-gzip-0", "transactions-0"):
        shutil.copytree(LOGS / name, tmp_path / "logs" / name)
    return tmp_path / "logs"


def test_what_apache_kafka_closed_is_sound(log_dir: Path) -> None:
    assert list(problems(str(log_dir))) == []
    assert list(problems(f"{log_dir}/transactions-0/")) == []
    outcome = kafkapy("dump-log", "--verify", f"{log_dir},{log_dir}/codec-gzip-0")
    assert (outcome.stdout, outcome.status) == ("", 0)


def test_problems_are_named(log_dir: Path) -> None:
    segment = log_dir / "transactions-0" / f"{NAME}.log"
    segment.write_bytes(segment.read_bytes()[:-1])
    (log_dir / "codec-gzip-0" / f"{NAME}.index").unlink()
    outcome = kafkapy("dump-log", "--verify", str(log_dir))
    first, second, *_ = outcome.stdout.splitlines()
    assert first == f"{log_dir}/codec-gzip-0/{NAME}.index: missing"
    assert second.startswith(f"{segment}: damaged at position ")
    assert outcome.status == 1
    rows = kafkapy("dump-log", "--verify", str(log_dir), "--output", "json").data
    assert rows[0] == {"path": f"{log_dir}/codec-gzip-0/{NAME}.index", "problem": "missing"}


def test_what_is_no_directory(tmp_path: Path) -> None:
    found = list(problems(f"{tmp_path}/nope"))
    assert [str(each) for each in found] == [f"{tmp_path}/nope: No such file or directory"]
    with_files = kafkapy("dump-log", "--verify", str(tmp_path), "--files", "x.log")
    assert 'Option "[verify]" can\'t be used with option "[files]"' in with_files.stderr
