"""The two brokers that are compared, each alone on this machine, and their logs on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from dev.differential.batches import observed
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import Wire

_GROUP_KEY_TYPE: Final = 0
_TRANSACTION_KEY_TYPE: Final = 1

# No background task changes a log: only operations do.
_SETTINGS: Final = {
    "log.cleaner.enable": "false",
    "log.retention.check.interval.ms": "3600000",
    "transactional.id.expiration.ms": "3600000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "auto.create.topics.enable": "false",
    "zookeeper.session.timeout.ms": "6000",
}


class System:
    """One broker."""

    def __init__(
        self, broker: ServerProcess, log_dir: Path, zookeeper: ServerProcess | None = None
    ) -> None:
        self._broker = broker
        self._log_dir = log_dir
        self._zookeeper = zookeeper
        self.wire = self._connect()

    def _connect(self) -> Wire:
        wire = Wire(self._broker)
        request = MetadataRequest(topics=[])
        wait_until(lambda: wire.ask(request, 8).controller_id >= 0, "a controller")
        for kind in (_TRANSACTION_KEY_TYPE, _GROUP_KEY_TYPE):
            # Creates the coordinator's topic.
            coordinator = FindCoordinatorRequest(key="any", key_type=kind)
            wait_until(partial(self._has_coordinator, wire, coordinator), "a coordinator")
        wait_until(partial(self._has_groups, wire), "the groups")
        return wire

    @staticmethod
    def _has_coordinator(wire: Wire, coordinator: FindCoordinatorRequest) -> bool:
        return bool(wire.ask(coordinator, 3).error_code == 0)

    @staticmethod
    def _has_groups(wire: Wire) -> bool:
        """Whether the coordinator has loaded its log, which has one partition."""
        [group] = wire.ask(DescribeGroupsRequest(groups=["any"]), 5).groups
        return bool(group.error_code == 0)

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        """Create a topic, and wait until each partition has a leader."""
        self.wire.create(topic, partitions, **{k.replace(".", "_"): v for k, v in configs.items()})
        self.expect_leaders(topic, partitions)

    def expect_leaders(self, topic: str, partitions: int) -> None:
        """Wait until the broker leads all partitions of a topic."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])

        def led() -> bool:
            [found] = self.wire.ask(request, 9).topics
            leaders: int = sum(each.leader_id >= 0 for each in found.partitions)
            return leaders == partitions

        wait_until(led, f"leaders of {topic}")

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
        self.wire.ask(request, 6)

    def restart(self, is_clean: bool) -> None:
        """Stop or kill the broker, and start it again."""
        self.stop(is_clean)
        self.start()

    def stop(self, is_clean: bool) -> None:
        """Stop or kill the broker."""
        self.wire.close()
        if is_clean:
            self._broker.stop()
        else:
            self._broker.kill()

    def start(self) -> None:
        """Start the broker again."""
        self._expect_no_registration()
        self._broker.start()
        self.wire = self._connect()

    def _expect_no_registration(self) -> None:
        """Wait for the end of the session: Apache Kafka cannot start before."""
        if self._zookeeper is None:
            return
        client = KazooClient(self._zookeeper.bootstrap_servers)
        client.start()
        try:
            wait_until(lambda: client.exists("/brokers/ids/0") is None, "the end of the session")
        finally:
            client.stop()
            client.close()

    def on_disk(
        self, topic: str, partition: int, label: Callable[[int], str]
    ) -> list[tuple[str, tuple[Any, ...]]]:
        """The names of a log's segments, and their batches."""
        directory = self._log_dir / f"{topic}-{partition}"
        files = sorted(directory.glob("*.log"))
        return [(path.name, observed(path.read_bytes(), label)) for path in files]


@contextmanager
def both(directory: Path, more: Mapping[str, str]) -> Iterator[tuple[System, System]]:
    """kafkapy and Apache Kafka, running, with `more` settings. Raises Unavailable."""
    apache_kafka.jars()
    zookeeper = apache_kafka.ZooKeeperProcess(directory / "zookeeper").start()
    apache_logs, own_logs = directory / "apache", directory / "kafkapy"
    settings = {**_SETTINGS, **more}
    brokers: list[ServerProcess] = [
        apache_kafka.ApacheBroker(apache_logs, settings, zookeeper),
        BrokerProcess(own_logs, settings),
    ]
    try:
        for broker in brokers:
            broker.start()
        yield System(brokers[1], own_logs), System(brokers[0], apache_logs, zookeeper)
    finally:
        for broker in (*brokers, zookeeper):
            if broker.running:
                broker.kill()
