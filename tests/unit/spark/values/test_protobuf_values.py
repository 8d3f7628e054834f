"""protobuf_values: messages as rows."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.protobuf_schema import parse_protobuf_schema
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema
from kafkapy.schemas.wire_format import CorruptValue
from kafkapy.spark.values.protobuf_values import ProtobufReader, ProtobufWriter
from tests.harness.tools.known_schemas import KnownSchemas

SOURCE = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Item { string sku = 1; }
message Order {
  message Part { repeated Part parts = 1; string name = 2; }
  enum State { NEW = 0; PAID = 1; }
  string id = 1;
  uint32 small = 2;
  uint64 large = 3;
  optional int32 count = 4;
  bytes raw = 5;
  float rate = 6;
  bool done = 7;
  State state = 8;
  Item item = 9;
  repeated Item items = 10;
  repeated State states = 11;
  map<string, Item> by_name = 12;
  map<int32, State> by_number = 13;
  oneof paid { string card = 14; Item gift = 15; }
  google.protobuf.Timestamp at = 16;
  google.protobuf.Duration took = 17;
  google.protobuf.Int64Value wrapped = 18;
  google.protobuf.Struct more = 19;
  Part part = 20;
}
"""
ORDER = b"\x02\x02"  # a path of one number: 1
ITEM = pa.struct([("sku", pa.string())])


def registered(schema_id: int, text: str, **references: str) -> RegisteredSchema:
    return RegisteredSchema(schema_id, SchemaType.PROTOBUF, text, tuple(references.items()))


def reader(
    message: str | None, schema: RegisteredSchema, *others: RegisteredSchema
) -> ProtobufReader:
    return ProtobufReader(schema, KnownSchemas(*others), message)  # type: ignore[arg-type]


def message_of(source: str, name: str, **fields: Any) -> Message:
    pool: DescriptorPool = parse_protobuf_schema(source, {}).file.pool
    found: Message = GetMessageClass(pool.FindMessageTypeByName(name))(**fields)
    return found


def test_all_types() -> None:
    read = reader("Order", registered(1, SOURCE))
    order: Any = message_of(
        SOURCE,
        "shop.v1.Order",
        id="a",
        small=2**32 - 1,
        large=2**64 - 1,
        raw=b"\xff",
        rate=1.5,
        done=True,
        state=1,
        items=[{"sku": "x"}],
        states=[0, 1, 7],
        by_name={"k": {"sku": "y"}},
        by_number={3: 1},
        gift={},
        more={"n": [1, None]},
        part={"name": "deep", "parts": [{"name": "deeper"}]},
    )
    order.at.FromJsonString("2026-11-29T00:00:00.000001500Z")
    order.took.FromJsonString("-1.500001500s")
    row = read.read(1, ORDER + order.SerializeToString())
    assert pa.array([row], read.arrow_type).to_pylist() == [
        {
            "id": "a",
            "small": 2**32 - 1,
            "large": Decimal(2**64 - 1),
            "count": None,
            "raw": b"\xff",
            "rate": 1.5,
            "done": True,
            "state": "PAID",
            "item": None,
            "items": [{"sku": "x"}],
            "states": ["NEW", "PAID", "7"],
            "by_name": [("k", {"sku": "y"})],
            "by_number": [(3, "PAID")],
            "card": None,
            "gift": {"sku": ""},
            "at": datetime.datetime(2026, 11, 29, microsecond=1, tzinfo=datetime.UTC),
            "took": -datetime.timedelta(seconds=1, microseconds=500_001),
            "wrapped": None,
            "more": '{"n": [1.0, null]}',
            "part": '{"parts": [{"name": "deeper"}], "name": "deep"}',
        }
    ]
    writer = ProtobufWriter(registered(1, SOURCE), "Order")
    rows = pa.array([row], read.arrow_type).to_pylist(maps_as_pydicts="strict")
    assert read.read(1, writer.write(rows[0])) == row
    assert writer.arrow_type == read.arrow_type
    assert read.arrow_type.field("item").type == ITEM
    assert read.arrow_type.field("wrapped").type == pa.struct([("value", pa.int64())])


def test_fields_without_presence_have_their_defaults() -> None:
    row = reader("Order", registered(1, SOURCE)).read(1, ORDER)
    given = {name: value for name, value in row.items() if value is not None}
    empty_lists = {key: [] for key in ("items", "states", "by_name", "by_number")}
    assert given == {
        "id": "",
        "small": 0,
        "large": 0,
        "raw": b"",
        "rate": 0.0,
        "done": False,
        "state": "NEW",
        **empty_lists,
    }


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (None, b"\0"),
        ("Item", b"\x02\0"),
        ("shop.v1.Order.Part", b"\x04\x02\0"),
        ("Part", b"\x04\x02\0"),
    ],
)
def test_the_message_may_be_any_of_the_schema(message: str | None, path: bytes) -> None:
    name = b"\x12\x01n"  # field 2: "n"
    row = reader(message, registered(1, SOURCE)).read(1, path + (name if len(path) > 2 else b""))
    assert row == ({"parts": [], "name": "n"} if len(path) > 2 else {"sku": ""})


