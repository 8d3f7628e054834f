"""MirrorMaker 2 between a kafkapy broker and one of Apache Kafka: both ways, exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.conformance.java_apps import Finding, JavaApp, properties
from tests.harness.faults.exactly_once import read
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import wait_until

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
RECORDS = 5000
PARTITIONS = 3
CONFIG: Final = {"retention.ms": "777000"}
GROUP = "readers"
LIMIT_S = 120.0
OURS, APACHE = "ours", "apache"


def both_ways(directory: Path) -> Finding:
    """Records, configs and a group's offsets of a topic at each side come to the other."""
    zookeeper = apache_kafka.ZooKeeperProcess(directory / "zookeeper")
    with (
        zookeeper,
        BrokerProcess(directory / OURS) as ours,
        apache_kafka.ApacheBroker(directory / APACHE, zookeeper=zookeeper) as apache,
    ):
        servers = {OURS: ours.bootstrap_servers, APACHE: apache.bootstrap_servers}
        for side, address in servers.items():
            _fill(address, side)
        mirror = JavaApp(directory, "mirror", MAIN, _settings(directory, servers))
        mirror.launch()
        try:
            for source, target in ((OURS, APACHE), (APACHE, OURS)):
                _check(servers[source], servers[target], source)
            mirror.stop()
        finally:
            if mirror.running:
                mirror.kill()
    return Finding(
        f"MirrorMaker 2 {apache_kafka.VERSION}, both ways, exactly once",
        "1 kafkapy and 1 Apache Kafka, mirrored to each other", "-",
        f"{RECORDS:,} records each way, each once, in order; topic configs and offsets of groups",
    )  # fmt: skip


def _settings(directory: Path, servers: dict[str, str]) -> str:
    internal = ("", "checkpoints_topic_", "heartbeats_topic_", "offset-syncs_topic_",
                "offset_storage_", "status_storage_", "config_storage_")  # fmt: skip
    often = {
        f"{what}_interval_seconds": "2"
        for what in ("sync_group_offsets", "emit_checkpoints", "refresh_topics",
                     "refresh_groups", "sync_topic_configs")
    }  # fmt: skip
    sides = {}
    for side, other in ((OURS, APACHE), (APACHE, OURS)):
        sides[f"{side}_bootstrap_servers"] = servers[side]
        sides[f"{side}_exactly_once_source_support"] = "enabled"
        sides[f"{side}->{other}_enabled"] = "true"
        sides[f"{side}->{other}_topics"] = f"logs-{side}"
    return properties(
        directory, "mirror", clusters=f"{OURS},{APACHE}", sync_group_offsets_enabled="true",
        dedicated_mode_enable_internal_rest="true", listeners="http://127.0.0.1:0",
        **{f"{prefix}replication_factor": "1" for prefix in internal}, **often, **sides,
    )  # fmt: skip


def _fill(servers: str, side: str) -> None:
    """A topic of numbers, of which a group has read the first third of each partition."""
    topic = f"logs-{side}"
    create_topic(servers, topic, PARTITIONS, CONFIG)
    producer = Producer({"bootstrap.servers": servers, **QUIET})
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP, **QUIET})
    read_to = [At(topic, partition, RECORDS // 9) for partition in range(PARTITIONS)]
    consumer.commit(offsets=read_to, asynchronous=False)
    consumer.close()


def _check(source: str, target: str, side: str) -> None:
    topic, mirrored = f"logs-{side}", f"{side}.logs-{side}"
    admin = AdminClient({"bootstrap.servers": target, **QUIET})
    wait_until(lambda: mirrored in admin.list_topics(timeout=20).topics, mirrored, LIMIT_S)

    def partitions_of(servers: str, name: str) -> list[list[str]]:
        return [read(servers, name, partition=partition) for partition in range(PARTITIONS)]

    wanted = partitions_of(source, topic)
    wait_until(lambda: partitions_of(target, mirrored) == wanted, f"{mirrored} as {topic}", LIMIT_S)
    resource = ConfigResource(ConfigResource.Type.TOPIC, mirrored)

    def has_config() -> bool:
        found = admin.describe_configs([resource])[resource].result(timeout=30)
        return all(found[name].value == value for name, value in CONFIG.items())

    def has_offsets() -> bool:
        asked = [ConsumerGroupTopicPartitions(GROUP)]
        try:
            found = admin.list_consumer_group_offsets(asked)[GROUP].result(timeout=30)
        except KafkaException:  # no such group yet
            return False
        named = [each for each in found.topic_partitions if each.topic == mirrored]
        # Each is translated to an offset at or before it.
        return len(named) == PARTITIONS and all(each.offset > 0 for each in named)

    wait_until(has_config, f"the config of {topic} at {mirrored}", LIMIT_S)
    wait_until(has_offsets, f"the offsets of {GROUP} in {mirrored}", LIMIT_S)
