"""The systems of `scripts/bench --kafka`: kafkapy and Apache Kafka with their default configs.

Other than default are the replication factors (1 in a cluster of one), the ports, and the settings
of a `Guard`. Apache Kafka 3.9 runs in ZooKeeper mode, 4 in KRaft mode with every broker also a
controller, both with the JVM flags of their kafka-run-class.sh.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from kafkapy.client.cluster import Cluster
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.security.certificates import make_identity

START_LIMIT_S = 300.0
KAFKAPY = str(Path(sys.executable).parent / "kafkapy")
PERFORMANCE_FLAGS = (
    *("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
BROKER_HEAP = ("-Xmx1G", "-Xms1G")
TOOL_HEAP = ("-Xmx512M",)
SINGLE_BROKER_SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",  # else a concurrent consumer starts after the load
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # no ACL on the cluster: topics can be created
}
AUTHORIZED_4 = {
    **AUTHORIZED,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
CLUSTER_ID = "kafkapyBenchmarkAAAAAA"
ANONYMOUS_PRINCIPAL = "User:ANONYMOUS"
TOPICS = "bench"
"""The prefix of all topic names."""
USER, PASSWORD, MECHANISM = "bench", "bench-secret", "SCRAM-SHA-512"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
UNREACHED_QUOTAS = "producer_byte_rate=100000000000,consumer_byte_rate=100000000000"


class System(Enum):
    """Implementation of a broker."""

    KAFKAPY = "kafkapy"
    APACHE = "Apache Kafka"
    APACHE_4 = "Apache Kafka 4"


class Guard(NamedTuple):
    """Checks between clients and the log: TLS or SASL, an authorizer with ACLs, a client quota.

    The load does not reach the quota.
    """

    tls: bool = False
    sasl: bool = False
    authorizer: bool = False
    quota: bool = False

    @property
    def protocol(self) -> str:
        """The security protocol of the listener beside the plaintext one; empty without one."""
        return "SSL" if self.tls else "SASL_PLAINTEXT" if self.sasl else ""


OPEN = Guard()


def jvm_command(
    main_class: str,
    *args: str,
    heap: tuple[str, ...] = TOOL_HEAP,
    release: apache_kafka.Release = apache_kafka.KAFKA_3,
) -> list[str]:
    """Command that starts one of Kafka's classes as Kafka's scripts do."""
    level = "INFO" if main_class == apache_kafka.BROKER else "WARN"
    command = apache_kafka.java_command(main_class, *args, level=level, release=release)
    return with_kafkas_flags(command, heap)


def with_kafkas_flags(command: Sequence[str], heap: tuple[str, ...]) -> list[str]:
    """A Java command with the JVM flags of Kafka's scripts instead of its own."""
    java, *words = command
    kept = [word for word in words if not word.startswith("-X")]
    return [java, *heap, *PERFORMANCE_FLAGS, *kept]


