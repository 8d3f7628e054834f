"""`kafkapy leader-election`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_elections import electing_cluster

B = ("--bootstrap-server", "b:1")
TYPE = ("--election-type", "preferred")


def elect(*words: str, partitions: int = 3) -> Outcome:
    return kafkapy("leader-election", *words, cluster=electing_cluster(partitions))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (TYPE, "Missing required option(s): bootstrap-server\n"),
        (("--topic", "t"), "Missing required option(s): bootstrap-server, election-type\n"),
        (
            (*B, *TYPE),
            "One and only one of the following options is required: topic, all-topic-partitions,"
            " path-to-json-file\n",
        ),
        ((*B, *TYPE, "--topic", "t", "--all-topic-partitions"), "One and only one of the follow"),
        ((*B, *TYPE, "--topic", "t"), "Missing required option(s): partition\n"),
        (
            (*B, *TYPE, "--all-topic-partitions", "--partition", "1"),
            "Option partition is only allowed if topic is used\n",
        ),
        (
            (*B, "--election-type", "fair", "--all-topic-partitions"),
            "Cannot parse argument 'fair' of option election-type\n",
        ),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str) -> None:
    outcome = elect(*words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_the_three_kinds_of_result() -> None:
    outcome = elect(*B, *TYPE, "--all-topic-partitions")
    assert outcome.stdout == (
        "Successfully completed leader election (PREFERRED) for partitions t-0\n"
        "Valid replica already elected for partitions t-1\n"
        "Error completing leader election (PREFERRED) for partition: t-2:"
        " org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader"
        " was not available.\n"
    )
    assert (outcome.stderr, outcome.status) == ("1 replica(s) could not be elected\n", 1)
    assert elect(*B, *TYPE, "--all-topic-partitions", partitions=2).status == 0


def test_a_balanced_cluster_says_nothing() -> None:
    outcome = elect(*B, *TYPE, "--all-topic-partitions", partitions=0)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)


def test_the_partitions_asked_for(tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"partitions":[{"topic":"t","partition":1}]}')
    (tmp_path / "twice").write_text(
        '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":1}]}'
    )
    for words, kind, asked in (
        (("--election-type", "UNCLEAN", "--topic", "t", "--partition", "0"), 1, [("t", [0])]),
        ((*TYPE, "--path-to-json-file", str(tmp_path / "p")), 0, [("t", [1])]),
        ((*TYPE, "--all-topic-partitions"), 0, None),
    ):
        cluster = electing_cluster(0)
        assert kafkapy("leader-election", *B, *words, cluster=cluster).status == 0
        (request,) = cluster.requests_of(ApiKey.ELECT_LEADERS)
        named = request.topic_partitions
        assert request.election_type == kind
        assert request.timeout_ms == 15_000
        assert asked == (None if named is None else [(t.topic, t.partitions) for t in named])
    refused = elect(*B, *TYPE, "--path-to-json-file", str(tmp_path / "twice"))
    assert refused.stderr == "Replica election data contains duplicate partitions: [t-1]\n"


def test_the_property_file_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "admin").write_text("request.timeout.ms=777\n")
    cluster = electing_cluster()
    words = (*B, *TYPE, "--all-topic-partitions", "--admin.config", str(tmp_path / "admin"))
    kafkapy("leader-election", *words, cluster=cluster)
    assert cluster.requests_of(ApiKey.ELECT_LEADERS)[0].timeout_ms == 777


def test_a_dry_run_elects_nobody() -> None:
    cluster = electing_cluster()
    words = (*B, *TYPE, "--all-topic-partitions", "--dry-run")
    outcome = kafkapy("leader-election", *words, cluster=cluster)
    assert outcome.stdout == (
        "Would send ElectLeaders v2 to broker 1:"
        ' {"election_type":0,"topic_partitions":null,"timeout_ms":15000}\n'
    )
    assert cluster.requests_of(ApiKey.ELECT_LEADERS) == []


def test_json() -> None:
    rows = elect(*B, *TYPE, "--all-topic-partitions", "--output", "json", partitions=2).data
    assert [(row["partition"], row["elected"], row["error"]) for row in rows] == [
        (0, True, None),
        (1, False, "ELECTION_NOT_NEEDED"),
    ]
