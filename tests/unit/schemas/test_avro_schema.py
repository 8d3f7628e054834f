"""Avro schemas: schema resolution, and types from references."""

from __future__ import annotations

import json

import pytest

from kafkapy.schemas.avro_schema import parse_avro_schema
from kafkapy.schemas.parsed_schema import TOO_MANY_COMPARISONS, InvalidSchema
from tests.unit.schemas.avro_sources import A, record


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


@pytest.mark.parametrize(
    ("reader", "writer", "is_compatible"),
    [
        (record("New", namespace="shop", aliases=["Old"]), record("shop.Old"), True),
        (record("New", namespace="shop", aliases=["Old"]), record("Old"), False),
        (record("New", namespace="shop", aliases=["b.Old"]), record("b.Old"), True),
        (["null", record("shop.New", aliases=["Old"])], record("shop.Old"), True),
        (record("a.R"), record("b.R"), True),
        (record("R", A), {"type": "error", "name": "R", "fields": [A]}, True),
        (record("R", A | {"aliases": ["b"]}), record("R", A, {"name": "b", "type": "int"}), False),
        (record("R", A | {"aliases": ["b"]}), record("R", {"name": "b", "type": "int"}), True),
        (record("R", A | {"default": None}), record("R"), True),
        (
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            True,
        ),
        (
            record("R", {"name": "r", "type": ["null", "R"]}, A),
            record("R", {"name": "r", "type": ["null", "R"]}),
            False,
        ),
    ],
)
def test_resolution_as_in_java(reader: object, writer: object, is_compatible: bool) -> None:
    new, old = (parse_avro_schema(json.dumps(each), {}) for each in (reader, writer))
    assert (new.incompatibilities(old) == []) is is_compatible


def test_places_of_reasons() -> None:
    inner = record("I", A)
    old = record("R", {"name": "x", "type": {"type": "array", "items": inner}}, A)
    new = record(
        "R",
        {"name": "x", "type": {"type": "array", "items": record("I", A | {"type": "string"})}},
        {"name": "m", "type": {"type": "map", "values": "I"}},
    )
    reader, writer = (parse_avro_schema(json.dumps(each), {}) for each in (new, old))
    assert reader.incompatibilities(writer) == [
        "reader_field_missing_default_value at /fields/1: m",
        "type_mismatch at /fields/0/type/items/fields/0/type: reader type: string not compatible"
        " with writer type: int",
    ]


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


def test_the_text_with_the_types_of_references() -> None:
    order = '{"type":"record","name":"O","fields":[{"name":"s","type":"x.S"}]}'
    status = '{"type":"enum","name":"S","namespace":"x","symbols":["N"]}'
    found = parse_avro_schema(order, {"x.S": status})
    assert found.text == order
    assert found.formatted("resolved") == order.replace('"x.S"', status)
    assert parse_avro_schema(found.formatted("resolved"), {}).document == json.loads(
        found.formatted("resolved")
        .replace('"S","namespace":"x"', '"x.S"')
        .replace('"O"', '"O","namespace":""')
    )
