"""value_json: values with schemas as JSON."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.value_json import ValueJson, encoder
from kafkapy.schemas.wire_format import CorruptValue
from tests.harness.tools.known_schemas import KnownSchemas

PROTOBUF = """
syntax = "proto3";
package shop;
message Head {}
message Order {
  string order_id = 1; int64 count = 2; optional int32 rest = 3; repeated int32 n = 4;
}
"""


def decoder(kind: SchemaType, text: str) -> ValueJson:
    """A decoder of values with the id 1, which has this schema."""
    return ValueJson(KnownSchemas(RegisteredSchema(1, kind, text, ())))  # type: ignore[arg-type]


def test_protobuf_with_the_defaults() -> None:
    values = decoder(SchemaType.PROTOBUF, PROTOBUF)
    assert values.decode(1, b"\x02\x02\x0a\x01a") == b'{"orderId":"a","count":"0","n":[]}'
    assert values.decode(1, b"\0") == b"{}"
    for payload, reason in (
        (b"\x02\x02\xff", "it is not of its schema: "),
        (b"\x02\x08", r"its schema has no message at \[4\]"),
        (b"", "it ends in the path of its message"),
    ):
        with pytest.raises(CorruptValue, match=reason):
            values.decode(1, payload)


def test_protobuf_that_json_cannot_express() -> None:
    source = 'syntax = "proto3"; import "google/protobuf/struct.proto"; '
    values = decoder(SchemaType.PROTOBUF, source + "message M { google.protobuf.Value v = 1; }")
    nan = b"\x0a\x09\x11" + struct.pack("<d", math.nan)
    with pytest.raises(CorruptValue, match=r"it is not of its schema: .*NaN"):
        values.decode(1, b"\0" + nan)


def test_json_is_printed_as_it_is_and_a_schema_is_asked_for_once() -> None:
    registry = KnownSchemas(
        RegisteredSchema(1, SchemaType.JSON, "{}", ()),
        RegisteredSchema(2, SchemaType.AVRO, "odd", ()),
    )
    values = ValueJson(registry)  # type: ignore[arg-type]
    for _ in range(2):
        assert values.decode(1, b'{"a":  1}') == b'{"a":  1}'
    assert registry.requests == 1
    with pytest.raises(CorruptValue, match="the schema 2 cannot be parsed: "):
        values.decode(2, b"")


def registered(kind: SchemaType, text: str, **references: str) -> RegisteredSchema:
    return RegisteredSchema(7, kind, text, tuple(references.items()))


def test_avro_is_written_as_it_was_read() -> None:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    written = encoder(registered(SchemaType.AVRO, schema))(b'{"id": 42}')
    assert written == b"\0\0\0\0\x07\x54"
    assert decoder(SchemaType.AVRO, schema).decode(1, written[5:]) == b'{"id":42}'


def test_protobuf_is_the_first_message() -> None:
    encode = encoder(registered(SchemaType.PROTOBUF, PROTOBUF.replace("message Head {}", "")))
    assert encode(b'{"orderId": "a", "count": 3}') == b"\0\0\0\0\x07\0\x0a\x01a\x10\x03"
    assert encode(b'{"order_id": "a"}') == b"\0\0\0\0\x07\0\x0a\x01a"
    for text in (b"{", b'{"odd": 1}', b'{"count": "x"}'):
        with pytest.raises(CorruptValue, match=r"."):
            encode(text)
    with pytest.raises(CorruptValue, match="the schema 7 has no message"):
        encoder(registered(SchemaType.PROTOBUF, 'syntax = "proto3"; enum E { A = 0; }'))


def test_json_is_validated() -> None:
    schema = {"$id": "http://x/a.json", "properties": {"item": {"$ref": "item.json"}}}
    item = {"type": "object", "properties": {"n": {"type": "integer"}}}
    encode = encoder(
        registered(SchemaType.JSON, json.dumps(schema), **{"item.json": json.dumps(item)})
    )
    assert encode(b'{"item":  {"n": 1}}') == b'\0\0\0\0\x07{"item":  {"n": 1}}'
    with pytest.raises(CorruptValue, match=r"\$\.item\.n: 'x' is not of type 'integer'"):
        encode(b'{"item": {"n": "x"}}')
    with pytest.raises(CorruptValue, match="it is not JSON: "):
        encode(b"{")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": NaN}',
        b"-Infinity",
        b"[" * 5000 + b"]" * 5000,
        b"9" * 5000,
        b"\xff",
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
    ],
)
def test_text_that_other_clients_do_not_read_as_json(text: bytes) -> None:
    with pytest.raises(CorruptValue, match="it is not JSON: "):
        encoder(registered(SchemaType.JSON, "{}"))(text)


NAMED = {"$id": "#n", "type": "string"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"pattern": r"\p{L}"}, b'"a"'),
        ({"patternProperties": {"(": {}}}, b'{"a": 1}'),
        ({"multipleOf": 0.1}, b"1" + b"0" * 400),
        ({"multipleOf": 0.1}, b"1e999"),
        ({"dependencies": {"a": {}, "b": ["c"]}, "items": {"$ref": "#n"}, "not": NAMED}, b"[1]"),
    ],
)
def test_json_that_cannot_be_validated(schema: dict[str, Any], text: bytes) -> None:
    """By the package jsonschema."""
    with pytest.raises(CorruptValue, match=r"\$: the value cannot be validated: ."):
        encoder(registered(SchemaType.JSON, json.dumps(schema)))(text)
