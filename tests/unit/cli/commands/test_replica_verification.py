"""`kafkapy replica-verification`: its command line, over scripted replicas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkapy.record.builder import build_batch
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.storage.batches import rows

BROKERS = {1: 9092, 2: 9093}
END = 6
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: "


class Cluster:
    """Topics t-0 and u-0 on the brokers 1 and 2."""

    def __init__(self) -> None:
        log = build_batch(rows(3)) + build_batch(rows(3), base_offset=3)
        self.logs = {(port, topic): log for port in BROKERS.values() for topic in "tu"}
        topics = {topic: {0: (1, [1, 2], [1, 2])} for topic in "tu"}
        self.scripted = ScriptedCluster(
            {
                ApiKey.METADATA: metadata(topics, brokers=BROKERS),
                ApiKey.LIST_OFFSETS: self.offsets,
                ApiKey.FETCH: self.fetch,
            }
        )

    def offsets(self, request: Any, port: int) -> ListOffsetsResponse:
        def one(wanted: Any) -> ListOffsetsPartitionResponse:
            offset = {-1: END, -2: 0}.get(wanted.timestamp, 3 if wanted.timestamp < 1000 else -1)
            return ListOffsetsPartitionResponse(partition_index=0, offset=offset)

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(name=t.name, partitions=[one(p) for p in t.partitions])
                for t in request.topics
            ]
        )

    def fetch(self, request: Any, port: int) -> FetchResponse:
        def one(topic: str, wanted: Any) -> PartitionData:
            data = self.logs[port, topic]
            start = 0 if wanted.fetch_offset < 3 else len(data) // 2
            records = data[start:] if wanted.fetch_offset < END else b""
            return PartitionData(high_watermark=END, records=records)

        return FetchResponse(
            responses=[
                FetchableTopicResponse(topic=t.topic, partitions=[one(t.topic, t.partitions[0])])
                for t in request.topics
            ]
        )

    def rot(self, port: int, topic: str) -> None:
        data = bytearray(self.logs[port, topic])
        data[data.rindex(b"value")] ^= 1
        self.logs[port, topic] = bytes(data)


@pytest.fixture
def quick(tmp_path: Path) -> str:
    path = tmp_path / "quick.properties"
    path.write_text("request.timeout.ms=200\nretry.backoff.ms=10\n")
    return str(path)


def verify(cluster: Cluster, *words: str) -> Outcome:
    servers = ("--broker-list", "b:9092")
    return kafkapy("replica-verification", *servers, *words, cluster=cluster.scripted)


def test_once_and_all_is_the_same() -> None:
    outcome = verify(Cluster(), "--once")
    first, last = outcome.stdout.splitlines()
    assert re.fullmatch(TIME + "verification process is started", first)
    assert last == "2 of 2 partitions are the same in all replicas, 4 batches"
    assert (outcome.stderr, outcome.status) == ("", 0)


def test_once_names_a_rotten_replica_and_the_first_offset() -> None:
    cluster = Cluster()
    cluster.rot(9093, "u")
    outcome = verify(cluster, "--once")
    lines = outcome.stdout.splitlines()
    assert re.fullmatch(
        TIME + r"partition u-0 has unmatched checksum at offset 5; replica 1's checksum \d+;"
        r" replica 2's checksum \d+",
        lines[1],
    )
    assert lines[2:] == [
        "u-0: differs: first differing offset 5, replicas 1,2, corrupt: 2",
        "1 of 2 partitions are the same in all replicas, 4 batches",
    ]
    assert outcome.status == 1
    assert verify(cluster, "--once", "--topics-include", "t").status == 0
    assert verify(cluster, "--once", "--time", "-1").status == 0
    assert verify(cluster, "--once", "--time", "500").status == 1
    assert verify(cluster, "--once", "--time", "5000").status == 0


def test_once_in_json() -> None:
    cluster = Cluster()
    cluster.rot(9092, "t")
    outcome = verify(cluster, "--once", "--output", "json")
    t, u = outcome.data
    assert (t["verdict"], u["verdict"]) == ("differs", "same")
    assert t["differences"][0]["corrupt_replicas"] == [1]
    assert t["differences"][0]["first_differing_offset"] == 5
    assert (u["start_offset"], u["verified_to"], u["batches"]) == (0, 6, 2)


def test_once_gives_up_on_a_replica_that_lags(quick: str) -> None:
    cluster = Cluster()
    cluster.logs[9093, "t"] = build_batch(rows(3))
    outcome = verify(cluster, "--once", "--command-config", quick)
    expected = "t-0: not verified: from offset 3 on: a replica has no whole batch at offset 3"
    assert outcome.stdout.splitlines()[1] == expected
    assert outcome.status == 1


def test_without_once_lags_are_reported_until_offsets_part() -> None:
    cluster = Cluster()

    def fetch(request: Any, port: int) -> FetchResponse:
        """The script's, and beyond its end two logs that went different ways."""
        found = cluster.fetch(request, port)
        (data,) = found.responses[0].partitions
        data.high_watermark = 9
        if request.topics[0].partitions[0].fetch_offset == END:
            data.records = build_batch(rows(2 if port == 9092 else 1), base_offset=END)
        return found

    cluster.scripted.script[ApiKey.FETCH] = fetch
    words = ("--time", "500", "--report-interval-ms", "-1", "--topic-white-list", "t")
    outcome = verify(cluster, *words)
    assert [re.sub(TIME, "", line) for line in outcome.stdout.splitlines()] == [
        "verification process is started",
        "max lag is 3 for partition t-0 at offset 6 among 1 partitions",
        "partition t-0: replica 1's offset 7 doesn't match replica 2's offset 6",
    ]
    assert outcome.status == 1