class Servers:
    """Brokers of one system, with their data and their output in `directory`.

    `client_servers` and `client_properties` configure Kafka's own clients.
    """

    def __init__(
        self,
        system: System,
        directory: Path,
        count: int,
        settings: Mapping[str, str],
        guard: Guard = OPEN,
    ) -> None:
        self.system = system
        self.directory = directory
        self._guard = guard
        self._is_kraft = system is System.APACHE_4
        self._controller_ports = [free_port() for _ in range(count if self._is_kraft else 0)]
        self._guarded_ports: list[int] = []
        self.client_properties: dict[str, str] = {}
        if guard.tls:
            identity = make_identity(directory, "broker")
            trust = {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(identity.with_suffix(".crt")),
            }
            keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity)}
            settings = {**settings, **trust, **keys}
            self.client_properties = {"security.protocol": "SSL", **trust}
        if guard.sasl:
            login = f"listener.name.sasl_plaintext.{MECHANISM.lower()}.sasl.jaas.config"
            settings = {
                **settings,
                "sasl.enabled.mechanisms": MECHANISM,
                login: f"{SCRAM_LOGIN};",
            }
            self.client_properties = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": f"{SCRAM_LOGIN} username={USER} password={PASSWORD};",
            }
        if guard.authorizer:
            settings = {**settings, **(AUTHORIZED_4 if self._is_kraft else AUTHORIZED)}
        # A single kafkapy broker keeps its metadata without ZooKeeper by default.
        needs_zookeeper = not self._is_kraft and (system is System.APACHE or count > 1)
        self.zookeeper = ZooKeeperServer(directory / "zookeeper") if needs_zookeeper else None
        if count == 1:
            settings = {**SINGLE_BROKER_SETTINGS, **settings}
        self.brokers = [self._broker(index, settings) for index in range(count)]

    def _command(self, file: Path) -> list[str]:
        """The command that starts the broker of a property file."""
        if self.system is System.KAFKAPY:
            return [KAFKAPY, "server", "start", str(file)]
        release = apache_kafka.KAFKA_4 if self._is_kraft else apache_kafka.KAFKA_3
        if self._is_kraft:
            words = ("format", "-t", CLUSTER_ID, "-c", str(file))
            done = apache_kafka.run_tool(apache_kafka.STORAGE_TOOL, *words, release=release)
            assert done.returncode == 0, done.stderr.decode()
        return jvm_command(apache_kafka.BROKER, str(file), heap=BROKER_HEAP, release=release)

    def _broker(self, broker_id: int, settings: Mapping[str, str]) -> ServerProcess:
        port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        if self._guard.protocol:
            self._guarded_ports.append(free_port())
            listeners += f",{self._guard.protocol}://localhost:{self._guarded_ports[-1]}"
        properties = {
            "broker.id": str(broker_id),
            "listeners": listeners,
            "log.dirs": str(self.directory / f"logs-{broker_id}"),
            **settings,
        }
        if self.zookeeper is not None:
            properties["zookeeper.connect"] = self.zookeeper.connect()
        if self._is_kraft:
            properties |= self._quorum(broker_id, listeners)
        file = self.directory / f"broker-{broker_id}.properties"
        apache_kafka.write_properties(file, properties)
        command = self._command(file)
        output = self.directory / f"broker-{broker_id}.out"
        return ServerProcess(command, port, output, self.system.value)

    def _quorum(self, broker_id: int, listeners: str) -> dict[str, str]:
        """KRaft configs of a broker that is also a controller."""
        ports = self._controller_ports
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(ports))
        return {
            "process.roles": "broker,controller",
            "node.id": str(broker_id),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports[broker_id]}",
        }

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def client_servers(self) -> str:
        """Bootstrap servers of the guarded listener; of the plaintext one without a guard."""
        if self._guard.protocol:
            return ",".join(f"localhost:{port}" for port in self._guarded_ports)
        return self.bootstrap_servers

    @property
    def pids(self) -> list[int]:
        """Pids of the brokers; ZooKeeper is not measured."""
        return [broker.pid for broker in self.brokers if broker.running]

    def start(self) -> None:
        """Start ZooKeeper and the brokers; return when each has all of them in its metadata."""
        if self.zookeeper is not None:
            self.zookeeper.start()
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_until_ready(START_LIMIT_S)
        self.wait_until_known()
        if self._guard.authorizer:
            allowed = ("--add", "--allow-principal", ANONYMOUS_PRINCIPAL, "--operation", "All")
            topics = ("--topic", TOPICS, "--resource-pattern-type", "prefixed")
            self._administer("acls", *allowed, *topics)
            self._administer("acls", *allowed, "--group", "*")
        if self._guard.sasl:
            user = ("--entity-type", "users", "--entity-name", USER)
            secret = f"{MECHANISM}=[password={PASSWORD}]"
            self._administer("configs", *user, "--alter", "--add-config", secret)
        if self._guard.quota:
            of_all = ("--entity-type", "clients", "--entity-default")
            self._administer("configs", *of_all, "--alter", "--add-config", UNREACHED_QUOTAS)

    def _administer(self, tool: str, *words: str) -> None:
        command = [KAFKAPY, tool, "--bootstrap-server", self.bootstrap_servers, *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def wait_until_known(self) -> None:
        """Return when the metadata of every broker has all brokers and a controller.

        librdkafka retries only after minutes if the metadata has no controller.
        """
        for broker in self.brokers:
            with Cluster(broker.bootstrap_servers) as cluster:
                for _ in cluster.attempts():
                    seen = cluster.metadata([], refresh=True)
                    if len(seen.brokers) == len(self.brokers) and seen.controller_id >= 0:
                        break

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with replicas on all brokers. The first leads: raw clients use it only."""
        brokers = list(range(len(self.brokers)))
        wanted = NewTopic(
            name, partitions, replica_assignment=[brokers] * partitions, config=dict(config or {})
        )
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        limits = {"operation_timeout": START_LIMIT_S, "request_timeout": START_LIMIT_S}
        client.create_topics([wanted], **limits)[name].result(timeout=START_LIMIT_S)

    def delete_topics(self, names: list[str]) -> None:
        """Delete topics and wait for the deletion; the files are deleted a minute later."""
        if not names:
            return
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        limits = {"operation_timeout": START_LIMIT_S, "request_timeout": START_LIMIT_S}
        for deleted in client.delete_topics(names, **limits).values():
            deleted.result(timeout=START_LIMIT_S)

    def create_partitions(
        self, prefix: str, count: int, made: int = 0, topic_partitions: int = 1000
    ) -> None:
        """Create partitions up to `count`, of which `made` exist.

        A topic's name has the number of its first partition.
        """
        for first in range(made, count, topic_partitions):
            self.create_topic(f"{prefix}-{first}", min(topic_partitions, count - first))

    def kill(self) -> None:
        """Kill the broker (kill -9), and wait until ZooKeeper has ended its session: before, the
        broker could not start again."""
        [broker] = self.brokers
        broker.kill()
        if self.zookeeper is not None:
            znodes = KazooClient(self.zookeeper.connect())
            znodes.start()
            wait_until(lambda: znodes.exists("/brokers/ids/0") is None, "its session ends")
            znodes.stop()
            znodes.close()

    def end(self) -> None:
        """Kill the running servers; their data is not needed any more."""
        everything = [*self.brokers, *([self.zookeeper] if self.zookeeper else [])]
        for server in everything:
            if server.running:
                server.kill()


@contextmanager
def prepared(
    system: System,
    directory: Path,
    count: int = 1,
    settings: Mapping[str, str] | None = None,
    guard: Guard = OPEN,
) -> Iterator[Servers]:
    """Servers that are not started yet; killed at the end."""
    directory.mkdir(parents=True)
    servers = Servers(system, directory, count, settings or {}, guard)
    with ExitStack() as undo:
        undo.callback(servers.end)
        yield servers


@contextmanager
def running(
    system: System,
    directory: Path,
    count: int = 1,
    settings: Mapping[str, str] | None = None,
    guard: Guard = OPEN,
) -> Iterator[Servers]:
    """Servers that serve; killed at the end."""
    with prepared(system, directory, count, settings, guard) as servers:
        servers.start()
        yield servers
