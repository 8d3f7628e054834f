"""Throttles from before `reassign --execute`: restored once, and only where one is still set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.moving_cluster import MovingCluster

LEADER = "leader.replication.throttled.rate"
CLEARING = (
    "Clearing broker-level throttles on brokers 1,2,3,4\n"
    "Clearing topic-level throttles on topic t\n"
)


@pytest.fixture
def moving() -> MovingCluster:
    """A cluster with broker 4, which has a throttle of its operator, and no replica."""
    return MovingCluster({"t": [[1, 2]]}, polls_left=1)


class File:
    """A reassignment file."""

    def __init__(self, moving: MovingCluster, path: Path | str, *replicas: int) -> None:
        self.moving = moving
        self.path = str(path)
        self.text = json.dumps(
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": replicas}]}
        )
        if isinstance(path, Path):
            path.write_text(self.text)

    def __call__(self, *words: str) -> Outcome:
        file = ("--bootstrap-server", "b:9002", "--reassignment-json-file", self.path)
        return kafkapy("reassign", *words, *file, cluster=self.moving.scripted)

    def move(self, *words: str) -> Outcome:
        """Execute, and let the move end before anybody verifies it."""
        outcome = self("--execute", *words)
        kafkapy("reassign", "--list", "--bootstrap-server", "b:9002", cluster=self.moving.scripted)
        return outcome


@pytest.fixture
def files(tmp_path: Path, moving: MovingCluster) -> tuple[File, File]:
    """Files with which partition t-0 moves to brokers 3 and 2, then to 4 and 2."""
    return File(moving, tmp_path / "a.json", 3, 2), File(moving, tmp_path / "b.json", 4, 2)


def test_the_throttle_of_a_forgotten_reassignment_is_not_an_earlier_one(
    moving: MovingCluster, files: tuple[File, File]
) -> None:
    first, second = files
    first.move("--throttle", "1000")
    begun = second.move("--throttle", "5000")
    verified = second("--verify")
    assert moving.configs == {}
    assert verified.stdout.endswith(CLEARING)
    assert (begun.stderr, verified.stderr) == ("", "")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_operators_throttle_outlives_two_reassignments(
    moving: MovingCluster, files: tuple[File, File], order: tuple[int, int]
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    files[0].move("--throttle", "1000")
    files[1].move("--throttle", "5000")
    for index in order:
        files[index]("--verify")
    assert moving.configs == {(4, "3"): {LEADER: "77"}}


def test_the_operators_throttle_outlives_a_reassignment_beside_another(
    moving: MovingCluster, files: tuple[File, File]
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    moving.polls_left = 2
    files[0]("--execute", "--throttle", "1000")
    files[1].move("--throttle", "5000", "--additional")
    for file in (files[1], files[1], files[0]):
        file("--verify")
    assert moving.configs == {(4, "3"): {LEADER: "77"}}


def test_the_record_of_another_cluster_is_another_matter(
    tmp_path: Path, moving: MovingCluster, files: tuple[File, File]
) -> None:
    """The operator's throttle may be as high as that of a reassignment elsewhere."""
    files[0].move("--throttle", "1000")
    record = tmp_path / "a.json.throttles"
    record.write_text(record.read_text().replace('"cluster": "cluster"', '"cluster": "other"'))
    moving.configs = {(4, "3"): {LEADER: "1000"}}
    files[1].move("--throttle", "5000")
    files[1]("--verify")
    assert moving.configs == {(4, "3"): {LEADER: "1000"}}


def test_an_unreadable_record_of_another_reassignment_does_not_matter(
    tmp_path: Path, moving: MovingCluster, files: tuple[File, File]
) -> None:
    (tmp_path / "broken.json.throttles").write_text("{")
    (tmp_path / "directory.throttles").mkdir()
    assert files[1].move("--throttle", "5000").status == 0


@pytest.mark.parametrize("cleared_by", ["Kafka's tool", "the operator"])
def test_a_throttle_that_is_gone_is_not_set_again(
    moving: MovingCluster, files: tuple[File, File], cleared_by: str
) -> None:
    moving.set_config(4, "4", leader_replication_throttled_rate="77")
    files[0].move("--throttle", "1000")
    if cleared_by == "Kafka's tool":
        moving.configs.clear()
    else:
        moving.configs.pop((4, "4"))
    verified = files[0]("--verify")
    assert moving.configs == {}
    assert verified.stdout.endswith(CLEARING)
    assert verified.stderr == ""


