"""avro_types: the columns of Avro types, as Spark's `from_avro` has them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.spark.values.avro_types import AvroType, AvroTypes

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
COLOR = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}


def logical(kind: str, of: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": of, **more}


def types_of(schema: Any) -> tuple[AvroType, AvroTypes]:
    names: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named_schemas=names)
    types = AvroTypes(names)
    return types.of(parsed), types


# Spark 4.3 with spark-avro 4.2.0 has these types for the same schemas.
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("null", pa.null()),
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        (COLOR, pa.string()),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
        (logical("int", "date"), pa.date32()),
        (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
        (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        (logical("long", "local-timestamp-millis"), pa.timestamp("ms")),
        (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
        (logical("long", "time-micros"), pa.time64("us")),
        (logical("int", "time-millis"), pa.int32()),
        (logical("string", "uuid"), pa.string()),
        (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2)),
        (logical("fixed", "decimal", name="D", size=4, precision=5), pa.decimal128(5, 0)),
        ({"type": "array", "items": "long"}, pa.list_(pa.int64())),
        ({"type": "map", "values": POINT}, pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        (["null", "string"], pa.string()),
        (["string"], pa.string()),
        (["null"], pa.null()),
        (["null", "int", "long"], pa.int64()),
        (["double", "float"], pa.float64()),
        (
            ["string", "null", POINT],
            pa.struct([("member0", pa.string()), ("member1", pa.struct([("x", pa.int32())]))]),
        ),
    ],
)
def test_types(schema: Any, expected: pa.DataType) -> None:
    found, _ = types_of(schema)
    assert found.arrow == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {
                "type": "record",
                "name": "Node",
                "fields": [{"name": "next", "type": ["null", "Node"]}],
            },
            "^next: Node contains itself, which no column can",
        ),
        ({"type": "array", "items": "null"}, "an array of items without content"),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "array", "items": {**POINT, "fields": []}},
                    }
                ],
            },
            "^a: an array of items without content",
        ),
        (
            {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
            "an array of items without content",
        ),
        (
            logical("bytes", "decimal", precision=39, scale=2),
            "a decimal of 39 digits; Spark's have at most 38",
        ),
    ],
)
def test_types_without_columns(schema: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        types_of(schema)


def test_a_type_may_occur_twice() -> None:
    fields = [{"name": "a", "type": POINT}, {"name": "b", "type": ["null", "Point"]}]
    found, _ = types_of({"type": "record", "name": "R", "fields": fields})
    point = pa.struct([("x", pa.int32())])
    assert found.arrow == pa.struct([("a", point), ("b", point)])
    assert found.convert is None


def test_a_value_of_a_union_is_in_one_member() -> None:
    size = {"type": "fixed", "name": "Size", "size": 2}
    decimal = logical("bytes", "decimal", precision=4, scale=1)
    other = {**POINT, "name": "Other"}
    numbers = {"type": "map", "values": "int"}
    strings = {"type": "array", "items": "string"}
    branches = ["null", "string", COLOR, "boolean", "long", "double", POINT, other, numbers]
    found, types = types_of([*branches, size, decimal, strings])
    assert types.has_unions_of_records
    assert found.convert is not None
    values = {
        "member0": "BLUE",
        "member1": "RED",
        "member2": True,
        "member3": 7,
        "member4": 1.5,
        "member5": {"x": 1, "__kafkapy_record": "Point"},
        "member6": {"x": 2, "__kafkapy_record": "Other"},
        "member7": {"x": 3},
        "member8": b"ab",
        "member9": Decimal("1.5"),
        "member10": ["a"],
    }
    for member, value in values.items():
        assert found.convert(value) == {member: value}
    assert found.convert(None) is None
    assert found.restore is not None
    names = {
        "member1": "Color",
        "member5": "Point",
        "member6": "Other",
        "member8": "Size",
    }
    for member, value in values.items():
        restored = found.restore({**dict.fromkeys(values), member: value})
        assert restored == ((names[member], value) if member in names else value)
    assert found.restore(None) is None
    assert found.restore(dict.fromkeys(values)) is None


def test_unions_in_other_types() -> None:
    union = ["null", "string", "int"]
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "list", "type": ["null", {"type": "array", "items": union}]},
            {"name": "map", "type": {"type": "map", "values": union}},
            {"name": "n", "type": "int"},
        ],
    }
    found, types = types_of(schema)
    assert not types.has_unions_of_records
    assert found.convert is not None
    value = {"list": ["a", None], "map": {"k": 3}, "n": 4}
    row = {"list": [{"member0": "a"}, None], "map": {"k": {"member1": 3}}, "n": 4}
    assert found.convert(value) == row
    assert found.convert({"list": None, "map": {}, "n": 4}) == {"list": None, "map": {}, "n": 4}
    assert found.restore is not None
    assert found.restore(row) == value
    assert found.restore({"map": {}}) == {"map": {}}  # `list` and `n` have defaults


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        (logical("bytes", "decimal", precision=4, scale=1), "\u00ff", Decimal("-0.1")),
        ({"type": "fixed", "name": "F", "size": 1}, "\u0001", b"\1"),
        (["null", "bytes"], None, None),
        (["bytes", "null"], "a", b"a"),
        ("string", "a", "a"),
        ({"type": "array", "items": "bytes"}, ["a"], [b"a"]),
        ({"type": "map", "values": "bytes"}, {"k": "a"}, {"k": b"a"}),
        (POINT, {"x": 1, "unknown": 2}, {"x": 1, "__kafkapy_record": "Point"}),
        (["null", "bytes"], "of another branch", "of another branch"),
        ("bytes", None, None),
    ],
)
def test_defaults(schema: Any, default: Any, expected: Any) -> None:
    _, types = types_of(schema)
    assert types.default(default, schema) == expected
