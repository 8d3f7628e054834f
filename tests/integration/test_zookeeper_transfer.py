"""A cluster's metadata moves from kafkapy's ZooKeeper to Apache's and back; its broker goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from kafkapy.tools.zookeeper.shell import connect
from kafkapy.tools.zookeeper.tree_reader import read_tree
from kafkapy.tools.zookeeper.znode_file import read_znodes
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import kafkapy

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[OwnZooKeeper, ZooKeeperServer]]:
    with (
        OwnZooKeeper(tmp_path_factory.mktemp("own") / "data") as own,
        ZooKeeperServer(tmp_path_factory.mktemp("apache") / "data") as apaches,
    ):
        yield own, apaches


def test_a_cluster_moves_there_and_back(
    tmp_path: Path, servers: tuple[OwnZooKeeper, ZooKeeperServer]
) -> None:
    own, apaches = servers
    homes = (own.connect("/first"), apaches.connect("/deep/second"), own.connect("/third"))
    for number, home in enumerate(homes):
        if number:
            file = tmp_path / f"znodes-{number}"
            _move(homes[number - 1], home, file)
        overrides = {"zookeeper.connect": home, "broker.id.generation.enable": "true"}
        with BrokerProcess(tmp_path / "broker", overrides) as broker:
            _use(broker.bootstrap_servers, number)
    # Generated ids come from the version of a znode.
    with BrokerProcess(tmp_path / "another", overrides) as another:
        assert "broker.id=1002" in (another.log_dir / "meta.properties").read_text()


def _move(source: str, target: str, file: Path) -> None:
    exported = kafkapy("zookeeper", "export", str(file), "--zookeeper", source, "--output", "json")
    assert exported.status == 0, exported.stderr
    imported = kafkapy("zookeeper", "import", str(file), "--zookeeper", target, "--output", "json")
    assert imported.status == 0, imported.stderr
    assert imported.data[0]["sha256"] == exported.data[0]["sha256"]
    assert imported.data[0]["znodes"] == exported.data[0]["znodes"] > 20
    client = connect(target)
    try:
        assert read_tree(client).rows == read_znodes(file)
    finally:
        client.stop()
        client.close()


def _use(servers: str, number: int) -> None:
    """Everything from before is there; add a topic and a record to each."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [f"t{each}" for each in range(number + 1)]
    new = NewTopic(topics[-1], 1, 1, config={"retention.ms": str(1_000_000 + number)})
    admin.create_topics([new])[topics[-1]].result(LIMIT_S)
    known = admin.list_topics(timeout=LIMIT_S).topics
    assert set(topics) <= set(known)
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    for each, topic in enumerate(topics):
        found = admin.describe_configs(resources)[resources[each]].result(LIMIT_S)
        assert found["retention.ms"].value == str(1_000_000 + each), topic
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for topic in topics:
        producer.produce(topic, f"{number}")
    assert producer.flush(LIMIT_S) == 0
    group = {"group.id": f"g{number}", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **group})
    consumer.subscribe(["t0"])
    values: list[bytes] = []

    def complete() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) == number + 1

    wait_until(complete, f"{number + 1} records", LIMIT_S)
    assert values == [str(each).encode() for each in range(number + 1)]
    consumer.close()
