"""protobuf_schema: parsing schemas and their references, and the descriptors for clients."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from google.protobuf import descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kafkapy.schemas import protobuf_schema
from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.protobuf_schema import ProtobufSchema, parse_protobuf_schema
from tests.unit.schemas.protobuf_sources import ITEM, PROTO2, PROTO3, ROUND_TRIP, USES_ITEM


def message_class(
    schema: ProtobufSchema, name: str, references: Mapping[str, str] | None = None
) -> Any:
    """Build the class of a message as a client does that has the descriptors only."""
    pool = descriptor_pool.DescriptorPool()
    files = {
        path: parse_protobuf_schema(text, references or {}).identity
        for path, text in (references or {}).items()
    }
    added: set[str] = set()

    def add(path: str, serialized: str) -> None:
        file = FileDescriptorProto.FromString(base64.b64decode(serialized))
        file.name = path
        for dependency in file.dependency:
            if dependency in added:
                continue
            if dependency in files:
                add(dependency, files[dependency])
            else:
                assert dependency == timestamp_pb2.DESCRIPTOR.name
                pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(file.SerializeToString())
        added.add(path)

    add("default", schema.identity)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_references_are_transitive() -> None:
    references = {
        "b.proto": PROTO3 + 'import "c.proto"; message B { C c = 1; }',
        "c.proto": PROTO3 + "message C {}",
    }
    source = PROTO3 + 'import "b.proto"; message A { B b = 1; }'
    assert parse_protobuf_schema(source, references).text == source
    with pytest.raises(InvalidSchema, match=r'Import "c\.proto" was not found'):
        parse_protobuf_schema(source, {"b.proto": references["b.proto"]})


def test_an_import_is_public() -> None:
    references = {
        "b.proto": PROTO3 + 'import public "c.proto";',
        "c.proto": PROTO3 + "message C {}",
    }
    schema = parse_protobuf_schema(PROTO3 + 'import "b.proto"; message A { C c = 1; }', references)
    assert message_class(schema, "A", references).DESCRIPTOR.fields[0].message_type.name == "C"


def test_known_files_need_no_reference() -> None:
    source = (
        PROTO3
        + """
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        import "google/type/date.proto";
        import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        message A {
          google.protobuf.Timestamp time = 1 [(confluent.field_meta) = { doc: "d" tags: ["t"] }];
          .google.protobuf.Int32Value count = 2 [(confluent.field_meta).doc = "d"];
          confluent.type.Decimal price = 3;
          google.type.Date date = 4;
        }"""
    )
    schema = parse_protobuf_schema(source, {})
    from_descriptor = parse_protobuf_schema(schema.identity, {})
    assert "1 [(confluent.field_meta) = { doc:" in from_descriptor.text
    assert from_descriptor.identity == schema.identity


def test_a_message_survives_a_class_that_is_built_from_the_descriptor() -> None:
    references = {"item.proto": ITEM}
    schema = parse_protobuf_schema(ROUND_TRIP, references)
    order = message_class(schema, "shop.Order", references)
    sent = order(id=7, amounts=[-1, 2], price=0.0, card="c", status=1)
    sent.lines_by_name["x"].data = b"\xff"
    sent.time.seconds = 12
    sent.item.id = 3
    received = order.FromString(sent.SerializeToString())
    assert received == sent
    assert received.HasField("price")
    assert received.WhichOneof("payment") == "card"
    assert order.DESCRIPTOR.fields_by_name["id"].json_name == "ID"
    assert not order.DESCRIPTOR.fields_by_name["amounts"].is_packed
    assert order.DESCRIPTOR.file.GetOptions().java_package == "org.example"


def test_a_required_field_of_proto2_is_required_and_defaults_are_kept() -> None:
    source = (
        PROTO2
        + r"""message A {
        required int32 a = 1; optional int32 b = 2 [default = -0x10];
        optional string c = 3 [default = "a\"\n" "b"]; optional bytes d = 4 [default = "\377x"];
        optional bool e = 5 [default = true]; optional float f = 6 [default = -inf];
        optional E k = 7 [default = Y]; enum E { X = -1; Y = 0x2; }
        repeated group G = 8 { optional int32 x = 1; } extensions 100 to max;
    } extend A { optional string more = 100; }"""
    )
    schema = parse_protobuf_schema(source, {})
    message = message_class(schema, "A")()
    assert not message.IsInitialized()
    assert (message.b, message.c, message.d, message.e) == (-16, 'a"\nb', b"\xffx", True)
    assert (message.f, message.k) == (float("-inf"), 2)
    message.a = 1
    message.k = 2
    message.ParseFromString(message.SerializeToString())
    assert parse_protobuf_schema(schema.identity, {}).identity == schema.identity


def test_a_descriptor_of_a_generated_module_is_accepted() -> None:
    from google.protobuf import struct_pb2

    text = base64.standard_b64encode(struct_pb2.DESCRIPTOR.serialized_pb).decode()
    schema = parse_protobuf_schema(text, {})
    assert schema.text.startswith('syntax = "proto3";\npackage google.protobuf;\n')
    assert "  map<string, .google.protobuf.Value> fields = 1;\n" in schema.text
    struct = message_class(schema, "google.protobuf.Struct")()
    struct.fields["a"].number_value = 1.5
    assert struct_pb2.Struct.FromString(struct.SerializeToString())["a"] == 1.5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"type": "string"}', "default:1:1: "),
        ("garbage", "default:1:1: "),
        (PROTO3 + "\nmessage A {\n  int32 a = 1\n}", "default:4:1: Expected"),
        (PROTO3 + "/*\n\n*/ message A {", "default:3:15: Reached end of input"),
        (PROTO3 + "message A { int32 a = 1; } @", "default:1:47: Expected top-level"),
        (PROTO3 + "message A { B b = 1; }", '"B" is not defined'),
        (PROTO3 + "message A { map<string, B> b = 1; }", '"B" is not defined'),
        (PROTO3 + "message A {} service S { rpc R (A) returns (B); }", '"B" is not defined'),
        (
            PROTO3 + "message A { int32 a = 1; int32 b = 1; }",
            'Field number 1 has already been used in "A"',
        ),
        (PROTO3 + "message A { int32 a = 1; int32 a = 2; }", '"a" is already defined in "A"'),
        (PROTO3 + "message A {} message A {}", '"A" is already defined'),
        (
            PROTO3 + "message A { required int32 a = 1; }",
            "Required fields are not",
        ),
        (PROTO3 + "message A { int32 a = 0; }", "Field numbers must be positive"),
        ("AAAA", "default:1:1: "),
        (PROTO3 + "enum E { X = 1; }", "first enum value must be zero"),
        (PROTO3 + "enum E {}", "at least one value"),
        (PROTO2 + "message A { int32 a = 1; }", 'Expected "required", "optional"'),
        (
            PROTO3 + "message A { int32 a = 1 [deprecated = 5]; }",
            "for boolean option",
        ),
        (PROTO3 + "message A { int32 a = 1 [json_name = 5]; }", "Expected string for JSON name"),
        (PROTO3 + "option optimize_for = FAST;", 'has no value named "FAST"'),
        (PROTO3 + 'import "other.proto";', 'Import "other.proto" was not found'),
        (
            PROTO3 + 'import "google/protobuf/none.proto";',
            'Import "google/protobuf/none.proto" was not',
        ),
        ('syntax = "proto4"; message A {}', 'Unrecognized syntax identifier "proto4"'),
    ],
)
def test_an_invalid_schema_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason) as error:
        parse_protobuf_schema(text, {})
    assert "\n" not in str(error.value)


def test_references_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may have many names for one large schema, and each becomes a file."""
    compiled = Mock()
    monkeypatch.setattr(protobuf_schema, "_compiled", compiled)
    references = {f"{n}.proto": f"{PROTO3} // {'x' * 1_000_000}" for n in range(20)}
    with pytest.raises(InvalidSchema, match="its references are too long"):
        parse_protobuf_schema(PROTO3, references)
    assert not compiled.compile.called


def test_names_that_would_take_all_memory_are_refused() -> None:
    """The full name of each value has the name of the message: this would take 1.2 GB, twice."""
    values = " ".join(f"V{n} = {n};" for n in range(10_000))
    source = f"{PROTO3} message {'A' * 60_000} {{ enum E {{ {values} }} }}"
    with pytest.raises(InvalidSchema, match="the names of its declarations are too long"):
        parse_protobuf_schema(source, {})


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("message", "other.proto:1:8: Expected message name"),
        (PROTO3 + "message B { C c = 1; }", 'other.proto:1:32: "C" is not defined'),
        (PROTO3 + 'import "other.proto";', "File recursively imports itself: other.proto"),
    ],
)
def test_an_invalid_reference_is_named(other: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse_protobuf_schema(PROTO3 + 'import "other.proto";', {"other.proto": other})


def test_a_descriptor_without_its_imports_is_refused() -> None:
    text = parse_protobuf_schema(USES_ITEM, {"item.proto": ITEM}).identity
    with pytest.raises(InvalidSchema, match=r'Import "item\.proto" was not found'):
        parse_protobuf_schema(text, {})
