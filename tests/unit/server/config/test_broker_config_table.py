"""A server.properties written for Apache Kafka 3.9 means the same here."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkapy.common.java_properties import parse_properties
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.server.config.broker_config_table import BROKER_CONFIG_ROWS
from kafkapy.server.config.kafka_config import KafkaConfig

TABLE = {key.name: key for key in BROKER_CONFIG_ROWS}

# The settings of config/server.properties as Kafka ships it.
SHIPPED = """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""

# Numbers of `KafkaConfig` that decide what a cluster keeps, waits for and refuses.
DEFAULTS = {
    "auto.create.topics.enable": True,
    "auto.leader.rebalance.enable": True,
    "connections.max.idle.ms": 600000,
    "controlled.shutdown.enable": True,
    "controlled.shutdown.max.retries": 3,
    "default.replication.factor": 1,
    "delete.topic.enable": True,
    "fetch.max.bytes": 57671680,
    "group.initial.rebalance.delay.ms": 3000,
    "group.max.session.timeout.ms": 1800000,
    "group.max.size": 2147483647,
    "group.min.session.timeout.ms": 6000,
    "leader.imbalance.check.interval.seconds": 300,
    "leader.imbalance.per.broker.percentage": 10,
    "log.cleaner.dedupe.buffer.size": 134217728,
    "log.dir": "/tmp/kafka-logs",
    "log.retention.hours": 168,
    "log.roll.hours": 168,
    "max.incremental.fetch.session.cache.slots": 1000,
    "num.partitions": 1,
    "num.replica.fetchers": 1,
    "offset.metadata.max.bytes": 4096,
    "offsets.commit.required.acks": -1,
    "offsets.commit.timeout.ms": 5000,
    "offsets.retention.minutes": 10080,
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.segment.bytes": 104857600,
    "producer.id.expiration.ms": 86400000,
    "replica.fetch.max.bytes": 1048576,
    "replica.fetch.min.bytes": 1,
    "replica.fetch.response.max.bytes": 10485760,
    "replica.fetch.wait.max.ms": 500,
    "replica.lag.time.max.ms": 30000,
    "reserved.broker.max.id": 1000,
    "socket.request.max.bytes": 104857600,
    "transaction.max.timeout.ms": 900000,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 50,
    "transactional.id.expiration.ms": 604800000,
    "zookeeper.session.timeout.ms": 18000,
}


def test_the_shipped_properties_are_known_and_understood() -> None:
    config = KafkaConfig(parse_properties(SHIPPED))
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert not config.is_embedded


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_is_kafkas(name: str) -> None:
    assert TABLE[name].default == DEFAULTS[name]


def test_every_key_stands_once_and_topic_twins_stand_elsewhere() -> None:
    """A second row of a name would silently replace the first."""
    twins = [key.synonyms[0] for key in TOPIC_CONFIGS.keys.values() if key.synonyms]
    names = Counter([key.name for key in BROKER_CONFIG_ROWS] + twins)
    assert [name for name, count in names.items() if count > 1] == []


def test_secrets_are_hidden() -> None:
    hidden = {key.name for key in BROKER_CONFIG_ROWS if key.sensitive}
    named = {name for name in TABLE if name.endswith((".password", ".secret", ".secret.key"))}
    assert hidden == named | {
        "delegation.token.master.key",
        "sasl.jaas.config",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
        "kafkapy.zookeeper.sasl.jaas.config",
        "kafkapy.zookeeper.auth",
    }
