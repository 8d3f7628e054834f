"""Every znode that an Apache Kafka 3.9 broker writes, read and written again by our codecs.

Without Apache Kafka's jars nothing is checked, and the end of the run says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kafkapy.admin.configs import Resource, incremental_alter_configs
from kafkapy.admin.quotas import QuotaEntity, alter_quotas
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ResourceType
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.stores import paths, znodes
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import Create, CreateMode, Znode
from tests.harness.cores.ensembles import run
from tests.harness.cores.zookeeper_contract import RecordingWatch
from tests.harness.processes import apache_kafka
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer

TOPIC_CONFIGS = {"retention.ms": "86400000", "cleanup.policy": "compact,delete"}


class Dumped(NamedTuple):
    """One znode of the dump: the groups of its path's pattern, and what it holds."""

    path: str
    words: tuple[str, ...]
    node: Znode


def again_broker(dumped: Dumped) -> bytes:
    timestamp = int(orjson.loads(dumped.node.data)["timestamp"])
    broker = znodes.decode_broker(int(dumped.words[0]), dumped.node.data)
    return znodes.encode_broker(broker, timestamp)


def again_topic(dumped: Dumped) -> bytes:
    return znodes.encode_topic(znodes.decode_topic(dumped.words[0], dumped.node.data))


def again_state(dumped: Dumped) -> bytes:
    node = dumped.node
    state = znodes.decode_partition_state(dumped.path, node.data, node.stat.version)
    return znodes.encode_partition_state(state)


def again_controller(dumped: Dumped) -> bytes:
    timestamp = int(orjson.loads(dumped.node.data)["timestamp"])
    return znodes.encode_controller(znodes.decode_controller(dumped.node.data), timestamp)


def again_config(dumped: Dumped) -> bytes:
    return znodes.encode_config(znodes.decode_config(dumped.path, dumped.node.data))


def again_change(dumped: Dumped) -> bytes:
    change = znodes.decode_config_change(dumped.path, dumped.node.data)
    return znodes.encode_config_change(change)


CODECS: dict[str, Callable[[Dumped], bytes]] = {
    "/brokers/ids/([0-9]+)": again_broker,
    "/brokers/topics/([^/]+)": again_topic,
    "/brokers/topics/([^/]+)/partitions/([0-9]+)/state": again_state,
    "/controller": again_controller,
    "/controller_epoch": lambda it: b"%d" % znodes.decode_controller_epoch(it.node.data),
    "/cluster/id": lambda it: znodes.encode_cluster_id(znodes.decode_cluster_id(it.node.data)),
    "/feature": lambda it: znodes.encode_feature(),
    "/latest_producer_id_block": lambda it: znodes.encode_producer_id_block(
        znodes.decode_producer_id_block(it.node.data)
    ),
    "/config/changes/config_change_[0-9]{10}": again_change,
    "/config/(topics|brokers|users|clients|ips)/.+": again_config,
}

# What the steps of the test must have brought about, so that nothing is held by nobody.
EXPECTED = {
    "/brokers/ids/0",
    "/brokers/topics/t",
    "/brokers/topics/t/partitions/3/state",
    "/cluster/id",
    "/config/brokers/0",
    "/config/brokers/<default>",
    "/config/changes/config_change_0000000000",
    "/config/clients/<default>",
    "/config/topics/t",
    f"/config/users/{paths.sanitize('the *+%/user')}",
    "/config/users/<default>/clients/app",
    "/controller",
    "/controller_epoch",
    "/feature",
    "/latest_producer_id_block",
}


def sorted_json(data: bytes) -> Any:
    """Equal exactly if key sets, values and value types are (True is not 1 here)."""
    return orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS)


def use_the_broker(servers: str) -> None:
    """Topics, configs, quotas, more partitions, and a producer id."""
    admin = AdminClient({"bootstrap.servers": servers})
    # Asked before there is a controller, librdkafka may wait for one longer than anybody would.
    wait_until(lambda: admin.list_topics(timeout=10).controller_id >= 0, "a controller")
    created = admin.create_topics([NewTopic("t", 3, 1, config=TOPIC_CONFIGS)])
    created["t"].result(30)
    admin.create_partitions([NewPartitions("t", 4)])["t"].result(30)
    with Cluster(servers) as cluster:
        for kind, name, key, value in (
            (ResourceType.TOPIC, "t", "retention.ms", "3600000"),
            (ResourceType.BROKER, "0", "log.cleaner.threads", "2"),
            (ResourceType.BROKER, "", "message.max.bytes", "2000000"),
        ):
            incremental_alter_configs(cluster, Resource(kind, name), {key: value}, [])
        for entity in (
            [QuotaEntity("user", "the *+%/user")],
            [QuotaEntity("user", ""), QuotaEntity("client-id", "app")],
            [QuotaEntity("client-id", "")],
        ):
            alter_quotas(cluster, entity, {"producer_byte_rate": 1024.0}, [])
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce("t", b"x", partition=3)
    assert producer.flush(30) == 0


