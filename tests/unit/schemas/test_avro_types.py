"""Avro schemas that Avro's Java library refuses, and defaults of fields."""

from __future__ import annotations

import json
import re

import pytest

from kafkapy.schemas.avro_schema import parse_avro_schema
from kafkapy.schemas.parsed_schema import InvalidSchema
from tests.unit.schemas.avro_sources import A, record


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (record("1a"), "'1a' is not a name"),
        (record("a-b"), "'a-b' is not a name"),
        (record(""), "'' is not a name"),
        (record("x-y.B"), "'x-y' is not a name"),
        (record(namespace="x..y"), "'' is not a name"),
        (record("int"), "A type may not have the name of a primitive type: int"),
        (record(aliases=["a-b"]), "'a-b' is not a name"),
        (record(aliases=[["x"]]), '"aliases" that are not a list of names'),
        (record("R", A | {"aliases": [["x"]]}), '"aliases" that are not a list of names'),
        (record("R", A | {"name": "a.b"}), "'a.b' is not a name"),
        (record("R", A, A), "Two fields of R are a"),
        (record("R", A | {"order": "up"}), "The field R.a has an order that is none of"),
        (record("R", {"name": "a"}), "The field R.a has no type"),
        (record("R", {"name": "a", "type": "double", "default": "x"}), "R.a has a default that is"),
        (record("R", A, u=2**63), "The property u is not in the range of a long"),
        ([record("x.B"), "x.B"], "Two types of a union are x.B"),
        ([["int"], "null"], "A union directly contains a union"),
        ([record("x.B"), record("x.B")], "The type x.B is defined twice"),
        ({"type": "enum", "name": "E", "symbols": "abc"}, "The enum E has no list of symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "Two symbols of E are A"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "none of its symbols"),
        ({"type": "fixed", "name": "E", "size": True}, "The fixed E has no size from 0 to"),
        ({"type": "fixed", "name": "E", "size": 10**400}, "The fixed E has no size from 0 to"),
        ({"type": {"type": "string"}}, 'has no "type" that is a name'),
        ({"type": "array"}, 'has no "items"'),
        ("x.A", "The type x.A is not defined"),
    ],
)
def test_what_java_refuses(given: object, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=re.escape(reason)):
        parse_avro_schema(json.dumps(given), {})


@pytest.mark.parametrize(
    "bad",
    [
        "string",
        '{"type":"int","a":NaN}',
        '{"type":"int","a":1E400}',
        '{"type":"int","a":"\\ud800"}',
        "[" * 100_000,
        '["int"' + ',["int"' * 900 + "]" * 901,
        "{",
        "{}",
        '{"type":"x"}',
        '["int","int"]',
        '{"type":"record","name":"R"}',
        "7",
        "null",
    ],
)
def test_bad_schemas(bad: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro_schema(bad, {})


@pytest.mark.parametrize(
    ("kind", "valid", "invalid"),
    [
        ("null", None, 0),
        ("boolean", False, 0),
        ("int", 2**31 - 1, 2**31),
        ("long", -(2**63), True),
        ("float", 1, None),
        ("string", "a", 1),
        ({"type": "array", "items": "int"}, [1], ["a"]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": "b"}),
        (["null", "int"], 1, "a"),
        (record("I", A), {"a": 1}, {}),
        (record("I", A | {"default": 1}), {}, []),
    ],
)
def test_only_a_valid_default_can_be_normalized(
    kind: object, valid: object, invalid: object
) -> None:
    """Without normalization, Confluent accepts others too."""
    field = {"name": "f", "type": kind}
    assert parse_avro_schema(json.dumps(record("R", field | {"default": valid})), {}).normalized
    schema = parse_avro_schema(json.dumps(record("R", field | {"default": invalid})), {})
    with pytest.raises(InvalidSchema, match=r"The default of R\.f is not of its type"):
        assert schema.normalized
