"""value_json: values with schemas as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.value_json import ValueJson
from kafkapy.schemas.wire_format import CorruptValue

PROTOBUF = """
syntax = "proto3";
package shop;
message Head {}
message Order {
  string order_id = 1; int64 count = 2; optional int32 rest = 3; repeated int32 n = 4;
}
"""


class Registry:
    """The schemas by id; counts the requests."""

    def __init__(self, **schemas: tuple[SchemaType, str]) -> None:
        self._schemas = schemas
        self.requests = 0

    def of_id(self, schema_id: int) -> RegisteredSchema:
        self.requests += 1
        kind, text = self._schemas[f"s{schema_id}"]
        return RegisteredSchema(schema_id, kind, text, ())


def decoder(**schemas: tuple[SchemaType, str]) -> ValueJson:
    return ValueJson(Registry(**schemas))  # type: ignore[arg-type]


def of_avro(schema: Any, payload: bytes) -> bytes:
    return decoder(s1=(SchemaType.AVRO, json.dumps(schema))).decode(1, payload)


ALL_TYPES: dict[str, Any] = {
    "type": "record",
    "name": "All",
    "namespace": "n",
    "fields": [
        {"name": name, "type": kind}
        for name, kind in {
            "null": "null",
            "boolean": "boolean",
            "int": "int",
            "long": {"type": "long", "logicalType": "timestamp-millis"},
            "float": "float",
            "double": "double",
            "bytes": "bytes",
            "string": "string",
            "fixed": {"type": "fixed", "name": "F", "size": 2},
            "enum": {"type": "enum", "name": "E", "symbols": ["P", "Q"]},
            "array": {"type": "array", "items": ["null", "int", "F", "E"]},
            "map": {"type": "map", "values": ["null", {"type": "map", "values": "int"}]},
            "next": ["null", "All"],
        }.items()
    ],
}


def test_avro_as_apache_avro_writes_json() -> None:
    value = {
        "null": None,
        "boolean": True,
        "int": -5,
        "long": 1_700_000_000_123,
        "float": 1.5,
        "double": 2.25,
        "bytes": b"\xff\0",
        "string": "hé",
        "fixed": b"ab",
        "enum": "Q",
        "array": [None, 3, ("n.F", b"\xe9!"), ("n.E", "P")],
        "map": {"k": {"x": 1}, "z": None},
        "next": None,
    }
    value = value | {"next": value}
    parsed = fastavro.parse_schema(ALL_TYPES)
    output, expected = io.BytesIO(), io.StringIO()
    fastavro.schemaless_writer(output, parsed, value)
    fastavro.json_writer(expected, parsed, [value])
    found = of_avro(ALL_TYPES, output.getvalue())
    assert json.loads(found) == json.loads(expected.getvalue())
    assert found.startswith(b'{"null":null,"boolean":true,"int":-5,')
    assert '"string":"hé"'.encode() in found


def test_blocks_with_their_size() -> None:
    assert of_avro({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x02\x06\0") == b"[1,2,3]"


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (ALL_TYPES, b"", "."),
        ("int", b"\xff", "."),
        ("string", b"\x09", "."),
        ("string", b"\x08ab", "."),
        ("string", b"\x02\xff", "utf-8"),
        (["null", "int"], b"\x08", "range"),
        ({"type": "enum", "name": "E", "symbols": ["P"]}, b"\x08", "range"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\x0f", "1,000,000 items"),
    ],
)
def test_bytes_that_are_not_of_the_schema(schema: Any, payload: bytes, reason: str) -> None:
    with pytest.raises(CorruptValue, match=f"it is not of its schema: .*{reason}"):
        of_avro(schema, payload)


def test_a_value_that_is_nested_without_end_is_corrupt() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    assert of_avro(node, b"\x02\0") == b'{"next":{"N":{"next":null}}}'
    with pytest.raises(CorruptValue, match="recursion"):
        of_avro(node, b"\x02" * 100_000 + b"\0")


def test_protobuf_with_the_defaults() -> None:
    values = decoder(s1=(SchemaType.PROTOBUF, PROTOBUF))
    assert values.decode(1, b"\x02\x02\x0a\x01a") == b'{"orderId":"a","count":"0","n":[]}'
    assert values.decode(1, b"\0") == b"{}"
    for payload, reason in (
        (b"\x02\x02\xff", "it is not of its schema: "),
        (b"\x02\x08", r"its schema has no message at \[4\]"),
        (b"", "it ends in the path of its message"),
    ):
        with pytest.raises(CorruptValue, match=reason):
            values.decode(1, payload)


def test_json_is_printed_as_it_is_and_a_schema_is_asked_for_once() -> None:
    registry = Registry(s1=(SchemaType.JSON, "{}"), s2=(SchemaType.AVRO, "odd"))
    values = ValueJson(registry)  # type: ignore[arg-type]
    for _ in range(2):
        assert values.decode(1, b'{"a":  1}') == b'{"a":  1}'
    assert registry.requests == 1
    with pytest.raises(CorruptValue, match="its schema 2 cannot be parsed: "):
        values.decode(2, b"")
