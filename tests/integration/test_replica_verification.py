"""A replica that rots on a live broker's disk is found and named; the others are cleared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.topics import create_topic
from tests.harness.scripted.cli import Outcome, kafkapy

SETTINGS = {"zookeeper.session.timeout.ms": "6000"}
COUNT = 300


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    with BrokerGroup(tmp_path_factory.mktemp("replicas"), (1, 2), SETTINGS) as made:
        yield made


def verify(group: BrokerGroup, *words: str) -> Outcome:
    servers = ("--broker-list", group.bootstrap_servers)
    return kafkapy("replica-verification", *servers, "--once", "--fetch-size", "4000", *words)


def test_a_flipped_byte_is_found_and_named(group: BrokerGroup) -> None:
    for topic in ("sound", "rotten"):
        create_topic(group.bootstrap_servers, topic, 2, replication_factor=2)
    producer = Producer({"bootstrap.servers": group.bootstrap_servers, "acks": "all"})
    for topic in ("sound", "rotten"):
        for i in range(COUNT):
            producer.produce(topic, f"value {i} ".ljust(100, "x"), partition=i % 2)
            if i % 30 == 0:
                producer.flush(30)
    assert producer.flush(30) == 0

    outcome = verify(group, "--topics-include", "sound|rotten")
    assert outcome.stdout.splitlines()[-1].startswith("4 of 4 partitions are the same in all"), (
        outcome
    )
    assert outcome.status == 0

    path = Path(group.brokers[2].log_dir) / "rotten-1" / "00000000000000000000.log"
    with path.open("r+b") as log:
        data = log.read()
        log.seek(data.index(b"value 151 "))  # the record of offset 75 in partition 1
        log.write(b"V")

    outcome = verify(group, "--topics-include", "sound|rotten", "--output", "json")
    verdicts = {(r["topic"], r["partition"]): r["verdict"] for r in outcome.data}
    assert verdicts == {
        ("rotten", 0): "same",
        ("rotten", 1): "differs",
        ("sound", 0): "same",
        ("sound", 1): "same",
    }
    (rotten,) = [row for row in outcome.data if row["verdict"] == "differs"]
    (difference,) = rotten["differences"]
    assert difference["first_differing_offset"] == 75
    assert difference["corrupt_replicas"] == [2]
    assert rotten["verified_to"] == COUNT // 2
    assert outcome.status == 1
