"""Three brokers over a real ZooKeeper: what is acknowledged stays; who stops hands over first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, Producer
from kazoo.client import KazooClient

from kafkapy.client.cluster import Cluster
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.processes.zookeeper_server import zookeeper_for

SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "controlled.shutdown.retry.backoff.ms": "200",
}


class ThreeBrokers:
    """ZooKeeper and brokers 1 to 3."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.zookeeper = zookeeper_for(directory)
        self.brokers = {i: self.make(i) for i in (1, 2, 3)}

    def start(self) -> None:
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.start()

    def make(self, broker_id: int, name: str = "", **overrides: str) -> BrokerProcess:
        settings = {
            **SETTINGS,
            "broker.id": str(broker_id),
            "zookeeper.connect": self.zookeeper.connect(),
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }
        return BrokerProcess(self.directory / (name or f"broker-{broker_id}"), settings)

    @property
    def servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def partitions(self, topic: str) -> dict[int, tuple[int, set[int]]]:
        """(leader, ISR) by partition, as a live broker tells."""
        found: dict[int, tuple[int, set[int]]] = {}
        with Cluster(self.servers) as cluster:

            def told() -> bool:  # not every broker has heard of a new topic yet
                partitions = cluster.metadata([topic], refresh=True).topics[topic].partitions
                found.update({p.partition: (p.leader, set(p.isr)) for p in partitions.values()})
                return bool(found)

            wait_until(told, f"the partitions of {topic} are known")
        return found

    def has_left(self, broker_id: int) -> bool:
        """Whether no other broker's metadata has this one."""
        others = [broker for i, broker in self.brokers.items() if i != broker_id]
        return all(broker_id not in brokers_known_to(other) for other in others)

    def stop(self) -> None:
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        self.zookeeper.release()


