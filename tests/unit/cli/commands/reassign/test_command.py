"""`kafkapy reassign`: where an action goes, and what a dry run shows."""

from __future__ import annotations

from pathlib import Path

from kafkapy.admin.dry_run import MUTATING_APIS
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.moving_cluster import MovingCluster

MOVES = '{"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}'
B = ("--bootstrap-server", "b:9002")


def test_a_dry_run_prints_the_requests_and_sends_none(tmp_path: Path) -> None:
    (tmp_path / "moves").write_text(MOVES)
    moving = MovingCluster({"t": [[1, 2]]})
    words = ("--execute", "--throttle", "500", "--dry-run")
    file = ("--reassignment-json-file", str(tmp_path / "moves"))
    outcome = kafkapy("reassign", *B, *words, *file, cluster=moving.scripted)
    lines = outcome.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "Would send IncrementalAlterConfigs v1 to any broker",
        "Would send IncrementalAlterConfigs v1 to broker 1",
        "Would send IncrementalAlterConfigs v1 to broker 2",
        "Would send IncrementalAlterConfigs v1 to broker 3",
        "Would send AlterPartitionReassignments v0 to broker 1",
    ]
    assert lines[-1].endswith(
        '{"timeout_ms":30000,"topics":[{"name":"t","partitions":'
        '[{"partition_index":0,"replicas":[2,3]}]}]}'
    )
    assert outcome.status == 0
    assert not {r.API_KEY for _, r, _ in moving.scripted.requests} & MUTATING_APIS
    assert moving.running == {}


def test_a_dry_run_in_batches_as_json(tmp_path: Path) -> None:
    rows = [f'{{"topic":"t","partition":{p},"replicas":[2,3]}}' for p in range(3)]
    (tmp_path / "moves").write_text(f'{{"partitions":[{",".join(rows)}]}}')
    moving = MovingCluster({"t": [[1, 2]] * 3})
    words = ("--execute", "--batch-size", "2", "--dry-run", "--output", "json")
    file = ("--reassignment-json-file", str(tmp_path / "moves"))
    requests = kafkapy("reassign", *B, *words, *file, cluster=moving.scripted).data
    assert [r["api"] for r in requests] == ["AlterPartitionReassignments"] * 2
    sizes = [len(topic["partitions"]) for r in requests for topic in r["body"]["topics"]]
    assert sizes == [2, 1]


def test_refusals_of_kafkas_tool_have_no_frame_and_others_have(tmp_path: Path) -> None:
    (tmp_path / "moves").write_text(MOVES)
    (tmp_path / "empty").write_text("{}")
    moving = MovingCluster({"t": [[1, 2]], "u": [[1, 2]]}, polls_left=0)
    file = ("--reassignment-json-file", str(tmp_path / "moves"))
    begun = kafkapy("reassign", *B, "--execute", *file, cluster=moving.scripted)
    assert begun.status == 0
    again = kafkapy("reassign", *B, "--execute", *file, cluster=moving.scripted)
    assert again.stderr.startswith("Cannot execute because there is an existing partition assignm")
    empty = ("--reassignment-json-file", str(tmp_path / "empty"))
    refused = kafkapy("reassign", *B, "--execute", *empty, cluster=moving.scripted)
    assert refused.stderr == "Error: Partition reassignment list cannot be empty\n"
    assert (again.status, refused.status) == (1, 1)


def test_with_both_servers_the_brokers_are_asked() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    both = (*B, "--zookeeper", "127.0.0.1:1")
    outcome = kafkapy("reassign", *both, "--list", cluster=moving.scripted)
    assert outcome.stdout == "No partition reassignments found.\n"
    assert outcome.stderr.startswith("Warning: ignoring deprecated --zookeeper option")
