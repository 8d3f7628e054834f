"""registry_values: Confluent's classes and properties in the console tools."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import NotRegistered, RegisteredSchema, RegistryClient
from kafkapy.schemas.wire_format import SchemaId
from kafkapy.tools.console.formatters import make_formatter
from kafkapy.tools.console.line_reader import LineReader, check_reader_class
from kafkapy.tools.console.message_formatter import Message
from kafkapy.tools.console.registry_values import registry_serializer

URL = "http://127.0.0.1:1"
GUID = UUID("1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb")
AVRO = "io.confluent.kafka.serializers.KafkaAvroDeserializer"


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> list[RegistryClient]:
    """A registry with the Avro schema "long", whose id is 7; and the clients of its requests."""
    clients = []

    def of_id(self: RegistryClient, schema_id: SchemaId) -> RegisteredSchema:
        clients.append(self)
        if schema_id not in (7, GUID):
            raise NotRegistered(URL, 404, "no such schema")
        return RegisteredSchema(7, SchemaType.AVRO, '"long"', ())

    def latest(self: RegistryClient, subject: str) -> RegisteredSchema:
        if subject != "orders-value":
            raise NotRegistered(URL, 404, f"no subject {subject}")
        return of_id(self, 7)

    monkeypatch.setattr(RegistryClient, "of_id", of_id)
    monkeypatch.setattr(RegistryClient, "latest", latest)
    return clients


def record(value: bytes | None, key: bytes | None = b"k", **headers: bytes | None) -> Message:
    return Message("t", 3, 42, 1700, "CreateTime", key, value, list(headers.items()))


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


def test_the_ids_of_schemas_in_headers() -> None:
    found = make_formatter(None, {"print.key": "true", "schema.registry.url": URL})
    of_guid, number = b"\1" + GUID.bytes, b"\0\0\0\0\7"
    assert found.format(record(b"\x54", b"\2", __value_schema_id=of_guid)) == b"\2\t42\n"
    headers = {"__value_schema_id": of_guid, "__key_schema_id": number}
    assert found.format(record(b"\x54", b"\2", **headers)) == b"1\t42\n"
    with pytest.raises(ConfigError, match="A key cannot be decoded: "):
        found.format(record(b"\x54", b"", **headers))


def test_a_formatter_that_is_named_is_used() -> None:
    properties = {"schema.registry.url": URL}
    assert make_formatter("NoOpMessageFormatter", properties).format(record(b"v")) == b""
    named = make_formatter("OffsetsMessageFormatter", properties)
    assert named is make_formatter("OffsetsMessageFormatter", {})


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


def test_lines_are_written_by_the_latest_schema_or_by_an_id() -> None:
    properties = {"schema.registry.url": URL, "parse.key": "true", "key.separator": ":"}
    properties["null.marker"] = "NULL"
    value = registry_serializer(properties, "orders", "value")
    assert registry_serializer(properties, "orders", "key") is None
    reader = LineReader(properties, None, value)
    assert reader.read(b"k:42", 1)[:2] == (b"k", b"\0\0\0\0\7\x54")
    assert reader.read(b"k:NULL", 2)[:2] == (b"k", None)
    with pytest.raises(ConfigError, match=r"Line number 3: The value is not of its schema: .*long"):
        reader.read(b'k:"x"', 3)
    properties |= {"value.schema.id": "7", "key.schema.id": "7"}
    reader = LineReader(
        properties,
        registry_serializer(properties, "other", "key"),
        registry_serializer(properties, "other", "value"),
    )
    assert reader.read(b"1:42", 1)[:2] == (b"\0\0\0\0\7\x02", b"\0\0\0\0\7\x54")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "no subject other-value"),
        ({"value.schema.id": "9"}, "no such schema"),
        ({"value.schema.id": "x"}, r"value\.schema\.id x is not a number"),
        ({"value.schema.id": "9" * 5000}, "9 is not a number"),
        (
            {"value.schema": '"long"'},
            r"value\.schema would register a schema: register",
        ),
        ({"schema.registry.url": ""}, "expected the URL of a schema registry"),
    ],
)
def test_schemas_of_lines_that_are_not_there(properties: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        registry_serializer({"schema.registry.url": URL, **properties}, "other", "value")


def test_confluents_readers_are_known() -> None:
    check_reader_class("io.confluent.kafka.formatter.AvroMessageReader")
