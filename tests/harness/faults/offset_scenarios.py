"""`kafkapy get-offsets` and its filters on a cluster (get_offset_shell_test)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from confluent_kafka import Producer

from tests.harness.faults.chaos_run import GROUP, TOPIC, Workload, create_topic
from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT, committed
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.scenario import PATIENT, Scenario
from tests.harness.scripted.cli import kafkapy

RECORDS: Final = 100
PARTITIONS: Final = {"offsets-name": 1, "offsets-other": 1, "pairs-one": 2, "pairs-two": 2}
INTERNAL: Final = "__consumer_offsets"
LIMIT_S = 60.0

CASES: Final[tuple[tuple[tuple[str, ...], dict[str, int]], ...]] = (
    (("--topic", "offsets-name"), {"offsets-name:0": 100}),
    (("--topic", "offsets-.*"), {"offsets-name:0": 100, "offsets-other:0": 100}),
    (("--topic", "pairs-one", "--partitions", "0"), {"pairs-one:0": 50}),
    (("--topic", "pairs-one", "--partitions", "1"), {"pairs-one:1": 50}),
    (("--topic", "pairs-one"), {"pairs-one:0": 50, "pairs-one:1": 50}),
    (
        ("--topic-partitions", "pairs-.*:0-2"),
        {"pairs-one:0": 50, "pairs-one:1": 50, "pairs-two:0": 50, "pairs-two:1": 50},
    ),
    (
        ("--topic-partitions", "pairs-one,pairs-two:0"),
        {"pairs-one:0": 50, "pairs-one:1": 50, "pairs-two:0": 50},
    ),
    (("--topic-partitions", "pairs-.*:0"), {"pairs-one:0": 50, "pairs-two:0": 50}),
    (("--topic-partitions", "pairs-.*:1-"), {"pairs-one:1": 50, "pairs-two:1": 50}),
    (("--topic-partitions", "pairs-.*:-1"), {"pairs-one:0": 50, "pairs-two:0": 50}),
)


def get_offsets() -> Scenario:
    """Names, patterns, partitions and rules, with and without internal topics."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUICK_TO_RECONNECT}
        )
        for topic, partitions in PARTITIONS.items():
            create_topic(cluster, topic, partitions, 3, 2)
            for number in range(RECORDS):
                producer.produce(topic, b"%d" % number, partition=number % partitions)
        assert producer.flush(LIMIT_S) == 0
        for words, expected in CASES:
            assert printed_offsets(cluster, *words) == expected, words
        wait_until(
            lambda: ["none"] * (not any(committed(cluster.bootstrap_servers, GROUP, TOPIC, 1))),
            LIMIT_S,
            "no offset committed",
        )
        for words in ((), ("--topic", ".*consumer_offsets")):
            internal = {row for row in printed_offsets(cluster, *words) if row.startswith(INTERNAL)}
            assert internal, words
        left = printed_offsets(cluster, "--exclude-internal-topics")
        assert "offsets-name:0" in left
        assert not any(row.startswith(INTERNAL) for row in left)
        yield f"{len(CASES) + 3} questions to get-offsets"

    return Scenario(faults, overrides=PATIENT)


def printed_offsets(cluster: FaultCluster, *words: str) -> dict[str, int]:
    """Offsets by "topic:partition", as the tool prints them."""
    done = kafkapy("get-offsets", "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert done.status == 0, done.stderr
    rows = (line.rpartition(":") for line in done.stdout.splitlines())
    return {partition: int(offset) for partition, _, offset in rows}
