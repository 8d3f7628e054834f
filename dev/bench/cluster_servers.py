"""Three brokers on one ZooKeeper, of kafkapy or of Apache Kafka 3.9, for `scripts/bench --cluster`.

All kinds have the same ZooKeeper settings, session timeout and disk, and log at INFO to one file
per broker. Apache Kafka runs with the JVM flags of its `kafka-server-start.sh` and
`kafka-run-class.sh`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path

from kazoo.client import KazooClient

from dev.bench import kafka_meter as meter
from dev.bench.kafka_systems import BROKER_HEAP, jvm_command
from kafkapy.client.cluster import Cluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import ZooKeeperServer

BROKER_IDS = (0, 1, 2)
SESSION_TIMEOUT_MS = 6000
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "zookeeper.connection.timeout.ms": "30000",
    # Only the measured events move leaders.
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
}
# A request may wait while a broker works on 10,000 partitions.
CLIENT = {"request.timeout.ms": "300000", "default.api.timeout.ms": "300000"}
START_LIMIT_S = 120.0


class Kind(Enum):
    """Implementation of the brokers. All but WITHOUT_JAVA use Apache's ZooKeeper."""

    KAFKAPY = "kafkapy"
    APACHE = "Apache Kafka"
    WITHOUT_JAVA = "kafkapy on kafkapy's ZooKeeper"


class Servers:
    """Running brokers by id, a client of each, and a client of their ZooKeeper."""

    def __init__(self, kind: Kind, directory: Path) -> None:
        self.kind = kind
        server = OwnZooKeeper if kind is Kind.WITHOUT_JAVA else ZooKeeperServer
        self.zookeeper = server(directory / "zookeeper")
        self.brokers: dict[int, ServerProcess] = {}
        self.clients: dict[int, Cluster] = {}
        for broker_id in BROKER_IDS:
            port = free_port()
            properties = {
                **SETTINGS,
                "broker.id": str(broker_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": str(directory / f"logs-{broker_id}"),
                "zookeeper.connect": self.zookeeper.connect(),
            }
            file = apache_kafka.write_properties(
                directory / f"broker-{broker_id}.properties", properties
            )
            self.brokers[broker_id] = ServerProcess(
                _command(kind, file), port, directory / f"broker-{broker_id}.out", kind.value
            )
            self.clients[broker_id] = Cluster(f"127.0.0.1:{port}", CLIENT)
        self.znodes = KazooClient(self.zookeeper.connect())

    @property
    def live(self) -> list[int]:
        return [broker_id for broker_id, broker in self.brokers.items() if broker.running]

    def controller_id(self) -> int:
        """Broker id in the znode `/controller`; -1 if the znode does not exist."""
        if self.znodes.exists("/controller") is None:
            return -1
        data, _ = self.znodes.get("/controller")
        return int(re.search(rb'"brokerid":(-?\d+)', data)[1])  # type: ignore[index]

    def is_registered(self, broker_id: int) -> bool:
        return self.znodes.exists(f"/brokers/ids/{broker_id}") is not None

    def resident_bytes(self) -> tuple[float, float]:
        """Mean resident set size and mean proportional set size (PSS) of the live brokers."""
        found = [meter.memory(self.brokers[broker_id].pid) for broker_id in self.live]
        return (
            sum(rss for rss, _ in found) / len(found),
            sum(pss for _, pss in found) / len(found),
        )


@contextmanager
def running(kind: Kind, directory: Path) -> Iterator[Servers]:
    """A fresh cluster whose first broker is the controller; killed at the end."""
    directory.mkdir(parents=True)
    servers = Servers(kind, directory)
    with ExitStack() as undo:
        undo.callback(_end, servers.zookeeper)
        servers.zookeeper.start()
        servers.znodes.start()
        undo.callback(servers.znodes.close)
        undo.callback(servers.znodes.stop)
        for broker_id, broker in servers.brokers.items():
            undo.callback(servers.clients[broker_id].close)
            undo.callback(_end, broker)
            broker.launch()
            broker.wait_until_ready(START_LIMIT_S)
        yield servers


def _end(server: ServerProcess) -> None:
    if server.running:
        server.kill()


def _command(kind: Kind, properties: Path) -> list[str]:
    if kind is not Kind.APACHE:
        return [str(Path(sys.executable).parent / "kafkapy"), "server", "start", str(properties)]
    return jvm_command(apache_kafka.BROKER, str(properties), heap=BROKER_HEAP)
