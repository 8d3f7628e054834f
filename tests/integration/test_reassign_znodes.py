"""The tools that `--zookeeper` still reaches, on a ZooKeeper and brokers of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes.broker_group import BrokerGroup, running
from tests.harness.scripted.cli import kafkapy

DEPRECATED = (
    "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka.\n"
)
INCOMPLETE = (
    "Warning: because you are using the deprecated --zookeeper option, the results may be"
    " incomplete.  Use --bootstrap-server instead for more accurate results.\n"
)


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    yield from running(
        tmp_path_factory.mktemp("znodes"), (1, 2), {"auto.leader.rebalance.enable": "false"}
    )


def create(group: BrokerGroup, topic: str, assignment: str) -> None:
    words = ("--create", "--topic", topic, "--replica-assignment", assignment)
    outcome = kafkapy("topics", "--bootstrap-server", group.bootstrap_servers, *words)
    assert outcome.status == 0, outcome


def test_a_reassignment_by_the_znode(group: BrokerGroup, tmp_path: Path) -> None:
    zookeeper = ("--zookeeper", group.zookeeper.connect())
    create(group, "old", "1,1")
    topics, moves = tmp_path / "topics", tmp_path / "moves"
    topics.write_text('{"topics":[{"topic":"old"}],"version":1}')
    words = ("--topics-to-move-json-file", str(topics), "--broker-list", "2", "--generate")
    proposed = kafkapy("reassign", *zookeeper, *words)
    assert proposed.stdout.startswith(DEPRECATED + "Current partition replica assignment\n")
    moves.write_text(proposed.stdout.splitlines()[-1])
    targets = [row["replicas"] for row in json.loads(moves.read_text())["partitions"]]
    assert targets == [[2], [2]]

    file = ("--reassignment-json-file", str(moves))
    begun = kafkapy("reassign", *zookeeper, "--execute", "--throttle", "1000000", *file)
    assert begun.stdout.endswith(
        "The inter-broker throttle limit was set to 1000000 B/s\n"
        "Successfully started partition reassignments for old-0,old-1\n"
    )
    lines = [f"Partition: {p} Leader: 2 Replicas: 2 Isr: 2\n" for p in (0, 1)]
    assert group.described("old", "".join(lines)) == "".join(lines)
    # The controller takes the znode away a moment after the last partition is done.
    verify = (*zookeeper, "--verify", "--strict", *file)
    while "still in progress" in (verified := kafkapy("reassign", *verify)).stdout:
        pass
    assert verified.stdout == (
        DEPRECATED
        + INCOMPLETE
        + "Status of partition reassignment:\n"
        + "Reassignment of partition old-0 is completed.\n"
        + "Reassignment of partition old-1 is completed.\n"
        + "Clearing broker-level throttles on brokers 1,2\n"
        + "Clearing topic-level throttles on topic old\n"
    )
    described = ("configs", "--bootstrap-server", group.bootstrap_servers, "--describe")
    for entity in (("--topic", "old"), ("--broker", "2")):
        assert len(kafkapy(*described, *entity).stdout.splitlines()) == 1


def test_refusals_of_the_znode_forms(group: BrokerGroup, tmp_path: Path) -> None:
    zookeeper = ("--zookeeper", group.zookeeper.connect())
    moves = tmp_path / "moves"
    moves.write_text('{"partitions":[{"topic":"no","partition":3,"replicas":[1]}]}')
    words = ("--execute", "--reassignment-json-file", str(moves))
    refused = kafkapy("reassign", *zookeeper, *words)
    assert refused.stderr == ("The proposed assignment contains non-existent partitions: no-3\n")
    assert refused.status == 1


def test_a_preferred_election_by_the_znode(group: BrokerGroup, tmp_path: Path) -> None:
    create(group, "led", "1:2")
    # Another order of the same replicas copies nothing; the leader stays where it is.
    moves = tmp_path / "moves"
    moves.write_text('{"partitions":[{"topic":"led","partition":0,"replicas":[2,1]}]}')
    words = ("--execute", "--reassignment-json-file", str(moves))
    assert kafkapy("reassign", "--bootstrap-server", group.bootstrap_servers, *words).status == 0
    before = "Partition: 0 Leader: 1 Replicas: 2,1 Isr: 1,2\n"
    assert group.described("led", before) == before
    partitions = tmp_path / "partitions"
    rows = [{"topic": "led", "partition": p} for p in (0, 9)]
    partitions.write_text(json.dumps({"partitions": rows}))
    words = ("--zookeeper", group.zookeeper.connect(), "--path-to-json-file", str(partitions))
    asked = kafkapy("preferred-replica-election", *words)
    assert asked.stdout == (
        "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue:"
        " KAFKA-8405\n"
        "Created preferred replica election path with led-0\n"
        "Successfully started preferred replica election for partitions Set(led-0)\n"
        "Skipping preferred replica leader election for partition led-9 since it doesn't exist.\n"
    )
    led = "Partition: 0 Leader: 2 Replicas: 2,1 Isr: 1,2\n"
    assert group.described("led", led) == led
