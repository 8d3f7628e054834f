"""The newest clients on kafkapy, and the same jobs on Apache Kafka 4: `scripts/conformance
--kafka-4`.

The Java client, franz-go and librdkafka, unmodified, with groups of the classic and of the consumer
protocol and with share groups. Each client creates a topic, writes to it, and reads it with a group
in two sessions. The coordinator of the group is killed with SIGKILL between them. kafkapy is three
brokers, of which two run during the second session; Apache Kafka is one node, which restarts. Then
a program of Kafka Streams 4 runs, which checks its own results.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from dev import report
from kafkapy.admin.configs import Resource, ResourceType, incremental_alter_configs
from kafkapy.admin.groups import list_groups
from kafkapy.admin.share_groups import list_share_groups, share_offsets
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import GROUP_KEY_TYPE, find_coordinator
from tests.conformance import streams_apps
from tests.conformance.checks import PARTITIONS, check_sequences, check_timestamps
from tests.conformance.go_peer import GoPeer
from tests.conformance.java_apps import REPLICATED
from tests.conformance.java_peer import JavaPeer
from tests.conformance.peer import SHARE, Peer
from tests.conformance.python_peers import ConfluentPeer, next_offsets
from tests.conformance.workload import digest, rows
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes import apache_kafka

CODEC: Final = "lz4"
SETTINGS: Final = {"log.retention.ms": "-1"}  # the timestamps are old
SHARE_REPLICATED: Final = {
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
PROTOCOLS: Final = ("classic", "consumer", SHARE)
PrintLine = Callable[[str], None]


class Client(Peer, Protocol):
    """A client that also sends admin requests, and whose groups have one protocol."""

    @property
    def protocol(self) -> str: ...

    def create(self, servers: str, topic: str, partitions: int, replicas: int) -> None: ...

    def committed(self, servers: str, topic: str, group: str, partitions: int) -> dict[int, int]:
        """Committed offsets by partition, of groups other than share groups."""
        ...


class Found(NamedTuple):
    """Results of a job, which are the same on both systems."""

    records_digest: str
    committed: Mapping[int, int | None]
    group: str


class OurBrokers:
    """Three kafkapy brokers."""

    name = "kafkapy"
    replicas = 3

    def __init__(self, brokers: FaultCluster) -> None:
        self.servers = brokers.bootstrap_servers
        self._brokers = brokers

    @contextmanager
    def coordinator_killed(self, group: str) -> Iterator[None]:
        """Kill the coordinator. The other brokers serve; it restarts at the end of the context."""
        with Cluster(self.servers) as cluster:
            broker = self._brokers.brokers[find_coordinator(cluster, group, GROUP_KEY_TYPE)]
        broker.kill()
        try:
            yield
        finally:
            self._brokers.start_supervised(broker)


class ApacheNode:
    """One node of Apache Kafka 4."""

    name = "Apache Kafka"
    replicas = 1

    def __init__(self, node: apache_kafka.ApacheBroker) -> None:
        self.servers = node.bootstrap_servers
        self._node = node

    @contextmanager
    def coordinator_killed(self, group: str) -> Iterator[None]:
        """Kill the node, and restart it before the body of the context."""
        self._node.kill()
        self._node.start()
        yield


System = OurBrokers | ApacheNode


def clients() -> list[Client]:
    """All clients, once for each protocol."""
    made: list[Client] = []
    for protocol in PROTOCOLS:
        made += [JavaPeer(protocol), GoPeer("franz-go", protocol), ConfluentPeer(protocol)]
    return made


def job(system: System, client: Client, count: int) -> Found:
    """Run one client, and check for lost, duplicated and reordered records, and the last commits.

    Raises:
        AssertionError: a check failed.
    """
    topic = f"{client.name}-{client.protocol}"
    group, servers = f"{topic}-group", system.servers
    is_share = client.protocol == SHARE
    sent = rows(count)
    client.create(servers, topic, PARTITIONS, system.replicas)
    client.produce(servers, topic, CODEC, sent)
    if is_share:
        _begin_at_the_start(servers, group)
    received = client.consume(servers, topic, group, count // 3)
    with system.coordinator_killed(group):
        received += client.consume(servers, topic, group, count - count // 3)
        # A share group does not keep the order.
        check_sequences(sent, sorted(received) if is_share else received)
        check_timestamps(sent, received)
    # All brokers are back: franz-go's administrator gives up if its first broker is down.
    if is_share:
        committed = _left(servers, group)
        assert committed == dict.fromkeys(range(PARTITIONS), 0), committed
    else:
        committed = client.committed(servers, topic, group, PARTITIONS)
        assert committed == next_offsets(sorted(received)), committed
    kind = _kind_of(servers, group)
    assert kind == f"Empty {client.protocol.capitalize()}", kind
    return Found(digest(sorted(received)), committed, kind)


def _begin_at_the_start(servers: str, group: str) -> None:
    with Cluster(servers) as cluster:
        resource = Resource(ResourceType.GROUP, group)
        incremental_alter_configs(cluster, resource, {"share.auto.offset.reset": "earliest"}, ())


def _left(servers: str, group: str) -> dict[int, int | None]:
    """Records that a share group has not finished, by partition.

    The start offset is less exact: Apache Kafka stores it only with the next acknowledgement.
    """
    with Cluster(servers) as cluster:
        found = share_offsets(cluster, group)
    return {partition.partition: row.lag for partition, row in found.items()}


def _kind_of(servers: str, group: str) -> str:
    """The state and the type of a group."""
    with Cluster(servers) as cluster:
        listed = [*list_groups(cluster), *list_share_groups(cluster)]
    [found] = [each for each in listed if each.group_id == group]
    return f"{found.state} {found.type}"


def run(count: int, print_line: PrintLine) -> tuple[bool, str]:
    """Run all on both systems. Returns whether all passed with the same results, and a part for
    the evidence."""
    found: dict[str, dict[str, Found]] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kafkapy-kafka-4-") as scratch:
        with FaultCluster(
            Path(scratch) / "ours", 3, REPLICATED | SHARE_REPLICATED | SETTINGS
        ) as brokers:
            ours = OurBrokers(brokers)
            found[ours.name] = _run_all(ours, count, failures, print_line)
        release = apache_kafka.KAFKA_4
        logs = Path(scratch) / "apache"
        with apache_kafka.ApacheBroker(logs, SETTINGS, release=release) as node:
            apache = ApacheNode(node)
            found[apache.name] = _run_all(apache, count, failures, print_line)
    streams = _streams(failures, print_line)
    differing = [
        name for name, each in found[apache.name].items() if found[ours.name].get(name) != each
    ]
    failures += [f"{name}: another result than on Apache Kafka" for name in differing]
    return not failures, _report(count, found[ours.name], streams, failures)


def _streams(failures: list[str], print_line: PrintLine) -> str:
    """Run the smoke test of Kafka Streams. Returns its finding, empty if it failed."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-streams-") as scratch:
        try:
            release = apache_kafka.KAFKA_4_STREAMS
            found = streams_apps.smoke(Path(scratch), "exactly_once_v2", release=release)
        except (AssertionError, RuntimeError, OSError, apache_kafka.Unavailable) as fault:
            failures.append(f"Kafka Streams: {type(fault).__name__} {fault}")
            print_line(f"  FAILED {failures[-1]}")
            return ""
    text = f"{found.program} on {found.brokers}, {found.faults}: {found.found}."
    print_line(f"  {text}")
    return text


