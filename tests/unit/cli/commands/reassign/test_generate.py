"""`reassign --generate`: Kafka's plan and ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.moving_cluster import SIZE_BYTES, MovingCluster

TOPICS = {"t": [[1, 2], [2, 1]], "u": [[1, 2]], "__consumer_offsets": [[1]]}


def generate(moving: MovingCluster, *words: str) -> Outcome:
    servers = ("--bootstrap-server", "b:9002")
    return kafkapy("reassign", *servers, "--generate", *words, cluster=moving.scripted)


def replicas(outcome: Outcome) -> dict[str, list[int]]:
    """The proposal by partition."""
    lines = outcome.stdout.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[2:4] == ["", "Proposed partition reassignment configuration"]
    rows = json.loads(lines[4])["partitions"]
    assert all(row["log_dirs"] == ["any"] * len(row["replicas"]) for row in rows)
    return {f"{row['topic']}-{row['partition']}": row["replicas"] for row in rows}


@pytest.fixture
def topics(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "topics").write_text('{"topics":[{"topic":"t"}],"version":1}')
    return "--topics-to-move-json-file", str(tmp_path / "topics")


def test_kafkas_plan_is_for_the_named_brokers_that_live(topics: tuple[str, str]) -> None:
    outcome = generate(MovingCluster(TOPICS, down=[4]), *topics, "--broker-list", "2,3,4")
    found = replicas(outcome)
    assert found.keys() == {"t-0", "t-1"}
    assert {b for row in found.values() for b in row} == {2, 3}
    assert outcome.stdout.splitlines()[1] == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any",'
        '"any"]},{"topic":"t","partition":1,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    )
    assert (outcome.stderr, outcome.status) == ("", 0)


def test_the_minimal_plan_is_for_everything_and_tells_its_cost() -> None:
    outcome = generate(MovingCluster(TOPICS, brokers=(1, 2, 3)), "--strategy", "minimal")
    assert len(replicas(outcome)) == 4
    assert outcome.stderr.splitlines() == [
        "2 partitions changed, 2 replicas to copy (2.0 KiB), 2 preferred leaders changed",
        "replicas by broker: 2 to 3; preferred leaders by broker: 1 to 2",
    ]


def test_decommission_touches_nothing_else() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3], [3, 1]]}, brokers=(1, 2, 3, 4))
    found = replicas(generate(moving, "--decommission", "1"))
    assert found == {"t-0": [2, 4], "t-1": [2, 3], "t-2": [3, 4]}


def test_a_dead_broker_can_be_decommissioned() -> None:
    moving = MovingCluster({"t": [[1, 2]]}, brokers=(1, 2, 3), down=[1])
    assert replicas(generate(moving, "--decommission", "1")) == {"t-0": [2, 3]}


@pytest.mark.parametrize("words", [("--decommission", "4"), ("--strategy", "minimal")])
def test_a_plan_during_a_move_keeps_the_number_of_copies_on_the_disks(
    words: tuple[str, ...],
) -> None:
    """Metadata lists the replicas that a running move adds and those that it removes."""
    moving = MovingCluster({"t": [[1, 2]]}, brokers=(1, 2, 3, 4))
    moving.begin(TopicPartition("t", 0), [3, 2], polls_left=0)
    outcome = generate(moving, *words)
    assert replicas(outcome) == {"t-0": [3, 2]}
    assert outcome.stderr.startswith("0 partitions changed, 0 replicas to copy")


def test_a_plan_keeps_the_copies_of_a_move_that_is_cancelled_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moving = MovingCluster({"t": [[1, 2]]}, brokers=(1, 2, 3, 4))
    moving.begin(TopicPartition("t", 0), [3, 2], polls_left=0)
    listed = moving.scripted.script[ApiKey.LIST_PARTITION_REASSIGNMENTS]

    def cancel(request: Any, port: int) -> Any:
        answer = listed(request, port)
        moving.running.clear()
        return answer

    monkeypatch.setitem(moving.scripted.script, ApiKey.LIST_PARTITION_REASSIGNMENTS, cancel)
    assert replicas(generate(moving, "--decommission", "4")) == {"t-0": [1, 2]}


def test_a_factor_for_all_but_internal_topics() -> None:
    moving = MovingCluster(TOPICS, brokers=(1, 2, 3))
    found = replicas(generate(moving, "--replication-factor", "3"))
    assert found == {"t-0": [1, 2, 3], "t-1": [2, 1, 3], "u-0": [1, 2, 3]}


def test_racks_are_honoured_unless_told_otherwise(topics: tuple[str, str]) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for row in replicas(
        generate(MovingCluster(TOPICS, racks=racks), "--strategy", "minimal", *topics)
    ).values():
        assert {racks[b] for b in row} == {"a", "b"}
    mixed = MovingCluster(TOPICS, racks={1: "a"})
    refused = generate(mixed, *topics, "--broker-list", "1,2")
    assert refused.stderr == (
        "Error: Not all brokers have rack information. Add --disable-rack-aware in command line to"
        " make replica assignment without rack information.\n"
    )
    assert generate(mixed, *topics, "--broker-list", "1,2", "--disable-rack-aware").status == 0


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("{", ("--broker-list", "1"), "Error: The input string is not a valid JSON (line 1, col"),
        (
            '{"topics":[{"topic":"t"},{"topic":"t"}]}',
            ("--broker-list", "1"),
            "Error: List of topics to reassign contains duplicate entries: [t]",
        ),
        (
            '{"topics":[{"topic":"no"}]}',
            ("--broker-list", "1"),
            "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic no not",
        ),
        (
            '{"topics":[{"topic":"t"}]}',
            ("--broker-list", "1"),
            "Error: Replication factor: 2 larger than available brokers: 1.",
        ),
        ("{}", ("--decommission", "9"), "Error: Unknown broker id 9"),
    ],
)
def test_what_cannot_be_planned(
    tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "topics").write_text(text)
    file = ("--topics-to-move-json-file", str(tmp_path / "topics"))
    outcome = generate(MovingCluster(TOPICS), *file, *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_a_broker_that_is_down_is_not_emptied_by_surprise() -> None:
    moving = MovingCluster(TOPICS, down=[1])
    refused = generate(moving, "--strategy", "minimal")
    assert refused.stderr.startswith("Error: Broker 1 has replicas and is not alive. Start it; or")
    named = generate(moving, "--strategy", "minimal", "--broker-list", "2,3,1")
    assert "Broker 1 is not alive: no replicas are assigned to it.\n" in named.stderr
    assert all(1 not in row for row in replicas(named).values())


def test_a_plan_needs_no_answer_of_the_broker_that_is_to_be_emptied() -> None:
    """Kafka's tool requests nothing of the brokers for its plan. Sizes only tell the cost."""
    moving = MovingCluster({"t": [[3, 2], [3]]}, brokers=(1, 2, 3, 4))
    moving.scripted.refuse = {9003}
    outcome = generate(moving, "--decommission", "3")
    assert replicas(outcome) == {"t-0": [2, 1], "t-1": [4]}
    assert outcome.stderr.startswith(
        "The bytes to copy are unknown: Connection to b:9003 could not be established"
    )
    assert "2 replicas to copy, " in outcome.stderr
    assert outcome.status == 0
    (plan,) = generate(moving, "--decommission", "3", "--output", "json").data
    assert plan["summary"]["bytes_to_copy"] is None


def test_a_plan_is_refused_without_the_permission_to_list_moves() -> None:
    """Without them, the plan would keep the replicas that a running move removes."""
    moving = MovingCluster(TOPICS)
    moving.scripted.script[ApiKey.LIST_PARTITION_REASSIGNMENTS] = (
        ListPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    )
    refused = generate(moving, "--decommission", "1")
    assert refused.stderr.startswith("Error: Cluster authorization failed.")
    assert (refused.stdout, refused.status) == ("", 1)


def test_json() -> None:
    moving = MovingCluster({"t": [[1]]}, brokers=(1, 2))
    (plan,) = generate(moving, "--replication-factor", "2", "--output", "json").data
    assert plan["proposed"]["partitions"][0]["replicas"] == [1, 2]
    assert plan["summary"]["bytes_to_copy"] == SIZE_BYTES
    assert plan["summary"]["replicas"] == {"1": 1, "2": 1}
