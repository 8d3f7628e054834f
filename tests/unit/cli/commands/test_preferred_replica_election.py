"""`kafkapy preferred-replica-election` over the brokers; by znodes: test_reassign_znodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.zookeeper import election
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_elections import electing_cluster

DEPRECATED = (
    "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405\n"
)
B = ("--bootstrap-server", "b:1")


def test_the_older_sentences() -> None:
    outcome = kafkapy("preferred-replica-election", *B, cluster=electing_cluster())
    assert outcome.stdout == (
        DEPRECATED
        + "Successfully completed preferred leader election for partitions t-0\n"
        + "Preferred replica already elected for partitions t-1\n"
        + "Error completing preferred leader election for partition: t-2:"
        " org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader"
        " was not available.\n"
    )
    assert outcome.stderr == "1 preferred replica(s) could not be elected\n"
    assert outcome.status == 1


@pytest.mark.parametrize("words", [("--output", "text"), (*B, "--zookeeper", "z:1")])
def test_one_of_the_two_servers(words: tuple[str, ...]) -> None:
    outcome = kafkapy("preferred-replica-election", *words)
    said = "Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided\n"
    assert outcome.stderr.startswith(said)
    assert outcome.status == 1


def test_a_malformed_file(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("{}")
    words = (*B, "--path-to-json-file", str(tmp_path / "p"))
    outcome = kafkapy("preferred-replica-election", *words, cluster=electing_cluster())
    assert outcome.stderr == 'Preferred replica election data is missing "partitions" field\n'


def test_a_program_learns_which_elections_were_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = election.RequestedElection([TopicPartition("t", 0)], [TopicPartition("no", 0)])
    monkeypatch.setattr(election, "request_preferred_election", lambda *_: requested)
    words = ("--zookeeper", "z:1", "--output", "json")
    outcome = kafkapy("preferred-replica-election", *words)
    assert json.loads(outcome.stdout)["data"] == [
        {"topic": "t", "partition": 0, "requested": True},
        {"topic": "no", "partition": 0, "requested": False},
    ]