def _run_all(
    system: System, count: int, failures: list[str], print_line: PrintLine
) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for client in clients():
        what = f"{client.name}, {client.protocol}"
        started = time.monotonic()
        try:
            found[what] = job(system, client, count)
        except Exception as fault:
            failures.append(f"{what} on {system.name}: {type(fault).__name__} {fault}")
            print_line(f"  FAILED {failures[-1]}")
            continue
        print_line(f"  {system.name}: {what}: same digests, {time.monotonic() - started:.0f} s")
    return found


def _report(count: int, found: dict[str, Found], streams: str, failures: Sequence[str]) -> str:
    table = [
        [client.name, client.version(), client.protocol, "same" if what in found else "FAILED"]
        for client in clients()
        for what in [f"{client.name}, {client.protocol}"]
    ]
    text = (
        f"{report.today()}, {report.kafkapy_version()}. Steps of each client:\n\n"
        f"1. Create a topic, and write {count:,} records with keys, headers and timestamps to"
        f" {PARTITIONS} partitions ({CODEC},\n   idempotent).\n"
        "2. Read a third of them in a group. Then the group's coordinator is killed with SIGKILL.\n"
        "3. Read the rest: from the other two of three kafkapy brokers, and from one restarted node"
        f" of Apache\n   Kafka {apache_kafka.KAFKA_4.version}.\n\n"
        "*same*: the digests of each partition's keys, values and headers are those of the records"
        " sent; the\ngroup's commits, state and type are those on Apache Kafka. Members of share"
        " groups accept all\nrecords, after which the group's lag is 0.\n\n"
    )
    text += report.table(["client", "version", "protocol", "result"], table)
    text += f"\n\n{report.wrapped(streams)}" if streams else ""
    return text + "".join(f"\n- FAILED: {line.splitlines()[0]}" for line in failures)
