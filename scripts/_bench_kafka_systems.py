"""The systems under test of `scripts/bench --kafka`: kafkapy and Apache Kafka 3.9, as they come.

Both with their default broker configs but for what a cluster of one needs (replication factors of
1) and a port. Apache Kafka in ZooKeeper mode with the JVM flags of its kafka-run-class.sh.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from kafkapy.client.cluster import Cluster
from scripts import _kafka
from tests.support.broker_process import ServerProcess, free_port
from tests.support.waiting import wait_until
from tests.support.zookeeper_server import ZooKeeperServer

START_LIMIT_S = 300.0
PERFORMANCE_FLAGS = (
    *("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
BROKER_HEAP = ("-Xmx1G", "-Xms1G")
TOOL_HEAP = ("-Xmx512M",)
OF_ONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",  # or who consumes meanwhile begins after the load
}


class System(Enum):
    """Whose broker."""

    KAFKAPY = "kafkapy"
    APACHE = "Apache Kafka"


def jvm_command(main_class: str, *args: str, heap: tuple[str, ...] = TOOL_HEAP) -> list[str]:
    """One of Kafka's classes as its own scripts start it."""
    level = "INFO" if main_class == _kafka.BROKER else "WARN"
    java, *words = _kafka.java_command(main_class, *args, level=level)
    kept = [word for word in words if not word.startswith("-X")]
    return [java, *heap, *PERFORMANCE_FLAGS, *kept]


class Servers:
    """Brokers of one system on `directory`; `system`, `brokers` and where they log."""

    def __init__(
        self, system: System, directory: Path, count: int, settings: Mapping[str, str]
    ) -> None:
        self.system = system
        self.directory = directory
        # kafkapy on its own keeps the metadata itself: that is its default.
        needs_zookeeper = system is System.APACHE or count > 1
        self.zookeeper = ZooKeeperServer(directory / "zookeeper") if needs_zookeeper else None
        self.brokers = [self._broker(index, settings if count > 1 else {**OF_ONE, **settings})
                        for index in range(count)]  # fmt: skip

    def _broker(self, broker_id: int, settings: Mapping[str, str]) -> ServerProcess:
        port = free_port()
        properties = {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.directory / f"logs-{broker_id}"),
            **settings,
        }
        if self.zookeeper is not None:
            properties["zookeeper.connect"] = self.zookeeper.connect()
        file = self.directory / f"broker-{broker_id}.properties"
        _kafka.write_properties(file, properties)
        if self.system is System.KAFKAPY:
            executable = str(Path(sys.executable).parent / "kafkapy")
            command = [executable, "server", "start", str(file)]
        else:
            command = jvm_command(_kafka.BROKER, str(file), heap=BROKER_HEAP)
        output = self.directory / f"broker-{broker_id}.out"
        return ServerProcess(command, port, output, self.system.value)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def pids(self) -> list[int]:
        """Of the brokers: ZooKeeper is not measured."""
        return [broker.pid for broker in self.brokers if broker.running]

    def start(self) -> None:
        """Start ZooKeeper and the brokers; return when all know each other."""
        if self.zookeeper is not None:
            self.zookeeper.start()
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_until_ready(START_LIMIT_S)
        self.wait_until_known()

    def wait_until_known(self) -> None:
        """Return when every broker knows all, and a controller: librdkafka, which would have to
        wait for one, looks again only after minutes."""
        for broker in self.brokers:
            with Cluster(broker.bootstrap_servers) as cluster:
                for _ in cluster.attempts():
                    seen = cluster.metadata([], refresh=True)
                    if len(seen.brokers) == len(self.brokers) and seen.controller_id >= 0:
                        break

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """With a replica on every broker; the first one leads: raw clients know no other."""
        brokers = list(range(len(self.brokers)))
        wanted = NewTopic(
            name, partitions, replica_assignment=[brokers] * partitions, config=dict(config or {})
        )
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        limits = {"operation_timeout": START_LIMIT_S, "request_timeout": START_LIMIT_S}
        client.create_topics([wanted], **limits)[name].result(timeout=START_LIMIT_S)

    def create_partitions(
        self, prefix: str, count: int, made: int = 0, topic_partitions: int = 1000
    ) -> None:
        """`count` of them, of which `made` are there, in topics named by their first one."""
        for first in range(made, count, topic_partitions):
            self.create_topic(f"{prefix}-{first}", min(topic_partitions, count - first))

    def kill(self) -> None:
        """kill -9 of the broker; return when ZooKeeper has ended its session, or it could not
        start."""
        [broker] = self.brokers
        broker.kill()
        if self.zookeeper is not None:
            znodes = KazooClient(self.zookeeper.connect())
            znodes.start()
            wait_until(lambda: znodes.exists("/brokers/ids/0") is None, "its session ends")
            znodes.stop()
            znodes.close()

    def end(self) -> None:
        """Kill what runs: the figures are taken, the data is thrown away."""
        everything = [*self.brokers, *([self.zookeeper] if self.zookeeper else [])]
        for server in everything:
            if server.running:
                server.kill()


@contextmanager
def prepared(
    system: System, directory: Path, count: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[Servers]:
    """Servers that are not started yet; killed at the end."""
    directory.mkdir(parents=True)
    servers = Servers(system, directory, count, settings or {})
    with ExitStack() as undo:
        undo.callback(servers.end)
        yield servers


@contextmanager
def running(
    system: System, directory: Path, count: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[Servers]:
    """Servers that serve; killed at the end."""
    with prepared(system, directory, count, settings) as servers:
        servers.start()
        yield servers
