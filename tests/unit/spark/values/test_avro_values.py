"""avro_values: Avro of other versions, and bytes that are not Avro."""

from __future__ import annotations

import datetime
import io
import json
import re
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.wire_format import CorruptValue
from kafkapy.spark.values.avro_values import AvroReader, AvroWriter
from tests.harness.tools.known_schemas import KnownSchemas

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def registered(
    schema_id: int, schema: Any, kind: SchemaType = SchemaType.AVRO, **references: Any
) -> RegisteredSchema:
    texts = tuple((name, json.dumps(each)) for name, each in references.items())
    return RegisteredSchema(schema_id, kind, json.dumps(schema), texts)


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, **each} for key, each in fields.items()],
    }


def encoded(schema: Any, value: Any) -> bytes:
    output = io.BytesIO()
    fastavro.schemaless_writer(output, fastavro.parse_schema(schema), value)
    return output.getvalue()


def reader(schema: RegisteredSchema, *others: RegisteredSchema) -> AvroReader:
    return AvroReader(schema, KnownSchemas(*others))  # type: ignore[arg-type]


def test_values_of_an_earlier_version_have_the_columns_of_the_later() -> None:
    earlier = record("Order", id={"type": "int"}, gone={"type": "string"})
    later = record(
        "Order",
        number={"type": "long", "aliases": ["id"]},
        at={"type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 5},
        raw={"type": "bytes", "default": "\u00ff"},
    )
    registry = KnownSchemas(registered(1, earlier))
    read = AvroReader(registered(2, later), registry)  # type: ignore[arg-type]
    payload = encoded(earlier, {"id": 7, "gone": "x"})
    for _ in range(2):
        assert read.read(1, payload) == {"number": 7, "at": 5, "raw": b"\xff"}
    assert registry.requests == 1
    now = encoded(later, {"number": 8, "at": 1_700_000_000_123, "raw": b""})
    assert read.read(2, now) == {"number": 8, "at": 1_700_000_000_123, "raw": b""}


def test_a_record_in_a_union_is_found_by_its_name_in_every_version() -> None:
    """fastavro fails if a union names a record that the other version defines in place."""
    other = {**POINT, "name": "Other"}
    earlier = record("Event", of={"type": [other, POINT]})
    later = record(
        "Event",
        last={"type": ["null", POINT], "default": None},
        of={"type": ["Point", other, {"type": "map", "values": "int"}]},
        first={"type": ["string", "Point"], "default": ""},
    )
    read = reader(registered(2, later), registered(1, earlier))
    point = {"x": 1, "__kafkapy_record": "Point"}
    found = read.read(1, encoded(earlier, {"of": ("Point", {"x": 1})}))
    assert found["of"] == {"member0": point}
    assert found["last"] is None
    assert found["first"] == {"member0": ""}
    found = read.read(2, encoded(later, {"last": {"x": 1}, "of": {"k": 3}, "first": {"x": 1}}))
    assert found["last"] == point
    assert found["of"] == {"member2": {"k": 3}}
    assert found["first"] == {"member1": point}


def test_a_schema_that_is_not_a_record() -> None:
    read = reader(registered(1, ["null", "long"]))
    assert read.arrow_type == pa.int64()
    assert read.read(1, encoded(["null", "long"], 7)) == 7


def test_several_types_of_events_in_a_topic() -> None:
    """The schema is a union of the names of other subjects' records."""
    point, other = {**POINT, "namespace": "a"}, {**POINT, "name": "Other", "namespace": "a"}
    schema = registered(3, ["a.Point", "a.Other"], **{"a.Point": point, "a.Other": other})
    read = reader(schema)
    assert read.arrow_type.names == ["member0", "member1"]
    payload = encoded([point, other], ("a.Other", {"x": 4}))
    assert read.read(3, payload)["member1"]["x"] == 4


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\xff" * 12, b"\x0e\xff", b"\x02\x04\xff\xff"])
def test_bytes_that_are_not_of_the_schema(payload: bytes) -> None:
    schema = record("R", number={"type": "int"}, text={"type": "string"})
    with pytest.raises(CorruptValue, match=r"it is not of the schema 1: ."):
        reader(registered(1, schema)).read(1, payload)


def test_values_of_schemas_that_do_not_fit() -> None:
    schema = record("R", number={"type": "int"})
    node = record("R", number={"type": "int"}, next={"type": ["null", "R"]})
    read = reader(
        registered(1, schema),
        registered(2, record("R", number={"type": "string"})),
        registered(3, {"type": "object"}, SchemaType.JSON),
        registered(4, node),
        registered(5, {"type": "record"}),
    )
    with pytest.raises(CorruptValue, match="it is not of the schema 2: Schema mismatch"):
        read.read(2, encoded("string", "7"))
    with pytest.raises(CorruptValue, match="its schema 3 is not Avro's but JSON's"):
        read.read(3, b"{}")
    with pytest.raises(CorruptValue, match="next: R contains itself"):
        read.read(4, b"\0")
    with pytest.raises(CorruptValue, match="schema 5 is not Avro: "):
        read.read(5, b"\0")


def test_a_schema_that_is_nested_too_deeply() -> None:
    text = '{"type": "array", "items": ' * 5000 + '"int"' + "}" * 5000
    with pytest.raises(ConfigError, match="schema 1: its types are nested too deeply"):
        reader(RegisteredSchema(1, SchemaType.AVRO, text, ()))


def test_old_schemas_with_wrong_defaults_are_read() -> None:
    schema = record("R", a={"type": ["null", "string"], "default": "x"}, b={"type": "int"})
    read = reader(registered(1, schema), registered(2, record("R", b={"type": "int"})))
    assert read.read(2, encoded("int", 7)) == {"a": "x", "b": 7}


@pytest.mark.parametrize(
    "schema", ["unknown", {"type": "record"}, {"type": "enum", "name": "E"}, 7]
)
def test_a_schema_that_is_not_avro(schema: Any) -> None:
    with pytest.raises(ConfigError, match=r"^schema 1 is not Avro: ."):
        reader(registered(1, schema))


def test_rows_are_read_as_they_were_written() -> None:
    schema = record(
        "R",
        id={"type": "long"},
        at={"type": {"type": "long", "logicalType": "timestamp-micros"}},
        of={"type": ["null", "string", POINT]},
        note={"type": ["null", "string"]},
        more={"type": "int", "default": 4},
    )
    writer = AvroWriter(registered(1, schema))
    assert writer.required == {"id", "at"}
    at = datetime.datetime(2026, 11, 29, microsecond=5, tzinfo=datetime.UTC)
    row = {"id": 7, "at": at, "of": {"member0": None, "member1": {"x": 1}}}
    found = reader(registered(1, schema)).read(1, writer.write(row))
    assert found == {
        "id": 7,
        "at": 1_795_910_400_000_005,
        "of": {"member1": {"x": 1, "__kafkapy_record": "Point"}},
        "note": None,
        "more": 4,
        "__kafkapy_record": "R",
    }
    assert AvroWriter(registered(1, ["null", "long"])).write(7) == b"\x02\x0e"


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, "a\u00ff", b"a\xff"),
        (DECIMAL, "\u0001\u0000", Decimal("2.56")),
        ({**DECIMAL, "type": "fixed", "name": "F", "size": 2}, "\u0001\u0000", Decimal("2.56")),
        (["bytes", "null"], "\u00ff", b"\xff"),
        (record("In", b={"type": "bytes"}), {"b": "\u00ff"}, {"b": b"\xff"}),
        (record("In", b={"type": "bytes", "default": "\u00ff"}), {}, {"b": b"\xff"}),
        ([record("In", b={"type": "bytes"}), POINT], {"b": "a"}, {"member0": {"b": b"a"}}),
        ({"type": "array", "items": DECIMAL}, ["\u0001"], [Decimal("0.01")]),
        ({"type": "map", "values": "bytes"}, {"k": "\u00ff"}, {"k": b"\xff"}),
        ({"type": "long", "logicalType": "timestamp-millis"}, 5, 5),
        ({"type": "int", "logicalType": "date"}, 5, 5),
    ],
)
def test_a_field_with_a_default_may_be_left_out(schema: Any, default: Any, expected: Any) -> None:
    document = record("R", f={"type": schema, "default": default}, last={"type": "int"})
    writer = AvroWriter(registered(1, document))
    assert writer.required == {"last"}
    read = reader(registered(1, document))
    found = pa.array([read.read(1, writer.write({"last": 7}))], read.arrow_type)
    whole = pa.array([{"f": expected, "last": 7}], read.arrow_type)
    assert found == whole


