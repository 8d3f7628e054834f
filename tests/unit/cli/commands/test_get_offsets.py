"""`kafkapy get-offsets`: filters, errors by partition, text."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

TOPICS = {
    "foo": {index: (1, [1], [1]) for index in (0, 2, 10)},
    "__consumer_offsets": {0: (1, [1], [1])},
}


def offsets(request: Any, port: int) -> ListOffsetsResponse:
    def one(partition: Any) -> ListOffsetsPartitionResponse:
        index = partition.partition_index
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if index == 2 else ErrorCode.NONE
        offset = -1 if partition.timestamp == 99 else 100 + index
        return ListOffsetsPartitionResponse(partition_index=index, error_code=code, offset=offset)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=t.name, partitions=[one(p) for p in t.partitions])
            for t in request.topics
        ]
    )


def get_offsets(*words: str, servers: tuple[str, ...] = ("--bootstrap-server", "b:1")) -> Outcome:
    script = {ApiKey.METADATA: metadata(TOPICS), ApiKey.LIST_OFFSETS: offsets}
    return kafkapy("get-offsets", *servers, *words, cluster=ScriptedCluster(script))


def test_lines_are_in_the_order_of_the_text_and_failures_are_told() -> None:
    outcome = get_offsets()
    assert outcome.stdout == "__consumer_offsets:0:100\nfoo:0:100\nfoo:10:110\n"
    assert outcome.stderr == (
        "Skip getting offsets for topic-partition foo-2 due to error: TOPIC_AUTHORIZATION_FAILED\n"
    )
    assert outcome.status == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "foo", "--partitions", "0"], "foo:0:100\n"),
        (["--topic-partitions", "foo:10-,__.*:0"], "__consumer_offsets:0:100\nfoo:10:110\n"),
        (["--exclude-internal-topics", "--partitions", "0,10"], "foo:0:100\nfoo:10:110\n"),
        (["--topic", "foo", "--partitions", "0", "--time", "99"], ""),
    ],
)
def test_filters(words: list[str], expected: str) -> None:
    assert get_offsets(*words).stdout == expected


def test_json() -> None:
    (row,) = get_offsets("--topic", "foo", "--partitions", "0", "--output", "json").data
    assert row == {
        "topic": "foo",
        "partition": 0,
        "offset": 100,
        "timestamp": None,
        "leader_epoch": None,
    }


def test_broker_list_is_still_understood() -> None:
    assert get_offsets("--topic", "foo", servers=("--broker-list", "b:1")).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "nope"], "Error occurred: Could not match any topic-partitions with"),
        (["--time", "soon"], "Error occurred: Malformed time argument soon. Please use -1"),
        (["--partitions", "x"], "Error occurred: --partitions expects a comma separated list"),
        (
            ["--topic", "a", "--topic-partitions", "b"],
            "Error occurred: --topic-partitions cannot be used with --topic or --partitions",
        ),
    ],
)
def test_refusals(words: list[str], said: str) -> None:
    outcome = get_offsets(*words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


@pytest.mark.parametrize("server", ["b", "b:", "b:1,c"])
def test_servers_are_checked_first(server: str) -> None:
    outcome = get_offsets(servers=("--bootstrap-server", server))
    assert outcome.stderr.startswith("Please provide valid host:port like host1:9091,host2:9092\n")