async def dump(zk: KazooZooKeeper, path: str = "/") -> dict[str, Znode]:
    """Every node below `path`, by path."""
    found = {path: await zk.get(path)}
    for name in await zk.children(path):
        found |= await dump(zk, f"{path.rstrip('/')}/{name}")
    return found


def check_codecs(nodes: dict[str, Znode]) -> set[str]:
    """Hold each node with data against its codec; the paths that were held."""
    held = set()
    for path, node in nodes.items():
        if not node.data:
            continue
        patterns = [pattern for pattern in CODECS if re.fullmatch(pattern, path)]
        assert len(patterns) == 1, f"{path} holds {node.data!r}, and we know of no such znode"
        match = re.fullmatch(patterns[0], path)
        assert match is not None
        again = CODECS[patterns[0]](Dumped(path, match.groups(), node))
        assert sorted_json(again) == sorted_json(node.data), path
        held.add(path)
    return held


def check_rules(nodes: dict[str, Znode]) -> None:
    """Check what readers rely on besides the JSON: empty nodes, versions, owners."""
    for path in paths.PERSISTENT_PATHS:
        assert path in nodes, path
        if path != paths.PRODUCER_ID_BLOCK:
            assert nodes[path].data == b"", path
    registered = nodes["/brokers/ids/0"].stat
    assert registered.version == 1  # created empty, then set
    assert registered.ephemeral_owner != 0
    assert nodes["/controller"].stat.ephemeral_owner == registered.ephemeral_owner
    assert (nodes["/controller_epoch"].data, nodes["/controller_epoch"].stat.version) == (b"1", 1)
    assert nodes["/feature"].stat.version == 0
    assert nodes["/brokers/topics/t/partitions/0/state"].stat.version == 0
    topic = znodes.decode_topic("t", nodes["/brokers/topics/t"].data)
    assert topic.assignment == dict.fromkeys(range(4), (0,))
    configs = znodes.decode_config("/config/topics/t", nodes["/config/topics/t"].data)
    assert configs == {**TOPIC_CONFIGS, "retention.ms": "3600000"}


async def kafka_takes_our_request(zk: KazooZooKeeper) -> None:
    """Apache Kafka's controller reads the znodes that tools write, and deletes them when done."""
    for path, data in (
        (paths.PREFERRED_REPLICA_ELECTION, znodes.encode_partitions([TopicPartition("t", 0)])),
        (paths.REASSIGN_PARTITIONS, znodes.encode_reassignments({TopicPartition("t", 0): (0,)})),
    ):
        gone = RecordingWatch()
        await zk.multi([Create(path, data, CreateMode.PERSISTENT)])
        if await zk.exists(path, gone) is not None:
            await gone.wait(1)


if apache_kafka.installed():

    def test_our_codecs_read_and_write_apache_kafkas_znodes(tmp_path: Path) -> None:
        with ZooKeeperServer(tmp_path / "zookeeper") as server:
            config = ZooKeeperClientConfig.from_properties(
                {"zookeeper.connect": server.connect("/kafka")}
            )

            async def test() -> None:
                zk = KazooZooKeeper(config)
                await zk.connect()
                nodes = await dump(zk)
                assert check_codecs(nodes) >= EXPECTED
                check_rules(nodes)
                store = ZkStore(zk)
                assert list(await store.brokers.get_all()) == [0]
                assert await store.election.controller_id() == 0
                await kafka_takes_our_request(zk)
                await zk.close()

            settings = {
                "zookeeper.connect": server.connect("/kafka"),
                "controlled.shutdown.enable": "false",
            }
            broker = apache_kafka.ApacheBroker(tmp_path / "kafka", settings, zookeeper=server)
            with broker:
                use_the_broker(broker.bootstrap_servers)
                run(test())
