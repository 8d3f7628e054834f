"""protobuf_text: the source of a descriptor means the same."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kafkapy.schemas.parsed_schema import InvalidSchema
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


def changed(change: Callable[[FileDescriptorProto], object]) -> FileDescriptorProto:
    """A descriptor of a message with a map, a oneof and an enum, and of another one, changed."""
    source = """message A { map<int32, int32> m = 1; oneof o { int32 a = 2; } enum E { X = 0; } }
      message B { repeated bytes b = 1; optional int32 c = 2; }"""
    schema = parse_protobuf_schema(PROTO2 + source, {})
    file = FileDescriptorProto.FromString(base64.b64decode(schema.identity))
    change(file)
    return file


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        # The package protobuf ends the process when it copies the descriptor of this field.
        (
            lambda file: setattr(file.message_type[1].field[0], "default_value", "x"),
            "Repeated fields can't have default values",
        ),
        (lambda file: setattr(file.message_type[0], "name", "A {} message C"), "is not a name"),
        (lambda file: setattr(file, "package", "a; import"), "is not a name"),
        (lambda file: setattr(file, "syntax", 'proto3"; message C {} //'), "Unrecognized syntax"),
        (
            lambda file: setattr(file.message_type[1].field[1], "default_value", "1]; // "),
            "'1]; // ' is not a default",
        ),
        (lambda file: file.message_type[1].field[1].ClearField("type"), "field c has no type"),
        (
            lambda file: setattr(file.message_type[0].field[1], "oneof_index", 5),
            "the descriptor is malformed: ",
        ),
        (
            lambda file: file.message_type[0].nested_type[0].field.add(),
            "the descriptor is malformed: too many values",
        ),
    ],
)
def test_a_malformed_descriptor_is_refused(
    change: Callable[[FileDescriptorProto], object], reason: str
) -> None:
    text = base64.b64encode(changed(change).SerializeToString()).decode()
    with pytest.raises(InvalidSchema, match=reason):
        parse_protobuf_schema(text, {})


def test_a_default_of_bytes_does_not_end_its_text() -> None:
    def change(file: FileDescriptorProto) -> None:
        field = file.message_type[1].field[0]
        field.label = field.LABEL_OPTIONAL
        field.default_value = 'a"]; // '

    text = base64.b64encode(changed(change).SerializeToString()).decode()
    with pytest.raises(InvalidSchema, match="is not a default of bytes"):
        parse_protobuf_schema(text, {})


OPTIONS: Final = (
    'import "google/protobuf/descriptor.proto"; enum Unit { KG = 0; }'
    " extend google.protobuf.EnumValueOptions { optional Unit NAME = 5000; optional A sub = 5001; }"
    " message A { repeated int32 NUMBERS = 1; }"
)


@pytest.mark.parametrize(
    ("options", "content", "reason"),
    [
        (OPTIONS, b"\xc0\xb8\x02\x63", r"the option NAME is 99, which Unit does not have"),
        (OPTIONS, b"\xca\xb8\x02\x01\xff", "the descriptor is malformed: "),
        (OPTIONS.replace("NAME", "n" * 60_000), b"\xc0\xb8\x02\0", "its options are too long"),
        (
            OPTIONS.replace("NUMBERS", "n" * 60_000),
            b"\xca\xb8\x02\x64" + b"\x08\x01" * 50,
            "its options are too long",
        ),
    ],
)
def test_options_that_cannot_be_rendered(options: str, content: bytes, reason: str) -> None:
    source = PROTO3 + options + " enum Kind { " + "".join(f"V{n} = {n}; " for n in range(80)) + "}"
    schema = parse_protobuf_schema(source, {})
    file = FileDescriptorProto.FromString(base64.b64decode(schema.identity))
    for each in file.enum_type[1].value:
        each.options.MergeFromString(content)
    text = base64.b64encode(file.SerializeToString()).decode()
    with pytest.raises(InvalidSchema, match=reason):
        parse_protobuf_schema(text, {})


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
