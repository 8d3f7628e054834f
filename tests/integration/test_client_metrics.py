"""Metrics of unmodified clients at the broker's metrics endpoint (KIP-714), and configs of groups.

Without the jars of Apache Kafka 4 only librdkafka is checked, and the end of the run says so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkapy.client.cluster import Cluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
TELEMETRY = {71, 72}


class Metered:
    """A broker with a subscription to all metrics of producers, and the port of its metrics."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.broker = BrokerProcess(directory / "logs", {"kafkapy.metrics.port": str(self.port)})

    def subscribe(self) -> None:
        words = ("--alter", "--name", "all", "--interval", "200")
        metrics = ("--metrics", "org.apache.kafka.producer.")
        servers = ("--bootstrap-server", self.broker.bootstrap_servers)
        done = kafkapy("client-metrics", *servers, *words, *metrics)
        assert done.stdout == "Altered client metrics config for all.\n", done.stderr

    def wait_for(self, client_id: str) -> dict[str, float]:
        """The samples of one client, when there are any."""
        found: dict[str, float] = {}

        def has_pushed() -> bool:
            samples = samples_of(self.port)
            found.update({k: v for k, v in samples.items() if f" client_id={client_id} " in k})
            return any(name.startswith("org_apache_kafka_producer_") for name in found)

        wait_until(has_pushed, f"metrics of {client_id}")
        return found


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metered]:
    made = Metered(tmp_path_factory.mktemp("metered"))
    with made.broker:
        made.subscribe()
        yield made


def test_metrics_of_librdkafka(metered: Metered) -> None:
    servers = metered.broker.bootstrap_servers
    settings = {"bootstrap.servers": servers, "client.id": "rd", "enable.metrics.push": True}
    producer = Producer(settings)
    producer.produce("t", b"x")
    assert producer.flush(30) == 0
    samples = metered.wait_for("rd")
    assert any("client_software_name=confluent-kafka-python" in name for name in samples)
    del producer


if apache_kafka.installed(apache_kafka.KAFKA_4):

    def test_metrics_of_a_java_client(metered: Metered) -> None:
        words = ("--bootstrap-server", metered.broker.bootstrap_servers, "--topic", "t")
        named = ("--command-property", "client.id=java")
        command = apache_kafka.java_command(
            CONSOLE_PRODUCER, *words, *named, release=apache_kafka.KAFKA_4
        )
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdin is not None
            process.stdin.write(b"line\n")
            process.stdin.flush()
            samples = metered.wait_for("java")
            assert any("client_software_name=apache-kafka-java" in name for name in samples)
            process.stdin.close()  # its last push is one that terminates
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


def test_a_broker_without_metrics_asks_for_none(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, Cluster(broker.bootstrap_servers) as client:
        offered = client.channel(client.metadata([]).controller_id).api_versions
        assert 74 in offered
        assert not TELEMETRY & offered.keys()
