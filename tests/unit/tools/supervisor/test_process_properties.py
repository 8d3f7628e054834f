"""The properties of a machine's brokers: the first as the file says, no two in each other's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.tools.supervisor.process_properties import LISTEN, check, check_store, overrides
from kafkapy.tools.supervisor.supervisor import Supervisor

STORE = "127.0.0.1:2181"
FILE = {
    "broker.id": "7",
    "listeners": "PLAINTEXT://0.0.0.0:9092, SSL://[::]:9093,INTERNAL://:0",
    "advertised.listeners": "PLAINTEXT://kafka.example:9092,SSL://kafka.example:9093",
    "log.dirs": "/data/a/kafka,/data/b/kafka/",
    "kafkapy.log.dir": "/var/log/kafka",
    "zookeeper.connect": "zk:2181",
}


def test_the_first_broker_keeps_its_id_ports_and_directories() -> None:
    assert overrides(FILE, 0, "host-a", STORE) == {
        "log.dirs": "/data/a/kafka,/data/b/kafka/",
        "kafkapy.log.dir": "/var/log/kafka",
        "broker.rack": "host-a",
    }


def test_the_others_have_their_own() -> None:
    assert overrides(FILE, 3, "host-a", STORE) == {
        "broker.id": "307",
        "listeners": "PLAINTEXT://0.0.0.0:9122,SSL://[::]:9123,INTERNAL://:0",
        "advertised.listeners": "PLAINTEXT://kafka.example:9122,SSL://kafka.example:9123",
        "log.dirs": "/data/a/kafka-3,/data/b/kafka-3",
        "kafkapy.log.dir": "/var/log/kafka-3",
        "broker.rack": "host-a",
    }


def test_defaults_are_shifted_too_and_a_rack_is_kept() -> None:
    assert overrides({"broker.rack": "r1"}, 1, "host-a", STORE) == {
        "listeners": "PLAINTEXT://:9102",
        "log.dirs": "/tmp/kafka-logs-1",
        "zookeeper.connect": STORE,
    }


def test_without_zookeeper_the_first_broker_serves_its_store_to_the_others() -> None:
    first = overrides({}, 0, "m", STORE)
    assert first[LISTEN] == STORE
    assert "zookeeper.connect" not in first
    second = overrides({}, 1, "m", STORE)
    assert second["zookeeper.connect"] == STORE
    assert LISTEN not in second


def test_a_broker_that_serves_its_store_at_an_address_can_become_several() -> None:
    """The others did not start: they had kafkapy.zookeeper.listen and zookeeper.connect."""
    file = {"log.dirs": "/logs", LISTEN: STORE}
    first, second = (KafkaConfig({**file, **overrides(file, n, "m", STORE)}) for n in (0, 1))
    assert (first.zookeeper_listen, first.is_embedded) == (("127.0.0.1", 2181), True)
    assert (second.zookeeper_listen, second.is_embedded) == (None, False)
    assert second.get_str("zookeeper.connect") == STORE


def test_an_id_of_many_brokers_is_not_one_that_is_generated() -> None:
    """Kafka refuses ids above reserved.broker.max.id, 1000."""
    found = overrides({"node.id": "5"}, 10, "m", STORE)
    assert (found["node.id"], found["reserved.broker.max.id"]) == ("1005", "1005")
    assert "reserved.broker.max.id" not in overrides({"node.id": "5"}, 9, "m", STORE)
    assert "broker.id" not in overrides({"broker.id": "-1"}, 2, "m", STORE), (
        "each generates its own"
    )


@pytest.mark.parametrize(
    ("changes", "processes", "message"),
    [
        ({}, 0, "--processes must be 1 to 128, not 0"),
        (
            {"listeners": "PLAINTEXT://:9092,SSL://:9112"},
            3,
            "Brokers 0 and 2 would both listen on port 9112",
        ),
        ({"listeners": "PLAINTEXT://:" + "9" * 5000}, 2, "Broker 0 would have the port 999999999"),
        ({"listeners": "PLAINTEXT://:65530"}, 2, "Broker 1 would have the port 65540"),
    ],
)
def test_what_cannot_be_derived_is_refused(
    changes: dict[str, str], processes: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check({**FILE, **changes}, processes)


def test_an_id_that_is_no_number_is_named() -> None:
    message = r"Invalid value one for configuration broker\.id: Not a number"
    with pytest.raises(ConfigError, match=message):
        overrides({"broker.id": "one"}, 1, "m", STORE)


SECURED = [
    {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
    {"listeners": "SASL_PLAINTEXT://:9092"},
    {"listeners": "CLIENTS://:9092", "listener.security.protocol.map": "CLIENTS:SSL"},
]


@pytest.mark.parametrize("properties", SECURED)
def test_other_users_of_the_machine_cannot_change_the_acls_of_secured_brokers(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    """The store, which only the broker's user may read in its file, was served to everybody."""
    with pytest.raises(ConfigError, match="every user of this machine"):
        Supervisor(2, [], properties, lambda _: None)
    jaas = tmp_path / "jaas.conf"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    jaas.write_text(f'Server {{ {module} user_kafka="secret"; }};\n')
    check_store({**properties, LOGIN_CONFIG: str(jaas)})
    check_store({**properties, "zookeeper.connect": "zk:2181"})
    check_store({**properties, LISTEN: "10.0.0.1:2181"})


def test_brokers_without_security_serve_their_store_as_before() -> None:
    check_store({"listeners": "PLAINTEXT://:9092", "authorizer.class.name": ""})
