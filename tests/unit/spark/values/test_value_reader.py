"""value_reader: a batch of values to rows, with the corrupt ones apart."""

from __future__ import annotations

import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kafkapy.schemas.registry_client import NotRegistered, RegistryError
from kafkapy.schemas.wire_format import CorruptValue, SchemaId
from kafkapy.spark.values.value_reader import ValueFault, decode

ROW = pa.struct([("n", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
DECODED = pa.struct([("value", ROW)])
KEPT = pa.struct([("value", ROW), ("_corrupt_record", pa.binary())])
GUID = UUID("1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb")
NO_HEADERS: list[bytes | None] = [None] * 9
PLACES = (["orders"] * 9, [3] * 9, list(range(100, 109)))


class Reader:
    """Reads a number of one byte. Its timestamps are milliseconds."""

    arrow_type = pa.struct([("n", pa.int32()), ("at", pa.timestamp("ms", "UTC"))])

    def __init__(self) -> None:
        self.asked: list[SchemaId] = []

    def read(self, schema_id: SchemaId, payload: bytes) -> Any:
        self.asked.append(schema_id)
        if schema_id == 9:
            raise NotRegistered("http://registry", 404, "no schema 9")
        if schema_id == 8:
            raise RegistryError("no registry")
        if not payload:
            raise CorruptValue("it is empty")
        number = payload[0] if payload[0] < 255 else 1 << 40
        return {"n": number, "at": 1 << 62 if payload[0] == 254 else 5}


def value(schema_id: int, *payload: int) -> bytes:
    return bytes((0, 0, 0, 0, schema_id, *payload))


def test_rows_in_sparks_types() -> None:
    found = decode(Reader(), DECODED, [value(1, 7), None], NO_HEADERS[:2], PLACES)
    assert found.type == DECODED
    at = datetime.datetime(1970, 1, 1, microsecond=5000, tzinfo=datetime.UTC)
    assert found.to_pylist() == [{"value": {"n": 7, "at": at}}, {"value": None}]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"", "it does not begin with a zero byte and .* Its first bytes are $"),
        (b"\0\0\0\1", "it does not begin with a zero byte .* Its first bytes are 00 00 00 01$"),
        (b"{}....", "it does not begin with a zero byte"),
        (value(1), "it is empty"),
        (value(9, 1), "no schema 9"),
        (value(1, 255), "not in range|out of|too large"),
        (value(1, 254), "out of bounds timestamp"),
    ],
)
def test_the_first_corrupt_value_is_named_with_its_place(bad: bytes, expected: str) -> None:
    values = [value(1, 1), None, bad, value(1)]
    with pytest.raises(ValueFault, match=expected) as raised:
        decode(Reader(), DECODED, values, NO_HEADERS[: len(values)], PLACES)
    assert str(raised.value).startswith("The value of orders-3 at offset 102 cannot be decoded: ")
    with pytest.raises(ValueFault, match=r"^The key cannot be decoded: "):
        decode(Reader(), pa.struct([("key", ROW)]), values, NO_HEADERS[: len(values)], ())


def test_corrupt_values_are_kept_beside_the_others() -> None:
    values = [value(1, 1), None, b"{}", value(9, 1), value(1, 255), value(1, 2), value(9, 2)]
    reader = Reader()
    found = decode(reader, KEPT, values, NO_HEADERS[: len(values)], PLACES)
    assert found.type == KEPT
    rows = found.field("value").to_pylist()
    assert [row and row["n"] for row in rows] == [1, None, None, None, None, 2, None]
    kept = [None, None, b"{}", value(9, 1), value(1, 255), None, value(9, 2)]
    assert found.field("_corrupt_record").to_pylist() == kept
    assert reader.asked.count(9) == 1  # not a request for each value of a batch


def test_an_unreachable_registry_is_no_corrupt_value() -> None:
    with pytest.raises(RegistryError, match="no registry"):
        decode(Reader(), KEPT, [value(8, 1)], NO_HEADERS[:1], PLACES)


def test_an_empty_batch() -> None:
    assert decode(Reader(), KEPT, [], [], ([], [], [])).type == KEPT


def test_ids_in_headers() -> None:
    values: list[bytes | None] = [b"\7", b"\0\0\0\0\1", None, value(1, 3)]
    headers = [b"\1" + GUID.bytes, value(2), value(2), None]
    reader = Reader()
    found = decode(reader, DECODED, values, headers, PLACES)
    assert [row["value"] and row["value"]["n"] for row in found.to_pylist()] == [7, 0, None, 3]
    assert reader.asked == [GUID, 2, 1]
    with pytest.raises(
        ValueFault, match="the record's header __value_schema_id has no schema's id"
    ):
        decode(Reader(), DECODED, [value(1, 3)], [b"\1\2"], PLACES)
    with pytest.raises(ValueFault, match="the column headers, which may have the id, was not read"):
        decode(Reader(), DECODED, [b"\7"], None, PLACES)
