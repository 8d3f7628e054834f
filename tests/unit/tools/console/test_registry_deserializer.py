"""registry_deserializer: Confluent's formatters and properties in the console consumer."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import NotRegistered, RegisteredSchema, RegistryClient
from kafkapy.tools.console.formatters import make_formatter
from kafkapy.tools.console.message_formatter import Message

URL = "http://127.0.0.1:1"
AVRO = "io.confluent.kafka.serializers.KafkaAvroDeserializer"


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> list[RegistryClient]:
    """A registry with the Avro schema "long", whose id is 7; and the clients that asked it."""
    clients = []

    def of_id(self: RegistryClient, schema_id: int) -> RegisteredSchema:
        clients.append(self)
        if schema_id != 7:
            raise NotRegistered("no such schema")
        return RegisteredSchema(7, SchemaType.AVRO, '"long"', ())

    monkeypatch.setattr(RegistryClient, "of_id", of_id)
    return clients


def record(value: bytes | None, key: bytes | None = b"k") -> Message:
    return Message("t", 3, 42, 1700, "CreateTime", key, value, [])


@pytest.mark.parametrize(
    ("formatter", "properties"),
    [
        (None, {"schema.registry.url": URL}),
        ("io.confluent.kafka.formatter.AvroMessageFormatter", {"schema.registry.url": URL}),
        (None, {"value.deserializer": AVRO, "value.deserializer.schema.registry.url": URL}),
    ],
)
def test_values_and_keys_with_schemas(formatter: str | None, properties: dict[str, str]) -> None:
    found = make_formatter(formatter, {"print.key": "true", **properties})
    encoded = b"\0\0\0\0\7\x54"
    assert found.format(record(encoded)) == b"k\t42\n"
    assert found.format(record(encoded, encoded)) == b"42\t42\n"
    assert found.format(record(None)) == b"k\tnull\n"
    assert found.format(record(b'{"id": 7}')) == b'k\t{"id": 7}\n'
    for value, reason in ((b"\0\0\0\0\x09\x54", "no such schema"), (b"\0\0\0\0\7", "not of its")):
        with pytest.raises(ConfigError, match=f"A value cannot be decoded: .*{reason}"):
            found.format(record(value))


def test_another_deserializer_of_keys_and_a_login(registry: list[RegistryClient]) -> None:
    properties = {
        "print.key": "true",
        "schema.registry.url": URL,
        "basic.auth.user.info": "ann:pw",
        "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
    }
    found = make_formatter(None, properties)
    assert found.format(record(b"\0\0\0\0\7\x54", b"\0\0\0\x05")) == b"5\t42\n"
    assert registry == [RegistryClient((URL,), "ann:pw")]


def test_without_a_registry() -> None:
    with pytest.raises(ConfigError, match="expected the URL of a schema registry"):
        make_formatter("io.confluent.kafka.formatter.AvroMessageFormatter", {})
    with pytest.raises(ConfigError, match="expected the URL of a schema registry"):
        make_formatter(None, {"value.deserializer": AVRO})