def test_rows_that_do_not_fit() -> None:
    writer = AvroWriter(registered(1, record("R", id={"type": "long"}, day={"type": "string"})))
    for row in ({"id": None, "day": ""}, {"id": 1}, {"id": "x", "day": ""}):
        with pytest.raises(CorruptValue, match=r"(on field|default for) (id|day)"):
            writer.write(row)


@pytest.mark.parametrize(
    ("schema", "value", "place"),
    [
        ("boolean", None, "f"),
        ({"type": "array", "items": "boolean"}, [True, None], "f[]"),
        ({"type": "map", "values": "boolean"}, {"k": None}, "f{}"),
        (record("In", b={"type": "boolean"}), {"b": None}, "f.b"),
        (["null", record("In", b={"type": "boolean"})], {"b": None}, "f.b"),
    ],
)
def test_a_null_boolean_is_refused(schema: Any, value: Any, place: str) -> None:
    """fastavro writes false for it."""
    writer = AvroWriter(registered(1, record("R", f={"type": schema})))
    with pytest.raises(CorruptValue, match=f"^{re.escape(place)} is null$"):
        writer.write({"f": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (["null", "boolean"], None),
        (["boolean", "null"], False),
        ({"type": "array", "items": ["null", "boolean"]}, [True, None]),
        (["null", {"type": "array", "items": "boolean"}], None),
        (["null", record("In", b={"type": "boolean"})], None),
    ],
)
def test_a_nullable_boolean_may_be_null(schema: Any, value: Any) -> None:
    schema = registered(1, record("R", f={"type": schema}))
    payload = AvroWriter(schema).write({"f": value})
    assert reader(schema).read(1, payload)["f"] == value
