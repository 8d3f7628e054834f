"""The output of `reassign --zookeeper --execute`; the rest is tested live."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.zookeeper.reassign import ZnodeReassignments
from tests.harness.scripted.cli import kafkapy

TARGET = {"topic": "t", "partition": 0, "replicas": [2, 3]}
BEFORE = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}


def refuse(*_: object) -> None:
    raise ReassignmentFailed("the session is lost")


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Begin the moves of a file."""
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": [TARGET]}))
    present = {TopicPartition("t", 0): (1, 2)}
    monkeypatch.setattr(ZnodeReassignments, "check", lambda *_: present)
    monkeypatch.setattr(ZnodeReassignments, "begin", lambda *_: None)
    return ["--zookeeper", "h:1", "--execute", "--reassignment-json-file", str(file)]


def test_the_way_back_comes_before_the_moves(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have begun although the answer was lost."""
    way_back = json.dumps({"version": 1, "partitions": [BEFORE]}, separators=(",", ":"))
    done = kafkapy("reassign", *words)
    assert done.stdout.splitlines()[3] == way_back
    assert done.stdout.endswith("\nSuccessfully started partition reassignment for t-0\n")
    monkeypatch.setattr(ZnodeReassignments, "begin", refuse)
    failed = kafkapy("reassign", *words)
    assert failed.stdout.splitlines()[3] == way_back
    assert (failed.stderr.splitlines()[0], failed.status) == ("the session is lost", 1)


def test_json_has_the_way_back(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rollback = {"version": 1, "partitions": [BEFORE]}
    [row] = kafkapy("reassign", *words, "--output", "json").data
    assert row == {"rollback": rollback, "started": ["t-0"]}
    monkeypatch.setattr(ZnodeReassignments, "begin", refuse)
    [row] = kafkapy("reassign", *words, "--output", "json").data
    assert row == {"rollback": rollback, "started": []}
