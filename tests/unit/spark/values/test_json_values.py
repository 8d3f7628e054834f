"""json_values: the properties of JSON schemas as columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.wire_format import CorruptValue
from kafkapy.spark.values.json_values import JsonReader, JsonWriter

INTEGER = {"type": "integer"}


def reader(schema: Any, **references: Any) -> JsonReader:
    texts = tuple((name, json.dumps(each)) for name, each in references.items())
    return JsonReader(RegisteredSchema(1, SchemaType.JSON, json.dumps(schema), texts))


def column(schema: Any, **more: Any) -> pa.DataType:
    """The type of a property with this schema."""
    return (
        reader({"type": "object", "properties": {"a": schema}, **more}).arrow_type.field("a").type
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (INTEGER, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "string", "format": "date-time"}, pa.string()),
        ({"type": ["null", "integer"]}, pa.int64()),
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"oneOf": [{"type": "null"}, INTEGER]}, pa.int64()),
        ({"allOf": [{"$ref": "#/definitions/n"}]}, pa.int64()),
        ({"type": "array", "items": INTEGER}, pa.list_(pa.int64())),
        ({"type": "object", "properties": {"b": INTEGER}}, pa.struct([("b", pa.int64())])),
        ({"properties": {"b": INTEGER}}, pa.struct([("b", pa.int64())])),
        ({"type": "object", "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.int64())),
        ({"$ref": "#/$defs/a~1b%20c"}, pa.int64()),
        ({"$ref": "#/$defs/loop"}, pa.struct([("again", pa.string()), ("n", pa.int64())])),
        # Text: one of several types, or of no known one.
        ({"type": ["string", "integer"]}, pa.string()),
        ({"anyOf": [{"type": "string"}, INTEGER]}, pa.string()),
        ({"type": "object"}, pa.string()),
        ({"type": "array"}, pa.string()),
        ({"$ref": "#/nothing/here"}, pa.string()),
        ({"$ref": "#nothing"}, pa.string()),
        ({"$ref": 7}, pa.string()),
        ({"enum": [1, "a"]}, pa.string()),
        ({}, pa.string()),
        (True, pa.string()),
    ],
)
def test_types(schema: Any, expected: pa.DataType) -> None:
    loop = {"type": "object", "properties": {"again": {"$ref": "#/$defs/loop"}, "n": INTEGER}}
    defs = {"a/b c": INTEGER, "loop": loop}
    assert column(schema, **{"$defs": defs, "definitions": {"n": INTEGER}}) == expected


@pytest.mark.parametrize(
    ("draft", "anchor"),
    [("draft/2020-12", {"$anchor": "A"}), ("draft-07", {"$id": "#A"}), ("draft-04", {"id": "#A"})],
)
def test_a_reference_to_an_anchor(draft: str, anchor: dict[str, str]) -> None:
    """It was taken for the root, so that valid values were corrupt."""
    schema = {
        "$schema": f"https://json-schema.org/{draft}/schema",
        "properties": {"a": {"$ref": "#A"}},
        "definitions": {"n": {**INTEGER, **anchor}},
    }
    assert reader(schema).read(1, b'{"a": 7}') == {"a": 7}


def test_a_schema_of_another_subject() -> None:
    item = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": INTEGER}}
    schema = {"type": "object", "properties": {"a": {"$ref": "item.json"}}}
    read = reader(schema, **{"item.json": item})
    assert read.arrow_type == pa.struct([("a", pa.struct([("n", pa.int64())]))])


def test_values() -> None:
    properties = {
        "id": INTEGER,
        "rate": {"type": "number"},
        "list": {"type": "array", "items": {"properties": {"n": INTEGER}}},
        "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "any": {},
    }
    read = reader({"properties": properties})
    payload = (
        b'{"id": 7.0, "rate": 2, "list": [{"n": 1}, null], "map": {"k": true}, "any": [1], "x": 0}'
    )
    assert read.read(1, payload) == {
        "id": 7,
        "rate": 2.0,
        "list": [{"n": 1}, None],
        "map": {"k": True},
        "any": "[1]",
    }
    assert read.read(1, b'{"any": "text", "list": null}') == {
        **dict.fromkeys(properties),
        "any": "text",
    }
    assert read.read(1, b"null") is None


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "it is not JSON: "),
        (b"{", "it is not JSON: "),
        (b"\xff", "it is not JSON: "),
        (b"[]", "it is of the type array, not object"),
        (b'{"a": {"b": [1, {"n": "x"}]}}', r"its a\.b\.0 is of the type integer, not object"),
        (b'{"a": {"b": [{"n": "x"}]}}', r"its a\.b\.0\.n is of the type string, not integer"),
        (b'{"a": {"b": [{"n": 1.5}]}}', r"its a\.b\.0\.n is of the type number, not integer"),
        (b'{"a": {"b": [{"n": true}]}}', r"its a\.b\.0\.n is of the type boolean, not integer"),
    ],
)
def test_values_that_do_not_fit(payload: bytes, expected: str) -> None:
    items = {"type": "array", "items": {"properties": {"n": INTEGER}}}
    read = reader({"properties": {"a": {"type": "object", "additionalProperties": items}}})
    with pytest.raises(CorruptValue, match=f"^{expected}"):
        read.read(1, payload)


def test_a_schema_that_is_not_json() -> None:
    with pytest.raises(ConfigError, match="schema 1 is not JSON: "):
        JsonReader(RegisteredSchema(1, SchemaType.JSON, "{", ()))


@pytest.mark.parametrize(
    ("schema", "expected", "payload", "value"),
    [
        (INTEGER, pa.int64(), b"7", 7),
        ({"type": "string"}, pa.string(), b'"a"', "a"),
        ({"type": "array", "items": INTEGER}, pa.list_(pa.int64()), b"[7]", [7]),
        (True, pa.string(), b'{"a":7}', '{"a":7}'),
    ],
)
def test_a_schema_without_properties(
    schema: Any, expected: pa.DataType, payload: bytes, value: Any
) -> None:
    read = reader(schema)
    assert read.arrow_type == expected
    assert read.read(1, payload) == value
    assert read.read(1, b"null") is None
    writer = JsonWriter(RegisteredSchema(1, SchemaType.JSON, json.dumps(schema), ()))
    assert writer.required == frozenset()
    assert writer.write(value) == payload


def test_rows_are_written_without_their_nulls() -> None:
    schema = {
        "required": ["id"],
        "properties": {
            "id": INTEGER,
            "list": {"type": "array", "items": {"properties": {"n": INTEGER, "m": INTEGER}}},
            "map": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
            "any": {},
            "text": {},
            "number": {},
        },
    }
    text = json.dumps(schema)
    writer = JsonWriter(RegisteredSchema(1, SchemaType.JSON, text, ()))
    assert writer.required == {"id"}
    row = {
        "id": 7,
        "list": [{"n": 1, "m": None}, None],
        "map": {"k": 3, "z": None},
        "any": '{"a": [1]}',
        "text": "{",
        "number": "5",
        "odd": None,
    }
    assert json.loads(writer.write(row)) == {
        "id": 7,
        "list": [{"n": 1}, None],
        "map": {"k": 3, "z": None},
        "any": {"a": [1]},
        "text": "{",
        "number": "5",
    }
    with pytest.raises(CorruptValue, match="id is null"):
        writer.write({"id": None})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["null", "integer"]},
        {"oneOf": [INTEGER, {"type": "null"}]},
        {"$ref": "#/properties/n"},
        {"enum": ["a", None]},
        {"description": "anything"},
        {},
        True,
    ],
)
def test_a_required_property_that_may_be_null(schema: Any) -> None:
    properties = {"id": schema, "n": {"type": ["null", "integer"]}}
    write = writer({"required": ["id"], "properties": properties})
    assert write.write({"id": None}) == b'{"id":null}'


def writer(schema: Any) -> JsonWriter:
    return JsonWriter(RegisteredSchema(1, SchemaType.JSON, json.dumps(schema), ()))


NODE = {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}


@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        ({"type": ["integer", "boolean"]}, {"12": "12", "true": "true", "7.0": "7.0"}),
        ({"type": ["integer", "boolean"]}, {"1.5": None, "a": None, '"a"': None, "[1]": None}),
        ({"type": ["integer", "boolean", "null"]}, {"null": "null"}),
        ({"type": ["integer", "boolean"]}, {"null": None}),
        ({"type": ["number", "string"]}, {"[1]": '"[1]"', "12": '"12"', "a": '"a"'}),
        ({"type": ["array", "string"]}, {"[1]": "[1]", '{"b":1}': r'"{\"b\":1}"'}),
        ({"type": ["object", "integer"]}, {'{"b": 1.10}': '{"b": 1.10}', "12": "12", "[1]": None}),
        ({"type": "array"}, {"[1]": "[1]", "12": None, "a": None}),
        ({"type": "object"}, {"{}": "{}", "[1]": None}),
        ({"enum": [1, 2]}, {"1": "1", "3": None, "true": None, "a": None}),
        ({"enum": [1, "a"]}, {"1": "1", "a": '"a"', "b": None}),
        ({"const": True}, {"true": "true", "1": None}),
        ({"anyOf": [{"const": "auto"}, INTEGER]}, {"auto": '"auto"', "12": "12", "a": None}),
        ({"oneOf": [{"$ref": "#/definitions/n"}, {"type": "array"}]}, {"12": "12", "a": None}),
        ({"allOf": [{"type": ["integer", "string"]}, {"enum": [1, True]}]}, {"1": "1", "a": None}),
        ({"type": ["integer", "string"], "enum": [1]}, {"1": "1", "a": None}),
        ({"$ref": "#/definitions/loop"}, {"12": '"12"'}),
        ({"$ref": "#/nothing/here"}, {"12": '"12"', "[1]": "[1]"}),
        ({"type": "any"}, {"12": '"12"', "[1]": "[1]"}),
    ],
)
def test_text_is_written_as_what_the_schema_allows(
    schema: Any, texts: dict[str, str | None]
) -> None:
    """Numbers and booleans became strings, which consumers refused, and strings became arrays."""
    loop = {"anyOf": [{"$ref": "#/definitions/loop"}, {"type": "string"}]}
    root = {"properties": {"a": schema}, "definitions": {"n": INTEGER, "loop": loop}}
    write = writer(root)
    assert write.arrow_type.field("a").type == pa.string()
    for text, expected in texts.items():
        if expected is not None:
            assert write.write({"a": text}) == f'{{"a":{expected}}}'.encode()
            continue
        with pytest.raises(CorruptValue, match=r"^its a is not allowed by the schema$"):
            write.write({"a": text})


def test_a_part_that_contains_itself_is_written_as_json() -> None:
    write = writer({"properties": {"a": NODE}, "definitions": {"node": NODE}})
    row = {"a": {"next": {"next": '{"next": {}}'}}}
    assert write.write(row) == b'{"a":{"next":{"next":{"next": {}}}}}'
    with pytest.raises(CorruptValue, match=r"^its a\.next\.next is not allowed by the schema$"):
        write.write({"a": {"next": {"next": "text"}}})


NESTED = {
    "properties": {"b": {"type": ["integer", "null"]}, "c": {"type": "string"}},
    "required": ["b", "c"],
}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (NESTED, "c"),
        ({"$ref": "#/definitions/nested"}, "c"),
        ({"allOf": [{"properties": NESTED["properties"]}], "required": ["b", "c"]}, "c"),
        ({"properties": {"n": {"$ref": "#/definitions/nested"}}}, "n.c"),
        ({"properties": {"n": {"type": "array", "items": NESTED}}}, "n.0.c"),
        ({"properties": {"n": {"type": "object", "additionalProperties": NESTED}}}, "n.k.c"),
    ],
)
def test_required_properties_anywhere(schema: dict[str, Any], place: str) -> None:
    """Only those of the root were found, without a $ref: a consumer got objects without them."""

    def row(**nested: Any) -> Any:
        found: Any = nested
        for step in reversed(place.split(".")[:-1]):
            found = [found] if step == "0" else {step: found}
        return found

    write = writer({**schema, "definitions": {"nested": NESTED}})
    assert write.required == (frozenset("bc") if place == "c" else frozenset())
    assert json.loads(write.write(row(b=None, c="x"))) == row(b=None, c="x")
    with pytest.raises(CorruptValue, match=f"^its {place} is null$"):
        write.write(row(b=None, c=None))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": INTEGER}, [1, None]),
        ({"type": "object", "additionalProperties": INTEGER}, {"1": None}),
    ],
)
def test_a_null_that_an_array_or_a_map_may_not_have(schema: Any, value: Any) -> None:
    with pytest.raises(CorruptValue, match=r"^its a\.1 is null$"):
        writer({"properties": {"a": schema}}).write({"a": value})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have(number: float) -> None:
    """orjson writes null for them."""
    properties = {
        "rate": {"type": "number"},
        "in": {"properties": {"list": {"type": "array", "items": {"type": "number"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
    }
    text = json.dumps({"required": ["rate"], "properties": properties})
    writer = JsonWriter(RegisteredSchema(1, SchemaType.JSON, text, ()))
    for row, place in (
        ({"rate": number}, "rate"),
        ({"rate": 1.0, "in": {"list": [0.5, number]}}, r"in\.list\.1"),
        ({"rate": 1.0, "map": {"k": number}}, r"map\.k"),
    ):
        with pytest.raises(CorruptValue, match=f"^its {place} is {number}, which JSON does not"):
            writer.write(row)
    scalar = JsonWriter(RegisteredSchema(1, SchemaType.JSON, '{"type": "number"}', ()))
    with pytest.raises(CorruptValue, match=f"^it is {number}, which JSON does not"):
        scalar.write(number)


@pytest.mark.parametrize(
    "number", ["1.10", "12345678901234567890123", "0.1234567890123456789", "1e5", "-0.0", "7"]
)
def test_text_keeps_the_digits_of_numbers(number: str) -> None:
    """orjson reads them as 64 bits, so that others came out: 1.1, 1.2345678901234568e22."""
    properties = {
        "any": {},
        "id": INTEGER,
        "rate": {"type": "number"},
        "list": {"type": "array", "items": INTEGER},
    }
    schema = RegisteredSchema(1, SchemaType.JSON, json.dumps({"properties": properties}), ())
    typed = b'"id":9007199254740993,"rate":2.50,"list":[1,null,2.0]'
    row = {"id": 9007199254740993, "rate": 2.5, "list": [1, None, 2]}
    nested = f'{{"a":[{number},"x"],"b":{number}}}'
    assert JsonReader(schema).read(1, b'{"any":%b,%b}' % (number.encode(), typed)) == {
        "any": number,
        **row,
    }
    payload = b'{"any":%b,%b}' % (nested.encode(), typed)
    assert JsonReader(schema).read(1, payload) == {"any": nested, **row}
    assert JsonWriter(schema).write({"any": nested}) == f'{{"any":{nested}}}'.encode()


def test_a_wrong_type_beside_text_with_numbers() -> None:
    read = reader({"properties": {"any": {}, "id": INTEGER, "n": INTEGER}})
    with pytest.raises(CorruptValue, match=r"^its id is of the type number, not integer"):
        read.read(1, b'{"any": 1.10, "id": 1.5}')


@pytest.mark.parametrize("depth", [300, 900])
@pytest.mark.parametrize("number", [b"1", b"1.10"])
def test_text_that_is_nested_too_deeply_is_corrupt(depth: int, number: bytes) -> None:
    """orjson writes 254 levels, and reads 1024."""
    payload = b'{"any":%b%b%b}' % (b"[" * depth, number, b"]" * depth)
    with pytest.raises(CorruptValue, match="nested too deeply"):
        reader({"properties": {"any": {}}}).read(1, payload)
