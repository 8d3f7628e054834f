"""server.properties is right as a whole, or the key, the value and what is allowed are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, KafkaConfig

LISTEN = "kafkapy.zookeeper.listen"


def test_defaults_are_kafkas() -> None:
    config = KafkaConfig({"zookeeper.connect": "localhost:2181"})
    assert config.get_int("socket.request.max.bytes") == 104857600
    assert config.get_int("offsets.topic.replication.factor") == 3
    assert config.get_int("group.initial.rebalance.delay.ms") == 3000
    assert config.get_int("log.segment.bytes") == 1 << 30
    assert config.broker_id == -1
    assert [listener.port for listener in config.listeners] == [9092]


def test_a_store_that_is_served_is_not_of_one_broker_alone() -> None:
    assert KafkaConfig({}).is_alone
    served = KafkaConfig({LISTEN: "[::1]:2181"})
    assert served.is_embedded
    assert not served.is_alone
    assert served.zookeeper_listen == ("::1", 2181)
    assert not KafkaConfig({"zookeeper.connect": "h:2181"}).is_alone


@pytest.mark.parametrize("text", ["2181", ":2181", "h:", "h:0", "h:65536", "h:x"])
def test_an_address_to_serve_the_store_at(text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {text} for configuration {LISTEN}"):
        KafkaConfig({LISTEN: text})
    with pytest.raises(ConfigError, match="exclude each other"):
        KafkaConfig({LISTEN: "h:1", "zookeeper.connect": "h:2181"})


def test_a_lone_broker_gets_one_replica_an_id_and_groups_at_once() -> None:
    config = KafkaConfig({})
    assert config.is_embedded
    assert config.get_int("offsets.topic.replication.factor") == 1
    assert config.get_int("transaction.state.log.replication.factor") == 1
    assert config.get_int("transaction.state.log.min.isr") == 1
    assert config.get_int("group.initial.rebalance.delay.ms") == 0
    assert config.broker_id == 0


def test_what_is_given_for_a_lone_broker_wins() -> None:
    given = {"offsets.topic.replication.factor": "2", "group.initial.rebalance.delay.ms": "50"}
    config = KafkaConfig({**given, "broker.id": "7"})
    assert config.get_int("group.initial.rebalance.delay.ms") == 50
    assert config.get_int("offsets.topic.replication.factor") == 2
    assert config.broker_id == 7


@pytest.mark.parametrize(
    ("properties", "parts"),
    [
        ({"num.partitions": "many"}, ("num.partitions", "many", "INT")),
        ({"num.partitions": "0"}, ("num.partitions", "0", "at least 1")),
        ({"compression.type": "zip"}, ("compression.type", "zip", "snappy")),
        ({"listeners": "localhost:9092"}, ("listeners", "localhost:9092", "NAME://host:port")),
        ({"listeners": "PLAINTEXT://:99999"}, ("listeners", "99999", "NAME://host:port")),
        ({"listeners": "INTERNAL://:9092"}, ("listener.security.protocol.map", "INTERNAL")),
        ({"listeners": "SSL://:9093"}, ("listeners", "SSL", "PLAINTEXT")),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
            ("advertised.listeners", "0.0.0.0", "clients can reach"),
        ),
        ({"broker.id": "1001"}, ("broker.id", "1001", "reserved.broker.max.id")),
        ({"log.dirs": "/a,/a"}, ("log.dirs", "twice")),
        ({"log.dirs": "/a,/b,/a/"}, ("log.dirs", "twice")),
        ({"log.dirs": "a,./a"}, ("log.dirs", "twice")),
        ({"process.roles": "broker"}, ("process.roles", "KRaft")),
        ({"inter.broker.listener.name": "X"}, ("inter.broker.listener.name", "X", "PLAINTEXT")),
        (
            {"replica.fetch.wait.max.ms": "40000"},
            ("replica.fetch.wait.max.ms", "40000", "replica.socket.timeout.ms"),
        ),
        ({"auto.create.topics.enable": "yes"}, ("auto.create.topics.enable", "yes", "true")),
        ({"replica.selector.class": "Mine"}, ("replica.selector.class", "Mine", "RackAware")),
        ({"authorizer.class.name": "Mine"}, ("authorizer.class.name", "Mine", "AclAuthorizer")),
        ({"group.coordinator.rebalance.protocols": "consumer"}, ("Disabling the 'classic'",)),
        ({"group.coordinator.rebalance.protocols": "classic,streams"}, ("streams", "consumer")),
        ({"group.consumer.assignors": "sticky"}, ("group.consumer.assignors", "sticky", "uniform")),
        ({"group.consumer.assignors": ""}, ("group.consumer.assignors", "at least one")),
        (
            {"group.consumer.session.timeout.ms": "60001"},
            ("group.consumer.session.timeout.ms=60001", "group.consumer.max.session.timeout.ms"),
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "4999"},
            ("group.consumer.min.heartbeat.interval.ms=5000", "heartbeat.interval.ms=4999"),
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "45000",
                "group.consumer.max.heartbeat.interval.ms": "45000",
            },
            ("group.consumer.heartbeat.interval.ms=45000", "less than"),
        ),
        *(
            ({f"log.retention.{unit}": "0"}, (f"log.retention.{unit}=0", "unlimited (-1)"))
            for unit in ("ms", "minutes", "hours")
        ),
        ({"max.connections.per.ip": "0"}, ("max.connections.per.ip", "zero", "overrides")),
        ({"max.connections.per.ip.overrides": "h"}, ("overrides=h", "host:limit")),
        ({"super.users": "User:a,root;x"}, ("super.users", "'x'", "User:alice")),
    ],
)
def test_a_bad_value_names_the_key_the_value_and_what_is_allowed(
    properties: dict[str, str], parts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as error:
        KafkaConfig(properties)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"log.retention.hours": "-1"},
        {"log.retention.hours": "0", "log.retention.minutes": "1"},
        {"log.retention.minutes": "0", "log.retention.ms": "-1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "h:1"},
    ],
)
def test_a_value_that_another_makes_harmless_is_allowed(given: dict[str, str]) -> None:
    assert KafkaConfig(given).properties == given


def test_a_link_is_the_directory_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    with pytest.raises(ConfigError, match="names a directory twice"):
        KafkaConfig({"log.dirs": f"{tmp_path}/logs,{tmp_path}/link"})
    given = f"{tmp_path}/link,{tmp_path}/others"
    assert KafkaConfig({"log.dirs": given}).log_dirs == tuple(given.split(","))


def test_every_default_passes_its_own_check() -> None:
    for name, key in BROKER_CONFIGS.keys.items():
        if key.validator is not None and key.default is not None:
            key.validator(name, key.default)


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        ({}, b""),
        ({"delegation.token.secret.key": "new"}, b"new"),
        ({"delegation.token.master.key": "old"}, b"old"),
        ({"delegation.token.secret.key": "new", "delegation.token.master.key": "old"}, b"new"),
    ],
)
def test_the_secret_of_delegation_tokens(given: dict[str, str], secret: bytes) -> None:
    assert KafkaConfig(given).token_secret == secret


def test_a_broker_has_one_id_by_two_names() -> None:
    for given in ("broker.id", "node.id"):
        config = KafkaConfig({given: "3"})
        assert (config.broker_id, config.get_int("node.id")) == (3, 3)
        assert config.properties.items() >= {"broker.id": "3", "node.id": "3"}.items()
    assert KafkaConfig({"broker.id": "3", "node.id": "3"}).broker_id == 3
    with pytest.raises(ConfigError, match=r"the same value as `broker\.id`: 4 is not 3"):
        KafkaConfig({"broker.id": "3", "node.id": "4"})


def test_a_broker_that_may_not_choose_its_id_needs_one() -> None:
    given = {"zookeeper.connect": "localhost:2181", "broker.id.generation.enable": "false"}
    with pytest.raises(ConfigError, match=r"broker\.id=-1 must be at least 0"):
        KafkaConfig(given)
    assert KafkaConfig({**given, "broker.id": "0"}).broker_id == 0


@pytest.mark.parametrize("name", ["broker.id", "node.id"])
def test_node_id_is_another_name_of_broker_id(name: str) -> None:
    config = KafkaConfig({"zookeeper.connect": "h:2181", name: "7"})
    assert (config.broker_id, config.values["node.id"]) == (7, 7)
    assert config.properties["broker.id"] == config.properties["node.id"] == "7"


def test_two_ids_must_be_the_same() -> None:
    KafkaConfig({"broker.id": "7", "node.id": "7"})
    told = "You must set `node.id` to the same value as `broker.id`: 8 is not 7"
    with pytest.raises(ConfigError, match=told):
        KafkaConfig({"broker.id": "7", "node.id": "8"})