def test_a_version_in_which_the_message_stands_elsewhere() -> None:
    earlier = 'syntax = "proto3"; package p; message Order { string id = 1; }'
    later = (
        'syntax = "proto3"; package p; message Head {} '
        "message Order { string id = 1; string note = 2; }"
    )
    read = reader("Order", registered(2, later), registered(1, earlier))
    payload = message_of(earlier, "p.Order", id="a").SerializeToString()
    for path in (b"\0", b"\x02\0"):
        assert read.read(1, path + payload) == {"id": "a", "note": ""}
    assert read.read(2, b"\x02\x02" + payload) == {"id": "a", "note": ""}
    with pytest.raises(CorruptValue, match=r"it is the message p\.Head, not p\.Order"):
        read.read(2, b"\0")


def test_an_imported_schema() -> None:
    source = 'syntax = "proto3"; import "item.proto"; message Box { shop.Item item = 1; }'
    item = 'syntax = "proto3"; package shop; message Item { string sku = 1; }'
    read = reader(None, registered(1, source, **{"item.proto": item}))
    assert read.arrow_type == pa.struct([("item", ITEM)])
    assert read.read(1, b"\0\x0a\x00") == {"item": {"sku": ""}}


def test_a_message_of_itself_below_another_is_text_in_each_place() -> None:
    source = (
        'syntax = "proto3"; message A { B b = 1; } message B { C c = 1; } message C { B b = 1; }'
    )
    read = reader(None, registered(1, source))
    assert read.arrow_type == pa.struct([("b", pa.string())])
    assert reader("C", registered(1, source)).arrow_type == pa.struct([("b", pa.string())])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "it ends in the path of its message"),
        (b"\x04\x02", "it ends in the path of its message"),
        (b"\xff" * 20, "it ends in the path of its message"),
        (b"\x01", "its message has a path of -1 numbers"),
        (b"\x7e", "its message has a path of 63 numbers"),
        (b"\x02\x08", "it is no message of its schema 1, not shop.v1.Order"),
        (b"\0", r"it is the message shop\.v1\.Item, not shop\.v1\.Order"),
        (ORDER + b"\xff", r"it is not a message shop\.v1\.Order: "),
        (ORDER + b"\x0a\x01\xff", r"it is not a message shop\.v1\.Order: "),  # not UTF-8
    ],
)
def test_bytes_that_are_not_of_the_message(payload: bytes, expected: str) -> None:
    with pytest.raises(CorruptValue, match=expected):
        reader("Order", registered(1, SOURCE)).read(1, payload)


def test_values_of_other_schemas() -> None:
    others = (
        RegisteredSchema(2, SchemaType.AVRO, '"int"', ()),
        registered(3, "message Broken {"),
    )
    read = reader("Order", registered(1, SOURCE), *others)
    with pytest.raises(CorruptValue, match="its schema 2 is not Protobuf's but AVRO's"):
        read.read(2, b"\0")
    with pytest.raises(CorruptValue, match="schema 3 is not Protobuf: "):
        read.read(3, b"\0")


def test_a_message_that_the_schema_does_not_have() -> None:
    with pytest.raises(ConfigError, match=r"schema 1 has no message Odd; .*: shop\.v1\.Item, shop"):
        reader("Odd", registered(1, SOURCE))
    with pytest.raises(ConfigError, match="schema 1 has no message; its messages: none"):
        reader(None, registered(1, 'syntax = "proto3"; enum E { A = 0; }'))


@pytest.mark.parametrize(
    ("message", "path"),
    [(None, b"\0"), ("Order", b"\x02\x02"), ("Part", b"\x04\x02\0")],
)
def test_a_written_value_names_its_message(message: str | None, path: bytes) -> None:
    assert ProtobufWriter(registered(1, SOURCE), message).write({}) == path


def test_the_path_of_a_late_message() -> None:
    messages = "".join(f"message M{i} {{ string id = 1; }} " for i in range(130))
    schema = registered(1, f'syntax = "proto3"; {messages}')
    value = ProtobufWriter(schema, "M129").write({"id": "a"})
    assert value[:3] == b"\x02\x82\x02"
    assert reader("M129", schema).read(1, value) == {"id": "a"}


@pytest.mark.parametrize(
    "row",
    [
        {"state": "ODD"},
        {"part": "{"},
        {"part": '{"odd": 1}'},
        {"large": Decimal(-1)},
        {"items": [None]},
        {"states": [None]},
        {"by_name": {"k": None}},
        {"small": 2**32},
    ],
)
def test_rows_that_do_not_fit(row: dict[str, Any]) -> None:
    with pytest.raises(CorruptValue, match=r"."):
        ProtobufWriter(registered(1, SOURCE), "Order").write(row)
