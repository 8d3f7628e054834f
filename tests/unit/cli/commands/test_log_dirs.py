"""`kafkapy log-dirs`."""

from __future__ import annotations

import json

import pytest

from kafkapy.cli.commands.log_dirs import report
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.describe_log_dirs import (
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.moving_cluster import MovingCluster
from tests.harness.scripted.scripted_topics import describing_cluster


def log_dirs(*words: str, **more: bool) -> Outcome:
    moving = MovingCluster({"t": [[1, 2]], "u": [[1]]}, brokers=(1, 2))
    return kafkapy("log-dirs", *words, cluster=moving.scripted, **more)


B = ("--bootstrap-server", "b:9001", "--describe")


def test_kafkas_lines() -> None:
    outcome = log_dirs(*B, "--topic-list", "t")
    asking, received, line = outcome.stdout.splitlines()
    assert asking == "Querying brokers for log directories information"
    assert received == "Received log directory information from brokers 1,2"
    assert line.startswith('{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"t-0",')
    document = json.loads(line)
    partition = {"partition": "t-0", "size": 1000, "offsetLag": 0, "isFuture": False}
    held = {"partitions": [partition], "error": None, "logDir": "/d"}
    assert document == {
        "brokers": [{"broker": b, "logDirs": [held]} for b in (1, 2)],
        "version": 1,
    }


def test_a_topic_list_leaves_out_partitions_and_no_directories() -> None:
    brokers = log_dirs(*B, "--topic-list", "u", "--broker-list", "2", "--output", "json").data
    assert brokers == [
        {"broker": 2, "logDirs": [{"partitions": [], "error": None, "logDir": "/d"}]}
    ]


@pytest.mark.parametrize("more", [(), ("--broker-list", ","), ("--topic-list", ",")])
def test_empty_names_do_not_count(more: tuple[str, ...]) -> None:
    assert log_dirs(*B, *more).stdout == log_dirs(*B).stdout
    with_commas = log_dirs(*B, "--broker-list", "2,", "--topic-list", "u,").stdout
    assert with_commas == log_dirs(*B, "--broker-list", "2", "--topic-list", "u").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--describe",), 'Missing required argument "[bootstrap-server]"'),
        (B[:2], 'Missing required argument "[describe]"'),
        ((*B, "--broker-list", "x"), "'x' is not a broker id"),
        ((*B, "--broker-list", "9" * 5000), "'9999"),
        ((*B, "--broker-list", "²"), "'²' is not a broker id"),
        (
            (*B, "--broker-list", "1,9,8"),
            "ERROR: The given brokers do not exist from --broker-list: 8,9. Current existent"
            " brokers: 1,2\n",
        ),
    ],
)
def test_refusals(words: tuple[str, ...], said: str) -> None:
    outcome = log_dirs(*words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_an_offline_directory_has_the_exceptions_name() -> None:
    offline = DescribeLogDirsResult(log_dir="/d", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    cluster = describing_cluster(DESCRIBE_LOG_DIRS=DescribeLogDirsResponse(results=[offline]))
    outcome = kafkapy("log-dirs", *B, "--output", "json", cluster=cluster)
    (log_dir,) = outcome.data[0]["logDirs"]
    assert log_dir["error"] == "org.apache.kafka.common.errors.KafkaStorageException"


def test_a_table_for_people() -> None:
    shown = log_dirs(*B, terminal=True).stdout
    assert "Log directory" in shown
    assert "t-0" in shown
    assert report({}, None).data == []