@pytest.mark.parametrize("now", [None, "88"])
def test_a_repeated_verify_sets_nothing(
    moving: MovingCluster, files: tuple[File, File], now: str | None
) -> None:
    """Operators run it from cron: it set the earlier throttle each time."""
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    files[0].move("--throttle", "1000")
    assert "set on broker 3" in files[0]("--verify").stderr
    assert moving.configs == {(4, "3"): {LEADER: "77"}}
    moving.configs = {} if now is None else {(4, "3"): {LEADER: now}}
    files[0]("--verify")
    assert moving.configs == ({} if now is None else {(4, "3"): {LEADER: now}})


def test_a_restored_throttle_outlives_the_next_run_of_its_file(
    moving: MovingCluster, files: tuple[File, File]
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    for words in ((), ("--additional",)):
        files[0].move("--throttle", "1000", *words)
        files[0]("--verify")
        assert moving.configs == {(4, "3"): {LEADER: "77"}}
        moving.replicas = {tp: [1, 2] for tp in moving.replicas}


def test_what_is_restored_is_not_called_cleared(
    moving: MovingCluster, files: tuple[File, File]
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    moving.set_config(2, "t", leader_replication_throttled_replicas="*")
    files[0].move("--throttle", "1000")
    for _ in range(2):
        verified = files[0]("--verify")
        clearing = [line for line in verified.stdout.splitlines() if line.startswith("Clearing")]
        assert clearing == ["Clearing broker-level throttles on brokers 1,2,4"]
        assert verified.stderr == (
            "Throttles from before this reassignment are set on broker 3, topic t: kafkapy configs"
            " --describe shows them\n"
        )


def test_throttles_without_earlier_ones_are_removed_without_a_right_to_describe_configs(
    moving: MovingCluster, files: tuple[File, File]
) -> None:
    files[0].move("--throttle", "1000")
    result = DescribeConfigsResult(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    refusal = DescribeConfigsResponse(results=[result])
    moving.scripted.script[ApiKey.DESCRIBE_CONFIGS] = refusal
    assert files[0]("--verify").status == 0
    assert moving.configs == {}


@pytest.fixture
def substituted(moving: MovingCluster) -> Iterator[File]:
    """A file that the shell passes as `<(...)`: a pipe, which is read once."""
    reader, writer = os.pipe()
    file = File(moving, f"/dev/fd/{reader}", 3, 2)
    os.write(writer, file.text.encode())
    os.close(writer)
    yield file
    os.close(reader)


def test_a_process_substitution_moves_although_throttles_cannot_be_saved(
    moving: MovingCluster, substituted: File
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    outcome = substituted("--execute", "--throttle", "1000")
    assert outcome.stderr == (
        f"There are throttles already, and --verify will not restore them, because"
        f" {substituted.path}.throttles cannot be written: Operation not supported: broker 3"
        f" {LEADER}=77\n"
    )
    assert outcome.status == 0
    assert list(moving.running) != []


def test_a_process_substitution_in_batches_restores_earlier_throttles(
    moving: MovingCluster, substituted: File
) -> None:
    moving.set_config(4, "3", leader_replication_throttled_rate="77")
    outcome = substituted("--execute", "--throttle", "1000", "--batch-size", "1")
    assert outcome.status == 0
    assert moving.configs == {(4, "3"): {LEADER: "77"}}


def test_nothing_is_written_beside_standard_input(
    moving: MovingCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root this made a file /dev/stdin.throttles."""
    written: list[str] = []
    monkeypatch.setattr(
        "kafkapy.tools.reassign.throttle_record.write_atomically",
        lambda _, path, data: written.append(path),
    )
    path = tmp_path / "a.json"
    File(moving, path, 3, 2)
    with open(path) as stdin:
        file = File(moving, f"/dev/fd/{stdin.fileno()}", 3, 2)
        assert file("--execute", "--throttle", "1000").status == 0
    assert written == []
