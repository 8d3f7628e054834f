"""Client quotas on real brokers: the same answers and znodes as Apache Kafka 3.9, the same pauses
for the same use; real clients that are told of them; and brokers that hear of them by ZooKeeper.

What a user would lose: one client takes all that a broker has, or is slowed down that should not
be. Pauses are looked at as brokers tell them, never by the clock.
"""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent

from kafkapy.admin.configs import Resource, describe_configs, incremental_alter_configs
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from tests.harness.cores.ensembles import run
from tests.harness.plugins import unchecked
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import (
    API_VERSIONS_V0,
    BrokerProcess,
    ServerProcess,
    free_port,
)
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.protocol import quota_requests
from tests.harness.protocol.quota_requests import (
    created,
    deleted,
    fetched,
    grown,
    produced,
    set_quota,
)
from tests.harness.scripted.cli import kafkapy
from tests.harness.security import guarded_broker

ME = (("user", "ANONYMOUS"),)
RAW = (("client-id", quota_requests.RAW),)
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("quotas") / "logs")
    with process:
        yield process
    assert "Traceback" not in process.output_text()


@pytest.fixture
def cluster(broker: BrokerProcess) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as cluster:
        yield cluster
        for entity, keys in (
            (ME, ("producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate")),
            (RAW, ("producer_byte_rate",)),
        ):
            set_quota(cluster, entity, **dict.fromkeys(keys))


# beside Apache Kafka


async def configs(connect: str) -> dict[str, Any]:
    """Every znode below /config, those of changes too."""
    zk = KazooZooKeeper(ZooKeeperClientConfig.from_properties({"zookeeper.connect": connect}))
    await zk.connect()
    found: dict[str, Any] = {}
    left = ["/config"]
    while left:
        path = left.pop()
        data = (await zk.get(path)).data
        found[path] = orjson.loads(data) if data else None
        left += [f"{path}/{name}" for name in await zk.children(path)]
    await zk.close()
    return found


