"""Entities as znodes and as text; changes that are refused before anything is written."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.password_encoder import GCM, PasswordEncoder
from kafkapy.tools.config_changes import ConfigChange
from kafkapy.tools.zookeeper.configs import (
    NamedEntity,
    entities_of_node,
    entity_text,
    merged,
    node_of,
    refuse_if_running,
    with_passwords_encoded,
)

TOPIC = NamedEntity("topics", "t")
USER, CLIENT = NamedEntity("users", "a b"), NamedEntity("clients", "c*")


@pytest.mark.parametrize(
    ("entities", "node", "text"),
    [
        ([TOPIC], ("topics", "t"), "topic 't'"),
        ([NamedEntity("brokers", "0")], ("brokers", "0"), "brokers '0'"),
        ([NamedEntity("brokers", "")], ("brokers", "<default>"), "default brokers"),
        ([USER], ("users", "a%20b"), "user-principal 'a b'"),
        ([NamedEntity("clients", "")], ("clients", "<default>"), "default client-id"),
        (
            [USER, CLIENT],
            ("users", "a%20b/clients/c%2A"),
            "user-principal 'a b', client-id 'c*'",
        ),
    ],
)
def test_entities(entities: list[NamedEntity], node: tuple[str, str], text: str) -> None:
    assert node_of(entities) == node
    assert entity_text(entities) == text
    assert entities_of_node(*node) == tuple(entities)


def test_the_order_of_the_command_line_does_not_make_the_node() -> None:
    assert node_of([CLIENT, USER]) == node_of([USER, CLIENT])


def test_changes_are_merged() -> None:
    change = ConfigChange({"b": "2", "c": "3"}, ["a"])
    assert merged({"a": "1", "b": "1"}, change) == {"b": "2", "c": "3"}
    with pytest.raises(ConfigError, match=r"Invalid config\(s\): a"):
        merged({}, change)


def test_a_running_broker_is_to_be_asked_itself() -> None:
    refuse_if_running("1", [1, 2], ["leader.replication.throttled.rate"])
    refuse_if_running("3", [1, 2], ["message.max.bytes"])
    refuse_if_running("<default>", [], ["message.max.bytes"])
    for node in ("1", "<default>"):
        with pytest.raises(ConfigError, match="--bootstrap-server option must be specified"):
            refuse_if_running(node, [1, 2], ["message.max.bytes"])


PASSWORD = "listener.name.tls.ssl.keystore.password"


def test_passwords_are_encoded_and_what_encodes_them_is_not_stored() -> None:
    given = {
        PASSWORD: "changeit",
        "message.max.bytes": "9",
        "password.encoder.secret": "s",
        "password.encoder.cipher.algorithm": GCM,
    }
    sets = with_passwords_encoded("1", ConfigChange(given)).sets
    assert sets.keys() == {PASSWORD, "message.max.bytes"}
    assert PasswordEncoder("s").decode(sets[PASSWORD]) == "changeit"
    assert f"cipherAlgorithm:{GCM}" in sets[PASSWORD]


def test_what_encodes_is_not_stored_even_without_passwords() -> None:
    change = ConfigChange({"message.max.bytes": "9", "password.encoder.secret": "s"})
    assert with_passwords_encoded("1", change).sets == {"message.max.bytes": "9"}


def test_passwords_need_a_secret_and_a_broker() -> None:
    with pytest.raises(ConfigError, match=r"password\.encoder\.secret must be specified"):
        with_passwords_encoded("1", ConfigChange({PASSWORD: "changeit"}))
    given = {PASSWORD: "changeit", "password.encoder.secret": "s"}
    with pytest.raises(ConfigError, match="broker id must be specified"):
        with_passwords_encoded("<default>", ConfigChange(given))
