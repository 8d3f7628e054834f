"""protobuf_text: the source of a descriptor means the same."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kafkapy.schemas.protobuf_schema import parse_protobuf_schema
from kafkapy.schemas.protobuf_text import file_text
from tests.unit.schemas.protobuf_sources import ITEM, PROTO2, PROTO3, ROUND_TRIP, USES_ITEM
from tests.unit.schemas.steps import assert_linear

EXTENDED: Final = (
    PROTO2
    + """message A {
  optional group G = 1 { optional bytes b = 1 [default = "\\377"]; }
  oneof o { group H = 2 { optional float f = 1 [default = inf]; } }
  extensions 100 to 199, 300 to max;
  extend A { optional string more = 100; }
} extend A { repeated group Many = 101 { optional A a = 1; } }"""
)


MAP_AND_MESSAGE: Final = (
    PROTO3
    + """message A { map<string, int32> pairs = 1; repeated B.PairsEntry others = 2; }
message B { message PairsEntry { string key = 1; } }"""
)


@pytest.mark.parametrize("source", [ROUND_TRIP, USES_ITEM, EXTENDED, MAP_AND_MESSAGE])
def test_a_descriptor_and_its_source_have_one_identity(source: str) -> None:
    references = {"item.proto": ITEM}
    schema = parse_protobuf_schema(source, references)
    from_descriptor = parse_protobuf_schema(schema.identity, references)
    from_stored_text = parse_protobuf_schema(from_descriptor.text, references)
    assert from_descriptor.identity == schema.identity
    assert from_stored_text.identity == schema.identity


def test_custom_options_of_a_descriptor_are_kept() -> None:
    options = PROTO2 + (
        'import "google/protobuf/descriptor.proto";'
        " extend google.protobuf.FieldOptions { optional string unit = 5000; }"
    )
    references = {"options.proto": options}
    source = PROTO3 + 'import "options.proto"; message A { int32 a = 1; }'
    pool = descriptor_pool.DescriptorPool()
    known = descriptor_pool.Default().FindFileByName("google/protobuf/descriptor.proto")
    pool.AddSerializedFile(known.serialized_pb)
    file = FileDescriptorProto.FromString(
        base64.b64decode(parse_protobuf_schema(source, references).identity)
    )
    file.message_type[0].field[0].options.MergeFromString(b"\xc2\xb8\x02\x02kg")
    text = base64.b64encode(file.SerializeToString()).decode()
    schema = parse_protobuf_schema(text, references)
    assert 'int32 a = 1 [(unit) = "kg"];' in schema.text
    assert parse_protobuf_schema(schema.text, references).identity == schema.identity


MANY: Final = {
    "nested messages": "message M{n} {{}} M{n} f{n} = {i};",
    "maps": "map<int32, int32> f{n} = {i};",
    "oneofs": "oneof o{n} {{ int32 f{n} = {i}; }}",
}


@pytest.mark.parametrize("part", MANY.values(), ids=MANY)
def test_the_cost_of_a_large_descriptor_is_linear(part: str) -> None:
    def render(size: int) -> Callable[[], str]:
        parts = " ".join(part.format(n=n, i=n + 1) for n in range(size))
        schema = parse_protobuf_schema(f"{PROTO3} message Order {{ {parts} }}", {})
        file = FileDescriptorProto.FromString(base64.b64decode(schema.identity))
        return lambda: file_text(file, schema.file.pool)

    assert_linear(render, 500)


@pytest.mark.parametrize(
    "other",
    [
        "message A{int32 a=1;string b=2;}",
        "message A {\n  int32 a = 1; // first\n  string b = 2 /* x */; /* \n */ }",
        "// x\nmessage A { ; int32 a = 1 /* none */; string b = 2; };",
    ],
)
def test_white_space_and_comments_do_not_change_the_identity(other: str) -> None:
    first = parse_protobuf_schema(PROTO3 + "message A { int32 a = 1; string b = 2; }", {})
    second = parse_protobuf_schema(PROTO3 + other, {})
    assert second.text == PROTO3 + other
    assert second.identity == first.identity


def test_the_order_of_options_does_not_change_the_identity() -> None:
    options = [
        'option java_package = "a//b";',
        "option cc_enable_arenas = true;",
    ]
    first, second = (
        parse_protobuf_schema(PROTO3 + " ".join(order), {}) for order in (options, options[::-1])
    )
    assert first.identity == second.identity


@pytest.mark.parametrize(
    "other",
    [
        "message A { int32 b = 1; }",
        "message A { int32 a = 2; }",
        "message A { int64 a = 1; }",
        "message A { optional int32 a = 1; }",
        "message A { int32 a = 1 [deprecated = true]; }",
        "package p; message A { int32 a = 1; }",
        "message A { int32 a = 1; reserved 2; }",
        "message A { int32 a = 1; } enum E { X = 0; }",
        'option java_package = "a"; message A { int32 a = 1; }',
    ],
)
def test_other_schemas_have_other_identities(other: str) -> None:
    first = parse_protobuf_schema(PROTO3 + "message A { int32 a = 1; }", {})
    assert parse_protobuf_schema(PROTO3 + other, {}).identity != first.identity