def brokers_known_to(broker: BrokerProcess) -> set[int]:
    """The ids of the brokers in a broker's metadata."""
    with Cluster(broker.bootstrap_servers) as cluster:
        return set(cluster.metadata([], refresh=True).brokers)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    made = ThreeBrokers(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


class Ledger:
    """An idempotent acks=all producer, and what it was told."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[tuple[bytes, int, int]] = []
        self.failed: list[str] = []
        self._next = 0
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )

    def produce(self, count: int) -> None:
        for _ in range(count):
            value = str(self._next)
            self._next += 1
            self._producer.produce(self.topic, value=value, key=value, on_delivery=self._told)
            self._producer.poll(0)

    def _told(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.append((message.value(), message.partition(), message.offset()))

    def finish(self) -> None:
        assert self._producer.flush(120) == 0
        assert self.failed == []

    def check(self, servers: str) -> None:
        """Every acknowledged record is there, at its offset, once."""
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"check-{self.topic}",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        found: list[tuple[bytes, int, int]] = []
        deadline = time.monotonic() + LIMIT_S
        while len(found) < len(self.acknowledged) and time.monotonic() < deadline:
            batch = consumer.consume(1000, 0.5)
            found += [(m.value(), m.partition(), m.offset()) for m in batch if m.error() is None]
        consumer.close()
        assert sorted(found) == sorted(self.acknowledged)


def test_a_killed_leader_costs_nothing_that_was_acknowledged(cluster: ThreeBrokers) -> None:
    create_topic(cluster.servers, "killed", 3, replication_factor=3)
    ledger = Ledger(cluster.servers, "killed")
    ledger.produce(500)
    victim = cluster.partitions("killed")[0][0]
    cluster.brokers[victim].kill()
    ledger.produce(500)
    ledger.finish()
    assert all(victim not in isr for _, isr in cluster.partitions("killed").values())
    cluster.brokers[victim].start()
    wait_until(
        lambda: all(isr == {1, 2, 3} for _, isr in cluster.partitions("killed").values()),
        "every ISR is full",
    )
    ledger.check(cluster.servers)


def test_who_is_back_within_the_session_of_its_last_life_waits_for_its_end(
    cluster: ThreeBrokers,
) -> None:
    # Longer than a start takes on the busiest machine; that of the others would be over by then.
    broker = cluster.make(4, zookeeper_session_timeout_ms="20000")
    try:
        broker.start()
        before = broker.output_text()
        broker.kill()
        broker.start()
        said = broker.output_text().removeprefix(before)
        waited, registered = "Broker 4 is still registered by session 0x", "Registered broker 4"
        assert (said.count(waited), said.count(registered)) == (1, 1)
        assert said.index(waited) < said.index(registered)
        assert "Traceback" not in said
    finally:
        broker.stop()


def test_who_stops_hands_its_leaders_over_first(cluster: ThreeBrokers) -> None:
    create_topic(cluster.servers, "handed", 3, replication_factor=3)
    ledger = Ledger(cluster.servers, "handed")
    ledger.produce(100)
    leaver = cluster.partitions("handed")[0][0]
    assert cluster.brokers[leaver].stop() == 0
    assert "Controlled shutdown succeeded" in cluster.brokers[leaver].output_text()
    wait_until(  # every broker hears of it in its own time
        lambda: all(
            leader not in (-1, leaver) for leader, _ in cluster.partitions("handed").values()
        ),
        "others lead",
    )
    ledger.produce(100)
    ledger.finish()
    cluster.brokers[leaver].start()
    ledger.check(cluster.servers)


def test_a_broker_that_comes_later_is_followed_up(cluster: ThreeBrokers) -> None:
    late = cluster.brokers[3]
    late.stop()
    # A topic that is created before the others hear of it would get a replica there.
    wait_until(lambda: cluster.has_left(3), "broker 3 has left")
    create_topic(cluster.servers, "late", 1, replication_factor=2)
    ledger = Ledger(cluster.servers, "late")
    ledger.produce(50)
    ledger.finish()
    late.start()
    ledger.check(late.bootstrap_servers)


def refusal(broker: BrokerProcess) -> str:
    """The end of the output of a broker that must not start."""
    broker.launch()
    assert broker.wait(LIMIT_S) == 1
    return broker.output_text()


def test_a_second_broker_with_a_used_id_is_refused(cluster: ThreeBrokers) -> None:
    said = refusal(cluster.make(2, "impostor"))
    assert "broker id 2 is already registered" in said
    assert "Traceback" not in said


def test_a_log_directory_of_another_cluster_is_refused(
    cluster: ThreeBrokers, broker_factory: Callable[..., BrokerProcess]
) -> None:
    stranger = broker_factory(overrides={"broker.id": "9"})
    stranger.stop()
    adopted = cluster.make(9, "adopted", log_dirs=str(stranger.log_dir))
    said = refusal(adopted)
    assert "meta.properties" in said
    assert "cluster id" in said
    assert "Traceback" not in said
    assert (stranger.log_dir / "meta.properties").exists()


BROKEN_TOPICS = {
    "/brokers/topics/garbled": b"{not json",
    "/brokers/topics/listed": b"[]",
    "/brokers/topics/bare": b'{"version":1,"partitions":{"0":[]}}',
}
ESTRANGED = "/brokers/topics/estranged"
BROKEN_STATE = "/brokers/topics/scarred/partitions/0/state"


@pytest.fixture
def editor(cluster: ThreeBrokers) -> Iterator[KazooClient]:
    """Whoever edits znodes by hand."""
    client = KazooClient(cluster.zookeeper.connect())
    client.start()
    yield client
    client.stop()
    client.close()


def controller_of(servers: str) -> int:
    """The controller, as a live broker tells."""
    with Cluster(servers) as cluster:
        return cluster.metadata([], refresh=True).controller_id


def test_broken_znodes_are_named_and_everything_else_goes_on(
    cluster: ThreeBrokers, editor: KazooClient
) -> None:
    create_topic(cluster.servers, "scarred", 1, replication_factor=3)
    editor.set(BROKEN_STATE, b"scribble")
    for path, data in BROKEN_TOPICS.items():
        editor.create(path, data)
    editor.create(ESTRANGED, b'{"version":1,"partitions":{"0":[77]}}')  # no broker has this id
    create_topic(cluster.servers, "beside", 1, replication_factor=3)
    ledger = Ledger(cluster.servers, "beside")
    ledger.produce(100)
    # The next controller reads all of them at once.
    controller = int(orjson.loads(editor.get("/controller")[0])["brokerid"])
    cluster.brokers[controller].kill()
    others = ",".join(b.bootstrap_servers for i, b in cluster.brokers.items() if i != controller)
    wait_until(lambda: controller_of(others) not in (controller, -1), "another controller")
    create_topic(others, "afterwards", 1, replication_factor=2)
    ledger.produce(100)
    ledger.finish()
    cluster.brokers[controller].start()
    ledger.check(cluster.servers)
    for path, data in BROKEN_TOPICS.items():
        assert editor.get(path)[0] == data
    assert orjson.loads(editor.get(ESTRANGED)[0])["partitions"] == {"0": [77]}
    said = "".join(broker.output_text() for broker in cluster.brokers.values())
    for path in (*BROKEN_TOPICS, BROKEN_STATE):
        assert f"znode {path} cannot be read" in said
    assert "assigned replicas are [77]" in said
    assert "Traceback" not in said
