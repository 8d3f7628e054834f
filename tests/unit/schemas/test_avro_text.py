"""The text of Avro schemas: the one of Avro's Java library, and the normalized one."""

from __future__ import annotations

import json

import pytest

from kafkapy.schemas.avro_schema import parse_avro_schema
from tests.unit.schemas.avro_sources import A, record


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


# What Avro 1.12.1 for Java writes for schemas.
JAVA: list[tuple[object, str]] = [
    (record("é1"), '{"type":"record","name":"é1","fields":[]}'),
    (record("x.y.Z"), '{"type":"record","name":"Z","namespace":"x.y","fields":[]}'),
    (record(namespace=7, doc=1), '{"type":"record","name":"R","fields":[]}'),
    (
        record("n.R", {"name": "x", "type": "R"}, {"name": "y", "type": "n.R"}),
        '{"type":"record","name":"R","namespace":"n","fields":'
        '[{"name":"x","type":"R"},{"name":"y","type":"R"}]}',
    ),
    (
        record("x.A", {"name": "c", "type": record("B", namespace="")}, {"name": "d", "type": "B"}),
        '{"type":"record","name":"A","namespace":"x","fields":[{"name":"c","type":'
        '{"type":"record","name":"B","namespace":"","fields":[]}},{"name":"d","type":"B"}]}',
    ),
    (
        record("x.int", {"name": "a", "type": ["null", "x.int"]}, aliases=["B", "x.C", "y.D", "B"]),
        '{"type":"record","name":"int","namespace":"x","fields":'
        '[{"name":"a","type":["null","x.int"]}],"aliases":["B","C","y.D"]}',
    ),
    (
        record("shop.O", {"name": "s", "type": {"type": "enum", "name": "S", "symbols": ["N"]}}),
        '{"type":"record","name":"O","namespace":"shop","fields":'
        '[{"name":"s","type":{"type":"enum","name":"S","symbols":["N"]}}]}',
    ),
    (
        record(
            "R", A | {"order": "ascending", "aliases": []}, {**A, "name": "b", "order": "IGNORE"}
        ),
        '{"type":"record","name":"R","fields":'
        '[{"name":"a","type":"int"},{"name":"b","type":"int","order":"ignore"}]}',
    ),
    (
        {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "scale": 0, "doc": "d"},
        '{"type":"fixed","name":"D","doc":"d","size":2,"logicalType":"decimal","scale":0}',
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        '{"type":"bytes","logicalType":"decimal","precision":4}',
    ),
    (
        {"type": "enum", "name": "E", "symbols": [], "default": 1, "order": "q"},
        '{"type":"enum","name":"E","symbols":[],"order":"q"}',
    ),
    ({"type": "map", "values": "int", "fields": 1}, '{"type":"map","values":"int"}'),
    ({"type": "error", "name": "E", "fields": []}, '{"type":"error","name":"E","fields":[]}'),
    (
        record("R", {"name": "a", "type": "double", "default": "1e5"}, p={"z": 1, "a": None}),
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":100000.0}],'
        '"p":{"z":1,"a":null}}',
    ),
    (
        {"type": "int", "é": 2e-3, "b": -0.0, "c": 1e7, "d": 9999999.0, "e": 0.00099, "f": 1e22},
        '{"type":"int","é":0.002,"b":-0.0,"c":1.0E7,"d":9999999.0,"e":9.9E-4,"f":1.0E22}',
    ),
    (
        {
            "type": "int",
            "a": -1.5e-10,
            "b": 100000000000000000000000.5,
            "c": "\u001f\n\\u001f\u007f",
        },
        '{"type":"int","a":-1.5E-10,"b":1.0000000000000001E23,"c":"\\u001F\\n\\\\u001f\x7f"}',
    ),
]


@pytest.mark.parametrize(("given", "text"), JAVA)
def test_the_text_is_that_of_java(given: object, text: str) -> None:
    assert text_of(given) == text
    assert parse_avro_schema(text, {}).text == text


def test_the_normalized_text() -> None:
    """As Confluent's: properties and aliases are sorted, after logicalType."""
    text = (
        '{"type":"record","name":"R","doc":"","fields":[{"name":"a","type":["double","null"],'
        '"default":1,"x":{"b":1,"a":2},"aliases":["z","y"]},{"name":"b","type":{"type":"bytes",'
        '"zip":0,"scale":2,"a":0,"precision":4,"logicalType":"decimal"}}],'
        '"z":1,"b":2,"aliases":["S","P"]}'
    )
    normalized = (
        '{"type":"record","name":"R","fields":[{"name":"a","type":["double","null"],'
        '"default":1.0,"aliases":["y","z"],"x":{"a":2,"b":1}},{"name":"b","type":{"type":"bytes",'
        '"logicalType":"decimal","precision":4,"scale":2,"a":0,"zip":0}}],'
        '"b":2,"z":1,"aliases":["P","S"]}'
    )
    assert parse_avro_schema(text, {}).normalized == normalized
    again = parse_avro_schema(normalized, {})
    assert again.text == again.normalized == normalized
