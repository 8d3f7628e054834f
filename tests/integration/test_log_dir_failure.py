"""A broker that loses one log directory goes on with the others; the lost replicas are led
elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from kafkapy.client.cluster import Cluster
from tests.harness.faults.disk_scenarios import partitions_in
from tests.harness.plugins import unchecked
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.small_disks import can_mount, mount, mounted
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy

TOPIC = "spread"
PARTITIONS = range(4)
SETTINGS = {
    "zookeeper.session.timeout.ms": "5000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "100",
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
}


def state(group: BrokerGroup) -> dict[int, tuple[int, set[int], set[int]]]:
    """(leader, ISR, offline replicas) of each partition, as broker 1 knows it."""
    with Cluster(group.brokers[1].bootstrap_servers) as cluster:
        topic = cluster.metadata([TOPIC], refresh=True).topics.get(TOPIC)
        partitions = topic.partitions.values() if topic is not None else ()
        return {p.partition: (p.leader, set(p.isr), set(p.offline_replicas)) for p in partitions}


class Ledger:
    """An idempotent acks=all producer, and the records acknowledged to it by partition."""

    def __init__(self, servers: str) -> None:
        self.acknowledged: dict[int, list[bytes]] = {p: [] for p in PARTITIONS}
        self.errors: list[object] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "message.timeout.ms": 60_000,
                **QUIET,
            }
        )

    def write(self, what: str) -> None:
        for partition in PARTITIONS:
            for number in range(20):
                self._producer.produce(
                    TOPIC, f"{what} {number}", partition=partition, on_delivery=self._told
                )
        assert self._producer.flush(60) == 0
        assert self.errors == []

    def _told(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged[message.partition()].append(message.value())


def read_all(servers: str) -> dict[int, list[bytes]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True, **QUIET}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, p, 0) for p in PARTITIONS])
    found: dict[int, list[bytes]] = {p: [] for p in PARTITIONS}
    unfinished = set(PARTITIONS)
    deadline = time.monotonic() + LIMIT_S
    while unfinished:
        assert time.monotonic() < deadline, f"no end of partitions {unfinished}"
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                found[message.partition()].append(message.value())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
    consumer.close()
    return found


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small-disk", "8m") as disk:
        yield disk


if can_mount():

    def test_a_full_directory_costs_a_broker_only_the_replicas_in_it(
        tmp_path: Path, small_disk: Path
    ) -> None:
        group = BrokerGroup(tmp_path, (1, 2), SETTINGS)
        ample, lost_dir = tmp_path / "ample", small_disk / "logs"
        given = {k: v for k, v in group.brokers[2].properties.items() if k != "listeners"}
        given["log.dirs"] = f"{ample},{lost_dir}"
        group.brokers[2] = BrokerProcess(tmp_path / "broker-2", given)
        with group:
            where = ("--bootstrap-server", group.bootstrap_servers, "--topic", TOPIC)
            # The directories take turns, so each gets one that broker 2 leads.
            assignment = ("--replica-assignment", "2:1,2:1,1:2,1:2")
            assert kafkapy("topics", "--create", *where, *assignment).status == 0
            wait_until(
                lambda: (
                    len(state(group)) == len(PARTITIONS)
                    and {*partitions_in(lost_dir, TOPIC), *partitions_in(ample, TOPIC)}
                    == set(PARTITIONS)
                ),
                "both brokers have the topic",
            )
            lost, kept = (partitions_in(each, TOPIC) for each in (lost_dir, ample))
            assert lost
            assert kept
            before = state(group)
            led = {p for p in lost if before[p][0] == 2}
            assert led, "broker 2 leads nothing of the small disk: the test proves nothing"
            ledger = Ledger(group.bootstrap_servers)
            ledger.write("before")

            fill(small_disk)
            ledger.write("meanwhile")
            wait_until(
                lambda: all(state(group)[p] == (1, {1}, {2}) for p in lost),
                "the lost replicas are offline and led by 1",
            )
            assert all(state(group)[p] == (before[p][0], {1, 2}, set()) for p in kept)
            ledger.write("after")
            assert read_all(group.bootstrap_servers) == ledger.acknowledged
            said = group.brokers[2].output_text()
            assert f"Stopping serving logs in dir {lost_dir}" in said
            assert "Traceback" not in said

            group.stop(2)
            (small_disk / "filler").unlink()
            assert mount(small_disk, "64m", "remount")
            group.start(2)
            wait_until(
                lambda: all(row[1:] == ({1, 2}, set()) for row in state(group).values()),
                "everything is in sync again",
            )
            assert read_all(group.bootstrap_servers) == ledger.acknowledged

else:
    unchecked.note("a failed log directory in a cluster", "needs root and mount")