def test_rounds_without_progress_have_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker answers at once for a topic that was deleted."""
    cluster = Cluster()

    def fetch(request: Any, port: int) -> FetchResponse:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        data = PartitionData(error_code=code, high_watermark=-1, records=b"")
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    def pause(_: object) -> None:
        raise KeyboardInterrupt

    cluster.scripted.script[ApiKey.FETCH] = fetch
    monkeypatch.setattr("kafkapy.client.cluster.Cluster.pause", pause)
    outcome = verify(cluster, "--topics-include", "t")
    assert (outcome.stderr, outcome.status) == ("", 130)


def test_json_of_a_watch_is_an_object_a_line() -> None:
    cluster = Cluster()
    cluster.logs[9093, "t"] = build_batch(rows(4))
    words = ("--time", "-2", "--topics-include", "t", "--output", "json")
    outcome = verify(cluster, *words)
    found = json.loads(outcome.stdout)
    assert found["kafkapy"] == 1
    assert (found["kind"], found["what"]) == ("difference", "offset")
    assert outcome.status == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topics-include", "("], "( is an invalid regex."),
        (["--topics-include", "v.*"], "No topics found. --topics-include, if specified, is either"),
        (["--topics-include", "a", "--topic-white-list", "a"], 'Option "[topics-include]" can\'t'),
        (["--broker-list", "b"], "Found multiple arguments for option broker-list"),
    ],
)
def test_refusals(words: list[str], said: str) -> None:
    outcome = verify(Cluster(), *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fetch-size", "2147483648"], "Cannot parse argument '2147483648' of option fetch-si"),
        (["--max-wait-ms", "2147483648"], "Cannot parse argument '2147483648' of option max-wai"),
        (["--once"], 'Missing required argument "[broker-list]"'),
        (["--broker-list", "b"], "Please provide valid host:port like host1:9091,host2:9092"),
    ],
)
def test_servers(words: list[str], said: str) -> None:
    outcome = kafkapy("replica-verification", *words)
    assert outcome.stderr.startswith(said)
    assert outcome.status == 1


def test_a_partition_whose_offsets_nobody_knows() -> None:
    cluster = Cluster()
    refused = ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    cluster.scripted.script[ApiKey.LIST_OFFSETS] = ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="t", partitions=[refused])]
    )
    outcome = verify(cluster, "--topics-include", "t")
    assert outcome.stderr == "The offsets of t-0 cannot be found: TOPIC_AUTHORIZATION_FAILED\n"
