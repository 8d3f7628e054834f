"""Avro schemas: their stored text, their types from references, and schema resolution."""

from __future__ import annotations

import json

import pytest

from kafkapy.schemas.avro_schema import parse_avro_schema
from kafkapy.schemas.parsed_schema import InvalidSchema


def text_of(schema: object) -> str:
    return parse_avro_schema(json.dumps(schema), {}).text


def test_the_text_has_the_order_of_java() -> None:
    given = {
        "fields": [{"default": 3, "doc": "d", "type": {"type": "int"}, "name": "a", "unit": "mm"}],
        "doc": "a doc",
        "namespace": "org.x",
        "aliases": ["S"],
        "owner": "me",
        "name": "R",
        "type": "record",
    }
    assert text_of(given) == (
        '{"type":"record","name":"R","namespace":"org.x","doc":"a doc","fields":'
        '[{"name":"a","type":"int","doc":"d","default":3,"unit":"mm"}],'
        '"owner":"me","aliases":["S"]}'
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("string", '"string"'),
        ({"type": "string"}, '"string"'),
        ([{"type": "null"}, "int"], '["null","int"]'),
        ({"type": "array", "items": {"type": "long"}}, '{"type":"array","items":"long"}'),
        ({"values": "int", "type": "map"}, '{"type":"map","values":"int"}'),
        (
            {"logicalType": "timestamp-millis", "type": "long"},
            '{"type":"long","logicalType":"timestamp-millis"}',
        ),
    ],
)
def test_texts(given: object, text: str) -> None:
    assert text_of(given) == text
    assert parse_avro_schema(text, {}).text == text


def test_a_bare_name_is_a_primitive_type() -> None:
    assert parse_avro_schema("string", {}).text == '"string"'


@pytest.mark.parametrize(
    "bad",
    [
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
    ("reader", "writer", "reason"),
    [
        ("long", "int", None),
        ("int", "long", "type_mismatch at /: reader type: int not compatible with writer type"),
        ("string", "bytes", None),
        (["null", "int"], "int", None),
        ("int", ["null", "int"], "type_mismatch"),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            "missing_enum_symbols at /symbols",
        ),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 5},
            "fixed_size_mismatch",
        ),
        (
            {"type": "record", "name": "R", "fields": []},
            {"type": "record", "name": "S", "fields": []},
            "name_mismatch",
        ),
    ],
)
def test_resolution(reader: object, writer: object, reason: str | None) -> None:
    new, old = (parse_avro_schema(json.dumps(each), {}) for each in (reader, writer))
    found = new.incompatibilities(old)
    assert (reason in found[0]) if reason else not found


def test_a_comparison_ends_in_seconds() -> None:
    """A union of 3,000 types would take minutes, and other requests would wait."""
    records = [{"type": "record", "name": f"R{number}", "fields": []} for number in range(600)]
    assert parse_avro_schema(json.dumps(records[:400]), {})
    fields = [{"name": "a", "type": records[:400]}, {"name": "b", "type": ["R0", *records[400:]]}]
    assert parse_avro_schema(json.dumps({"type": "record", "name": "R", "fields": fields}), {})
    with pytest.raises(InvalidSchema, match="too many types"):
        parse_avro_schema(json.dumps({"type": "map", "values": records}), {})


def test_a_type_of_a_reference() -> None:
    currency = '{"type":"enum","name":"Currency","namespace":"money","symbols":["EUR"]}'
    text = '{"type":"array","items":"money.Currency"}'
    assert parse_avro_schema(text, {"money.Currency": currency}).text == text
    with pytest.raises(InvalidSchema):
        parse_avro_schema(text, {})
