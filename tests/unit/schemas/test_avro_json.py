"""avro_json: Avro values as JSON, and back."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from kafkapy.schemas.avro_json import from_avro, to_avro
from kafkapy.schemas.avro_schema import parse_avro_schema
from kafkapy.schemas.wire_format import CorruptValue


def read(schema: Any, payload: bytes) -> Any:
    return from_avro(parse_avro_schema(json.dumps(schema), {}).root, payload)


def write(schema: Any, value: Any) -> bytes:
    return to_avro(parse_avro_schema(json.dumps(schema), {}).root, value)


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
    found = read(ALL_TYPES, output.getvalue())
    assert found == json.loads(expected.getvalue())
    assert write(ALL_TYPES, found) == output.getvalue()


def test_blocks_with_their_size() -> None:
    assert read({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x02\x06\0") == [1, 2, 3]


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (ALL_TYPES, b"", "."),
        ("int", b"\xff", "."),
        ("string", b"\x09", "."),
        ("string", b"\x08ab", "."),
        ("string", b"\x02\xff", "utf-8"),
        (["null", "int"], b"\x08", "range"),
        (["null", "int"], b"\x01", "-1 is negative"),
        ({"type": "enum", "name": "E", "symbols": ["P"]}, b"\x08", "range"),
        ({"type": "enum", "name": "E", "symbols": ["P"]}, b"\x01", "-1 is negative"),
    ],
)
def test_bytes_that_are_not_of_the_schema(schema: Any, payload: bytes, reason: str) -> None:
    with pytest.raises(CorruptValue, match=f"it is not of its schema: .*{reason}"):
        read(schema, payload)


def array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def record_of(name: str, *kinds: Any) -> dict[str, Any]:
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)]
    return {"type": "record", "name": name, "fields": fields}


def doubled(levels: int) -> dict[str, Any]:
    """A record that has 2^levels empty records."""
    found = record_of("R0")
    for n in range(1, levels + 1):
        found = record_of(f"R{n}", found, f"R{n - 1}")
    return found


MILLION = b"\x80\x89\x7a"  # the number of items of a block


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (array_of("null"), b"\xfe\xff\xff\xff\xff\xff\x0f"),
        (array_of(array_of("null")), b"\x14" + (MILLION + b"\0") * 10 + b"\0"),
        (array_of(record_of("N", *["null"] * 1000)), MILLION + b"\0"),
        (array_of({"type": "fixed", "name": "F", "size": 0}), MILLION * 9 + b"\0"),
        (doubled(30), b""),
    ],
)
def test_values_without_bytes_have_a_limit(schema: Any, payload: bytes) -> None:
    with pytest.raises(CorruptValue, match="it has too many values for its size"):
        read(schema, payload)


def test_the_limit_grows_with_the_size() -> None:
    """Each item is four values: two records, a union and its branch."""
    single = record_of("A", record_of("B", ["null", "boolean"]))
    payload = b"\xc0\xcf\x24" + b"\0" * 300_000 + b"\0"
    assert read(array_of(single), payload) == [{"f0": {"f0": None}}] * 300_000


def test_a_value_that_is_nested_without_end_is_corrupt() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    assert read(node, b"\x02\0") == {"next": {"N": {"next": None}}}
    with pytest.raises(CorruptValue, match="recursion"):
        read(node, b"\x02" * 100_000 + b"\0")


def test_fields_with_defaults_may_be_left_out() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "kind", "type": ["string", "null"], "default": "x"},
            {"name": "by", "type": {"type": "map", "values": "int"}, "default": {}},
            {"name": "rate", "type": "double", "default": 2},
        ],
    }
    expected = {"note": None, "kind": {"string": "x"}, "by": {}, "rate": 2.0}
    assert read(schema, write(schema, {})) == expected
    found = read(schema, write(schema, {"note": "a", "kind": None}))  # without the type's name
    assert found == expected | {"note": {"string": "a"}, "kind": None}


RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long", "default": 0},
        {"name": "n", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "u", "type": ["null", "int", "string"], "default": None},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}, "default": "ab"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["P"]}, "default": "P"},
        {"name": "x", "type": "float", "default": 0},
        {"name": "y", "type": "double", "default": 0},
        {"name": "s", "type": "string", "default": ""},
        {"name": "m", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], "the value is not of the type record"),
        ({"odd": 1}, "the value has no field odd"),
        ({"id": 1.5}, r"the value\.id is not of the type long"),
        ({"id": True}, r"the value\.id is not of the type long"),
        ({"id": 1 << 63}, r"the value\.id is out of the range of the type long"),
        ({"n": [1, "x"]}, r"the value\.n\.1 is not of the type int"),
        ({"n": [1 << 31]}, r"the value\.n\.0 is out of the range of the type int"),
        ({"u": 5}, r"the value\.u is not {TYPE: VALUE} with one of the types null, int, string"),
        ({"u": {"long": 5}}, r"the value\.u is not {TYPE: VALUE} with one of the types"),
        ({"f": "abc"}, r"the value\.f has 3 bytes instead of 2"),
        ({"f": "\u0100b"}, r"the value\.f has a character beyond "),
        ({"e": "Q"}, r"the value\.e is none of P"),
        ({"x": 1e39}, r"the value\.x is out of the range of the type float"),
        ({"x": 10**400}, r"the value\.x is out of the range of the type float"),
        ({"y": 10**400}, r"the value\.y is out of the range of the type double"),
        ({"y": float("inf")}, r"the value\.y is out of the range of the type double"),
        ({"y": "1"}, r"the value\.y is not of the type double"),
        ({"s": "\ud800"}, r"the value\.s has half of a surrogate pair"),
        ({"m": {"\ud800": 1}}, r"a key of the value\.m has half of a surrogate pair"),
    ],
)
def test_json_that_is_not_of_the_schema(value: Any, expected: str) -> None:
    with pytest.raises(CorruptValue, match=f"^{expected}"):
        write(RECORD, value)


def test_json_that_is_nested_too_deeply() -> None:
    node = record_of("N", ["null", "N"])
    value: Any = {"f0": None}
    for _ in range(1000):
        value = {"f0": {"N": value}}
    with pytest.raises(CorruptValue, match="the value is nested too deeply"):
        write(node, value)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_numbers_that_json_does_not_have_are_text(kind: str, name: str) -> None:
    """As in Avro's Java library."""
    assert read(kind, write(kind, name)) == name


def test_a_missing_field() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    with pytest.raises(CorruptValue, match=r"the value\.id is missing"):
        write(schema, {})
