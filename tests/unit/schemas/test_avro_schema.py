"""Avro schemas: their stored text, their types from references, and schema resolution."""

from __future__ import annotations

import json

import pytest

from kafkapy.schemas.avro_schema import parse_avro_schema
from kafkapy.schemas.parsed_schema import TOO_MANY_COMPARISONS, InvalidSchema


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


def test_a_comparison_gives_up() -> None:
    """A union of 50 records, each with a union of 50, would take minutes; other requests wait."""

    def union(prefix: str, inner: int) -> list[object]:
        fields = [{"name": "f", "type": union(f"{prefix}_", 0)}] if inner else []
        return [
            json.loads(json.dumps({"type": "record", "name": f"{prefix}{n}", "fields": fields})
                       .replace(f'"{prefix}_', f'"{prefix}{n}_'))
            for n in range(50)
        ]  # fmt: skip

    large = parse_avro_schema(json.dumps(union("R", 1)), {})
    assert large.incompatibilities(large) == [TOO_MANY_COMPARISONS]


def test_a_type_of_a_reference() -> None:
    currency = '{"type":"enum","name":"Currency","namespace":"money","symbols":["EUR"]}'
    text = '{"type":"array","items":"money.Currency"}'
    assert parse_avro_schema(text, {"money.Currency": currency}).text == text
    with pytest.raises(InvalidSchema):
        parse_avro_schema(text, {})
