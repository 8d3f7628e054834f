"""Kafka Connect in distributed mode: a file to a topic to a file, exactly once into the topic,
while workers and brokers are killed."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conformance.java_apps import Finding, JavaApp, properties, replicated_cluster
from tests.harness.faults.chaos_run import create_topic
from tests.harness.faults.exactly_once import read
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.waiting import wait_until

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
TOPIC = "lines"
LINES = 2000
ROUNDS = 3
LIMIT_S = 120.0


class Worker(JavaApp):
    """A worker of the Connect cluster, and its REST interface."""

    def __init__(self, directory: Path, name: str, servers: str, plugins: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        kept = {
            f"{what}_storage_{setting}": value
            for what in ("offset", "config", "status")
            for setting, value in (("topic", f"connect-{what}"), ("replication_factor", "3"))
        }
        settings = properties(
            directory, name, bootstrap_servers=servers, group_id="connect", listeners=self.url,
            key_converter=STRINGS, value_converter=STRINGS, plugin_path=str(plugins),
            exactly_once_source_support="enabled", offset_flush_interval_ms="1000",
            session_timeout_ms="6000", heartbeat_interval_ms="1000",
            scheduled_rebalance_max_delay_ms="2000", **kept,
        )  # fmt: skip
        super().__init__(directory, name, MAIN, settings)

    def ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """The answer of its REST interface, None if it refuses for now or is not there."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except (urllib.error.URLError, TimeoutError):
            return None

    def wait_until_up(self) -> None:
        wait_until(
            lambda: self.ask("GET", "/connectors") is not None, f"{self.name} is up", LIMIT_S
        )

    def connect(self, connector: str, **config: str) -> None:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        path = f"/connectors/{connector}/config"
        wait_until(lambda: self.ask("PUT", path, dotted) is not None, connector, LIMIT_S)


def file_to_file(directory: Path) -> Finding:
    """Lines are appended to a file while, in each round, a worker and a broker are killed."""
    plugins = directory / "plugins"
    (plugins / "file").mkdir(parents=True)
    jar = f"connect-file-{apache_kafka.VERSION}.jar"
    shutil.copy(apache_kafka.jars(apache_kafka.KAFKA_3_APPS) / jar, plugins / "file")
    source, target = directory / "in.txt", directory / "out.txt"
    source.touch()
    with replicated_cluster(directory / "cluster") as cluster:
        servers = cluster.bootstrap_servers
        create_topic(cluster, TOPIC, 1, 3, 2)
        workers = [Worker(directory, name, servers, plugins) for name in ("one", "two")]
        wanted: list[str] = []

        def add_lines() -> None:
            more = [f"line {len(wanted) + number}" for number in range(LINES)]
            wanted.extend(more)
            with source.open("a") as file:
                file.write("".join(f"{line}\n" for line in more))

        try:
            for worker in workers:
                worker.launch()
            for worker in workers:
                worker.wait_until_up()
            workers[0].connect(
                "source", connector_class="FileStreamSource", tasks_max="1", file=str(source),
                topic=TOPIC, exactly_once_support="required", batch_size="100",
            )  # fmt: skip
            workers[0].connect(
                "sink", connector_class="FileStreamSink", tasks_max="1", file=str(target),
                topics=TOPIC, consumer_override_isolation_level="read_committed",
            )  # fmt: skip
            for number in range(ROUNDS):
                worker, broker = workers[number % 2], cluster.brokers[number + 1]
                add_lines()
                wait_until(lambda: len(_lines(target)) > 0, "lines at the sink", LIMIT_S)
                worker.kill()
                broker.kill()
                add_lines()
                cluster.start_supervised(broker)
                worker.launch()
                worker.wait_until_up()
                _wait_for(target, wanted)
            written = read(servers, TOPIC)
            for worker in workers:
                worker.stop()
        finally:
            for worker in workers:
                if worker.running:
                    worker.kill()
    assert written == wanted, f"{len(written)} of {len(wanted)} lines, or not in their order"
    again = len(_lines(target)) - len(wanted)
    return Finding(
        f"Kafka Connect {apache_kafka.VERSION}, distributed, two workers, files as source and sink",
        "3 kafkapy", f"each broker killed in turn, and a worker with it ({ROUNDS} rounds)",
        f"{len(wanted):,} lines, each exactly once and in order in the topic; all at the sink,"
        f" {again:,} of them again",
    )  # fmt: skip


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _wait_for(target: Path, wanted: list[str]) -> None:
    wait_until(
        lambda: set(wanted) <= set(_lines(target)), f"{len(wanted)} lines at the sink", LIMIT_S
    )