class Changes:
    """Changes of quotas, each in force when it returns: a broker follows what is changed in order,
    and tells which of its own configs it has followed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._followed = 2_000_000

    def set(self, entity: quota_requests.Entity, **quotas: float | None) -> None:
        set_quota(self._cluster, entity, **quotas)
        self._followed += 1
        mark = {"message.max.bytes": str(self._followed)}
        incremental_alter_configs(self._cluster, Resource(ResourceType.BROKER, ""), mark, [])
        wait_until(self._has_followed, f"the broker follows {quotas} of {entity}")

    def _has_followed(self) -> bool:
        [entries] = describe_configs(self._cluster, [Resource(ResourceType.BROKER, "0")]).values()
        values = {entry.name: entry.value for entry in entries}
        return values["message.max.bytes"] == str(self._followed)


def used_up(servers: str) -> dict[str, Any]:
    """Answers of a broker to clients that exceed a quota, for each kind of quota."""
    found: dict[str, Any] = {}
    # There may be no controller yet.
    wait_until(lambda: created(servers, "t", 1, 7)[0] == 0, "a topic is made")
    with Cluster(servers) as cluster:
        changes = Changes(cluster)
        # Each has a usage of its own: the client id's, the user's, the user's with that client id.
        for entity in (RAW, ME, (*ME, *RAW)):
            changes.set(entity, producer_byte_rate=10)
            found[f"produce {entity}"] = produced(servers, "t", 5000).throttle_time_ms
        for entity in (RAW, ME, (*ME, *RAW)):
            changes.set(entity, producer_byte_rate=None)
        for rate in (0, -1, math.nan):
            if not rate < 0:
                changes.set(RAW, producer_byte_rate=rate)
            changes.set(RAW, request_percentage=rate)
            # Kafka's endless pauses overflow to -1, which clients take for none.
            found[f"produce {rate}"] = max(0, produced(servers, "t", 5000).throttle_time_ms)
            found[f"fetch {rate}"] = fetched(servers, "t").throttle_time_ms
        changes.set(RAW, producer_byte_rate=None, request_percentage=None)
        changes.set(ME, consumer_byte_rate=600)
        fetched(servers, "t")  # ours gives a batch to a client that was given none
        for epoch in (-1, 0):
            told = fetched(servers, "t", epoch)
            found[f"fetch {epoch}"] = (told.throttle_time_ms > 0, told.session_id, told.responses)
        changes.set(ME, consumer_byte_rate=None, controller_mutation_rate=1)
        found["a burst"] = created(servers, "burst", 20, 7)
        for name, (error, message, pause_ms) in {
            "refused": created(servers, "refused", 1, 6),
            "growth": grown(servers, "t", 2, 3),
            "deletion": deleted(servers, "t", 5),
            "let through": created(servers, "old", 1, 5),
            "old growth": grown(servers, "old", 2, 2),
            "old deletion": deleted(servers, "burst", 4),
        }.items():
            found[name] = (error, message, 0 < pause_ms < 60_000)
        changes.set(ME, controller_mutation_rate=None)
        found["free again"] = created(servers, "free", 20, 7)
        found["connections"] = connections(changes, servers)
    return found


def connections(changes: Changes, servers: str) -> list[bool]:
    """Of a dozen connections to where one a second is allowed: which are answered."""
    address = (("ip", "127.0.0.1"),)
    changes.set(address, connection_creation_rate=1)
    request = encode_request(ApiVersionsRequest(), 0, 1, None)
    answered = []
    for _ in range(12):
        with RawConnection(servers) as connection:
            connection.send(request)
            answered.append(connection.read_frame() is not None)
    changes.set(address, connection_creation_rate=None)
    with RawConnection(servers) as connection:
        connection.send(request)
        assert connection.read_frame() is not None
    return answered


def test_answers_znodes_and_pauses_are_those_of_apache_kafka(tmp_path: Path) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"not compared with Apache Kafka: {reason}")
        return
    said: dict[str, dict[str, Any]] = {}
    stored: dict[str, dict[str, Any]] = {}
    paused: dict[str, dict[str, Any]] = {}
    with apache_kafka.ZooKeeperProcess(tmp_path / "zookeeper") as zookeeper:
        for name in ("theirs", "ours"):
            connect = f"{zookeeper.bootstrap_servers}/{name}"
            settings = {"zookeeper.connect": connect, "broker.id": "0"}
            process: ServerProcess = (
                apache_kafka.ApacheBroker(tmp_path / name, settings, zookeeper)
                if name == "theirs"
                else BrokerProcess(tmp_path / name, settings)
            )
            with process:
                paused[name] = used_up(process.bootstrap_servers)
                said[name] = quota_requests.answers(process.bootstrap_servers)
            stored[name] = run(configs(connect))
    assert paused["ours"] == paused["theirs"]
    assert said["ours"] == said["theirs"]
    assert stored["ours"] == stored["theirs"]
    assert paused["ours"][f"produce {RAW}"] > 100_000
    assert paused["ours"]["fetch 0"] == (True, 0, [])
    assert paused["ours"]["refused"] == (EXCEEDED, None, True)


def test_kafkas_own_tool_changes_our_quotas(broker: BrokerProcess) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"not asked by Apache Kafka's tool: {reason}")
        return

    def tool(*words: str) -> str:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        done = apache_kafka.run_tool("kafka.admin.ConfigCommand", *servers, *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    both = ("--entity-type", "users", "--entity-name", "j", "--entity-type", "clients")
    entity = (*both, "--entity-default")
    tool("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=50", *entity)
    theirs = tool("--describe", *entity)
    ours = kafkapy("configs", "--bootstrap-server", broker.bootstrap_servers, "--describe", *entity)
    assert sorted(ours.stdout.replace(",", "").split()) == sorted(theirs.replace(",", "").split())
    assert "producer_byte_rate=1024.0" in theirs
    tool("--alter", "--delete-config", "producer_byte_rate,request_percentage", *entity)
    assert tool("--describe", *entity) == ""


# real clients


def is_told(client: Producer, events: list[ThrottleEvent]) -> bool:
    """Whether a client has heard of a pause, which it tells when it is polled."""
    client.poll(0.1)
    return bool(events)


def test_a_producer_hears_of_its_pause(broker: BrokerProcess, cluster: Cluster) -> None:
    create_topic(broker.bootstrap_servers, "produced")
    set_quota(cluster, (("client-id", "c"),), producer_byte_rate=1000)
    events: list[ThrottleEvent] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "c",
            "throttle_cb": events.append,
            **QUIET,
        }
    )
    producer.produce("produced", b"v" * 20_000)
    assert producer.flush(LIMIT_S) == 0  # the answer does not wait for the pause
    wait_until(partial(is_told, producer, events), "the producer is told")
    # 20,000 bytes and what surrounds them, where ten seconds allow 10,000.
    assert 10.0 <= events[0].throttle_time < 10.3
    assert events[0].broker_id == 0


def test_javas_producer_hears_of_its_pause(broker: BrokerProcess, cluster: Cluster) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"no producer of Apache Kafka's: {reason}")
        return
    create_topic(broker.bootstrap_servers, "java")
    set_quota(cluster, (("client-id", "java"),), producer_byte_rate=1000)
    words = "--topic java --num-records 1 --record-size 20000 --throughput -1 --print-metrics"
    servers = f"bootstrap.servers={broker.bootstrap_servers}"
    properties = ("--producer-props", servers, "client.id=java")
    done = apache_kafka.run_tool(apache_kafka.PRODUCER_PERFORMANCE, *words.split(), *properties)
    assert done.returncode == 0, done.stderr.decode()
    [pause] = re.findall(r"produce-throttle-time-max:\S+ +: +([0-9.]+)", done.stdout.decode())
    assert 10_000 <= float(pause) < 10_300


def test_a_consumer_hears_of_its_pause_and_reads_on(
    broker: BrokerProcess, cluster: Cluster
) -> None:
    servers = broker.bootstrap_servers
    create_topic(servers, "consumed")
    for _ in range(3):
        produced(servers, "consumed", 800)
    set_quota(cluster, ME, consumer_byte_rate=100)
    events: list[ThrottleEvent] = []
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "throttle_cb": events.append,
            **QUIET,
        }
    )
    consumer.subscribe(["consumed"])
    values: list[bytes] = []

    def has_paused() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return bool(events)

    wait_until(has_paused, "the consumer is told")
    assert len(values) == 1  # a second one would be more than ten seconds allow
    assert 0 < events[0].throttle_time < 10
    set_quota(cluster, ME, consumer_byte_rate=None)
    wait_until(lambda: has_paused() and len(values) == 3, "the consumer reads the rest")
    consumer.close()


def test_a_tool_says_that_a_quota_stands_in_its_way(
    broker: BrokerProcess, cluster: Cluster
) -> None:
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    set_quota(cluster, ME, controller_mutation_rate=1)
    create = ("topics", *servers, "--create", "--topic")
    assert kafkapy(*create, "many", "--partitions", "30").status == 0
    refused = kafkapy(*create, "one-more")
    assert refused.status == 1
    assert "The throttling quota has been exceeded." in refused.stdout + refused.stderr


def test_each_user_has_a_quota_and_only_who_may_sets_it(tmp_path: Path) -> None:
    process = guarded_broker.ours(tmp_path / "logs")
    with process:
        guarded_broker.prepare(process, tmp_path)
        quota = ((("user", "alice"),), (("producer_byte_rate", 1000.0),))
        with guarded_broker.cluster_of(process, "bob") as cluster:
            [(error, _, entity)] = quota_requests.alter(cluster, quota)
            assert (error, entity) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, quota[0])
        with guarded_broker.cluster_of(process, "admin") as cluster:
            assert quota_requests.alter(cluster, quota)[0][0] == 0
        told: dict[str, list[ThrottleEvent]] = {"alice": [], "admin": []}
        for user, events in told.items():
            config = {**guarded_broker.librdkafka(process, user), "throttle_cb": events.append}
            producer = Producer(config)
            producer.produce("open", b"v" * 20_000)
            assert producer.flush(LIMIT_S) == 0
            if user == "alice":
                wait_until(partial(is_told, producer, events), "alice is told")
        assert told["alice"][0].throttle_time >= 10
        assert told["admin"] == []


# at run time


def test_quotas_outlive_the_broker(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "logs")
    with process:
        create_topic(process.bootstrap_servers, "t")
        with Cluster(process.bootstrap_servers) as cluster:
            set_quota(cluster, RAW, producer_byte_rate=10)
        before = produced(process.bootstrap_servers, "t", 1000).throttle_time_ms
        assert before > 0
    with process:
        assert produced(process.bootstrap_servers, "t", 1000).throttle_time_ms == before


class Pair:
    """Two brokers, each of which leads a partition of the topic `both`."""

    def __init__(self, group: BrokerGroup) -> None:
        self.servers = {n: group.brokers[n].bootstrap_servers for n in (1, 2)}
        create_topic(self.servers[1], "both", partitions=2)
        self._led: dict[int, int] = {}
        with Cluster(group.bootstrap_servers) as cluster:
            wait_until(partial(self._find, cluster), "both lead")

    def _find(self, cluster: Cluster) -> bool:
        partitions = cluster.metadata(["both"], True).topics["both"].partitions
        self._led = {partition.leader: index for index, partition in partitions.items()}
        return self._led.keys() == {1, 2}

    def throttles(self, at: int, expected: bool) -> bool:
        """Whether a broker lets its next producer pause, or not, as expected."""
        answer = produced(self.servers[at], "both", 2000, partition=self._led[at])
        return (answer.throttle_time_ms > 0) == expected


def test_every_broker_of_a_cluster_enforces_what_one_is_told(tmp_path: Path) -> None:
    with BrokerGroup(tmp_path, (1, 2), {}) as group:
        pair = Pair(group)
        zookeeper = ("--zookeeper", group.zookeeper.connect())
        for where, words in (
            (("--bootstrap-server", pair.servers[1]), ("--client", quota_requests.RAW)),
            (("--bootstrap-server", pair.servers[2]), ("--user-defaults",)),
            (zookeeper, ("--entity-type", "users", "--entity-name", "ANONYMOUS")),
        ):
            for change, expected in (
                (("--add-config", "producer_byte_rate=10"), True),
                (("--delete-config", "producer_byte_rate"), False),
            ):
                done = kafkapy("configs", *where, "--alter", *words, *change)
                assert done.status == 0, done.stderr
                for at in (1, 2):
                    follows = partial(pair.throttles, at, expected)
                    wait_until(follows, f"broker {at} follows {words} {change}")


def test_connections_that_come_too_fast_wait_and_are_served(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(tmp_path / "logs", {"kafkapy.metrics.port": str(port)}) as broker:
        with Cluster(broker.bootstrap_servers) as cluster:
            rate = {"listener.name.plaintext.max.connection.creation.rate": "1"}
            own = Resource(ResourceType.BROKER, "0")
            incremental_alter_configs(cluster, own, rate, [])
            request = encode_request(ApiVersionsRequest(), 0, 1, None)
            for _ in range(12):
                with RawConnection(broker.bootstrap_servers) as connection:
                    connection.send(request)
                    assert connection.read_frame() is not None
            incremental_alter_configs(cluster, own, {}, [*rate])
        name = "server_socketservermetrics_connection_accept_throttle_time listener=PLAINTEXT"
        assert samples_of(port)[name] > 0


def test_addresses_of_a_listener_of_both_families(tmp_path: Path) -> None:
    port = free_port()
    listener = {
        "listeners": f"PLAINTEXT://[::]:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
    broker = BrokerProcess(tmp_path / "logs", listener)
    broker.port, broker.bootstrap_servers = port, f"127.0.0.1:{port}"
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        unchecked.note("quotas of IPv6 addresses", str(error))
        return

    def answered(host: str) -> list[bool]:
        found = []
        for _ in range(12):
            with socket.create_connection((host, port), LIMIT_S) as connection:
                connection.sendall(API_VERSIONS_V0)
                found.append(bool(connection.recv(1)))
        return found

    with broker, Cluster(broker.bootstrap_servers) as cluster:
        for host in ("127.0.0.1", "::1"):
            set_quota(cluster, (("ip", host),), connection_creation_rate=1)
            few = answered(host)
            assert (few[0], few[-1]) == (True, False)
            set_quota(cluster, (("ip", host),), connection_creation_rate=None)
            assert all(answered(host))
