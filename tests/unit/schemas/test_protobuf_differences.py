"""protobuf_differences: the changes that a reader of Protobuf data tolerates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import pytest

from kafkapy.schemas import parsed_schema
from kafkapy.schemas.parsed_schema import TOO_MANY_COMPARISONS
from kafkapy.schemas.protobuf_schema import parse_protobuf_schema
from tests.unit.schemas.protobuf_sources import ITEM, PROTO2, PROTO3, USES_ITEM
from tests.unit.schemas.steps import assert_linear

# The bodies of the message Order in the schemas of the writer and of the reader, and a part of
# the reason why the reader is incompatible, or None.
PROTO3_CASES: Final = {
    "the same": ("int32 a = 1;", "int32 a = 1;", None),
    "field added": ("int32 a = 1;", "int32 a = 1; string b = 2;", None),
    "field removed": ("int32 a = 1; string b = 2;", "int32 a = 1;", None),
    "all fields removed": ("int32 a = 1; string b = 2;", "", None),
    "field renamed": ("int32 a = 1;", "int32 b = 1;", None),
    "field renumbered": ("int32 a = 1;", "int32 a = 2;", None),
    "names exchanged": ("int32 a = 1; string b = 2;", "int32 b = 1; string a = 2;", None),
    "int32 to int64": ("int32 a = 1;", "int64 a = 1;", None),
    "int64 to uint32": ("int64 a = 1;", "uint32 a = 1;", None),
    "uint64 to bool": ("uint64 a = 1;", "bool a = 1;", None),
    "sint32 to sint64": ("sint32 a = 1;", "sint64 a = 1;", None),
    "string to bytes": ("string a = 1;", "bytes a = 1;", None),
    "bytes to string": ("bytes a = 1;", "string a = 1;", None),
    "fixed32 to sfixed32": ("fixed32 a = 1;", "sfixed32 a = 1;", None),
    "fixed64 to sfixed64": ("fixed64 a = 1;", "sfixed64 a = 1;", None),
    "string to int32": ("string a = 1;", "int32 a = 1;", "from string to int32"),
    "renamed too": ("string a = 1;", "int32 b = 1;", "message Order, field 1: the type changed"),
    "int32 to sint32": ("int32 a = 1;", "sint32 a = 1;", "from int32 to sint32"),
    "int32 to fixed32": ("int32 a = 1;", "fixed32 a = 1;", "from int32 to fixed32"),
    "fixed32 to fixed64": ("fixed32 a = 1;", "fixed64 a = 1;", "from fixed32 to fixed64"),
    "float to double": ("float a = 1;", "double a = 1;", "from float to double"),
    "fixed32 to float": ("fixed32 a = 1;", "float a = 1;", "from fixed32 to float"),
    "int32 to enum": ("int32 a = 1;", "E a = 1; enum E { X = 0; }", None),
    "enum to int64": ("E a = 1; enum E { X = 0; }", "int64 a = 1;", None),
    "enum to another enum": (
        "E a = 1; enum E { X = 0; }",
        "F a = 1; enum F { Y = 0; }",
        None,
    ),
    "enum to string": ("E a = 1; enum E { X = 0; }", "string a = 1;", "from Order.E to string"),
    "enum to sint32": ("E a = 1; enum E { X = 0; }", "sint32 a = 1;", "from Order.E to sint32"),
    "nested enum added": ("int32 a = 1;", "int32 a = 1; enum E { X = 0; }", None),
    "nested enum removed": ("int32 a = 1; enum E { X = 0; }", "int32 a = 1;", None),
    "constant added": ("enum E { X = 0; }", "enum E { X = 0; Y = 1; }", None),
    "constant removed": ("enum E { X = 0; Y = 1; }", "enum E { X = 0; }", None),
    "constant renamed": ("enum E { X = 0; Y = 1; }", "enum E { X = 0; Z = 1; }", None),
    "scalar to message": ("int32 a = 1;", "M a = 1; message M {}", "from int32 to Order.M"),
    "message to bytes": (
        "M a = 1; message M {}",
        "bytes a = 1; message M {}",
        "field 1: the type changed from Order.M to bytes",
    ),
    "message to another message": (
        "M a = 1; message M {} message N {}",
        "N a = 1; message M {} message N {}",
        "from Order.M to Order.N",
    ),
    "message to enum": (
        "M a = 1; message M {}",
        "E a = 1; message M {} enum E { X = 0; }",
        "from Order.M to Order.E",
    ),
    "name qualified": ("M a = 1; message M {}", ".Order.M a = 1; message M {}", None),
    "nested message added": ("int32 a = 1;", "int32 a = 1; message M {}", None),
    "nested message removed": ("message M {}", "", "message Order.M: the message was removed"),
    "deeply nested message removed": (
        "message M { message N {} }",
        "message M {}",
        "message Order.M.N: the message was removed",
    ),
    "nested field changed": (
        "M a = 1; message M { int32 x = 1; }",
        "M a = 1; message M { string x = 1; }",
        "message Order.M, field 1: the type changed from int32 to string",
    ),
    "nested field added": (
        "message M { int32 x = 1; }",
        "message M { int32 x = 1; int32 y = 2; }",
        None,
    ),
    "recursive message": ("Order a = 1;", "repeated Order a = 1;", None),
    "map value in the same group": ("map<string, int32> a = 1;", "map<string, int64> a = 1;", None),
    "map value": (
        "map<string, int32> a = 1;",
        "map<string, string> b = 1;",
        "message Order, field 1, value of the map: the type changed from int32 to string",
    ),
    "map key": (
        "map<string, int32> a = 1;",
        "map<int32, int32> a = 1;",
        "field 1, key of the map: the type changed from string to int32",
    ),
    "map of messages, qualified": (
        "map<string, M> a = 1; message M {}",
        "map<string, Order.M> a = 1; message M {}",
        None,
    ),
    "map of other messages": (
        "map<string, M> a = 1; message M {} message N {}",
        "map<string, N> a = 1; message M {} message N {}",
        "value of the map: the type changed from Order.M to Order.N",
    ),
    "map removed": ("map<string, int32> a = 1;", "", None),
    "map to scalar": (
        "map<string, int32> a = 1;",
        "string a = 1;",
        "from map<string, int32> to string",
    ),
    "map to the message of its entry": (
        "map<string, int32> a = 1;",
        "repeated E a = 1; message E { string key = 1; int32 value = 2; }",
        "from map<string, int32> to Order.E",
    ),
    "string repeated": ("optional string a = 1;", "repeated string a = 1;", None),
    "bytes no longer repeated": ("repeated bytes a = 1;", "optional bytes a = 1;", None),
    "message repeated": (
        "optional M a = 1; message M {}",
        "repeated M a = 1; message M {}",
        None,
    ),
    "number repeated": (
        "optional int32 a = 1;",
        "repeated int32 a = 1;",
        "message Order, field 1: the label changed from optional to repeated",
    ),
    "enum repeated": (
        "optional E a = 1; enum E { X = 0; }",
        "repeated E a = 1; enum E { X = 0; }",
        "the label changed from optional to repeated",
    ),
    "number without a label repeated": ("int32 a = 1;", "repeated int32 a = 1;", None),
    "label added": ("int32 a = 1;", "optional int32 a = 1;", None),
    "label removed": ("optional int32 a = 1;", "int32 a = 1;", None),
    "oneof added": ("int32 a = 1;", "int32 a = 1; oneof o { int32 b = 2; }", None),
    "oneof removed": ("int32 a = 1; oneof o { int32 b = 2; }", "int32 a = 1;", None),
    "oneof renamed": ("oneof o { int32 a = 1; }", "oneof p { int32 a = 1; }", None),
    "field added to a oneof": (
        "oneof o { int32 a = 1; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        None,
    ),
    "field removed from a oneof": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        "message Order, oneof o: field 2 was removed from it",
    ),
    "field of a oneof renamed": ("oneof o { int32 a = 1; }", "oneof o { int32 b = 1; }", None),
    "field of a oneof changed": (
        "oneof o { int32 a = 1; }",
        "oneof o { string a = 1; }",
        "message Order, field 1: the type changed from int32 to string",
    ),
    "field moved into a new oneof": (
        "int32 a = 1;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        None,
    ),
    "optional field moved into a new oneof": (
        "optional int32 a = 1;",
        "oneof o { int32 a = 1; }",
        None,
    ),
    "field changed and moved into a new oneof": (
        "int32 a = 1;",
        "oneof o { string a = 1; }",
        "field 1: the type changed from int32 to string",
    ),
    "several fields moved into a new oneof": (
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "message Order, oneof o: several fields moved into it",
    ),
    "optional fields moved into a new oneof": (
        "optional int32 a = 1; optional int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o: several fields moved into it",
    ),
    "field moved into an existing oneof": (
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "message Order, oneof o: field 1 moved into an existing oneof",
    ),
    "field moved into a renamed oneof": (
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof p { int32 a = 1; int32 b = 2; }",
        "oneof p: field 1 moved into an existing oneof",
    ),
    "field moved out of a oneof": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o: field 1 was removed from it",
    ),
    "all fields moved out of a oneof": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1; int32 b = 2;",
        None,
    ),
    "field changed in a renamed oneof": (
        "oneof o { int32 a = 1; }",
        "oneof p { string a = 1; }",
        "field 1: the type changed from int32 to string",
    ),
    "number reserved": ("int32 a = 1;", "reserved 1;", None),
}

PROTO2_CASES: Final = {
    "optional field added": ("", "optional int32 a = 1;", None),
    "required field added": ("", "required int32 a = 1;", "field 1: a required field was added"),
    "required field removed": (
        "required int32 a = 1;",
        "",
        "message Order, field 1: the required field was removed",
    ),
    "required field kept": ("required int32 a = 1;", "required int64 b = 1;", None),
    "number required": (
        "optional int32 a = 1;",
        "required int32 a = 1;",
        "the label changed from optional to required",
    ),
    "number no longer required": (
        "required int32 a = 1;",
        "optional int32 a = 1;",
        "the label changed from required to optional",
    ),
    "string required": ("optional string a = 1;", "required string a = 1;", None),
    "required field of a nested message added": (
        "message M {}",
        "message M { required int32 a = 1; }",
        "message Order.M, field 1: a required field was added",
    ),
    "required field moved into a oneof": (
        "required int32 a = 1;",
        "oneof o { int32 a = 1; }",
        None,
    ),
    "default changed": (
        "optional int32 a = 1 [default = 1];",
        "optional int32 a = 1 [default = 2];",
        None,
    ),
    "group kept": (
        "optional group G = 1 { optional int32 a = 1; }",
        "optional group G = 1 { optional int64 a = 1; }",
        None,
    ),
    "field of a group changed": (
        "optional group G = 1 { optional int32 a = 1; }",
        "optional group G = 1 { optional string a = 1; }",
        "message Order.G, field 1: the type changed from int32 to string",
    ),
    "group removed": ("optional group G = 1 { optional int32 a = 1; }", "", None),
    "group to message": (
        "optional group G = 1 { optional int32 a = 1; }",
        "optional G g = 1; message G { optional int32 a = 1; }",
        "message Order, field 1: the type changed",
    ),
}


# Whole files.
FILE_CASES: Final = {
    "package changed": (
        "package foo; message A { .foo.A a = 1; }",
        "package bar; message A { .bar.A a = 1; }",
        "the package changed from 'foo' to 'bar'",
    ),
    "package added": ("message A {}", "package foo; message A {}", "changed from none to 'foo'"),
    "message added": ("message A {}", "message A {} message B {}", None),
    "message removed": ("message A {} message B {}", "message A {}", "message B: the message was"),
    "message renamed": ("message A {}", "message B {}", "message A: the message was removed"),
    "messages reordered": ("message A {} message B {}", "message B {} message A {}", None),
    "message replaced by an enum": ("message A {}", "enum A { X = 0; }", "message A: the message"),
    "enum added": ("message A {}", "message A {} enum E { X = 0; }", None),
    "enum removed": ("message A {} enum E { X = 0; }", "message A {}", None),
    "message moved into another": (
        "message A {} message B {}",
        "message A { message B {} }",
        "message B: the message was removed",
    ),
    "service removed": ("message A {} service S { rpc R (A) returns (A); }", "message A {}", None),
    "import added": ("message A {}", 'import "google/protobuf/any.proto"; message A {}', None),
    "option changed": ('option java_package = "a";', 'option java_package = "b";', None),
    "inner name hides an outer one": (
        "message A { M a = 1; message M {} } message M {}",
        "message A { .M a = 1; message M {} } message M {}",
        "message A, field 1: the type changed from A.M to M",
    ),
}


def reasons(
    writer: str,
    reader: str,
    writer_references: Mapping[str, str] | None = None,
    reader_references: Mapping[str, str] | None = None,
) -> list[str]:
    old = parse_protobuf_schema(writer, writer_references or {})
    return parse_protobuf_schema(reader, reader_references or {}).incompatibilities(old)


def assert_reason(found: list[str], reason: str | None) -> None:
    if reason is None:
        assert found == []
    else:
        assert any(reason in text for text in found), found
        assert all("\n" not in text for text in found)


def cases(table: Mapping[str, tuple[str, str, str | None]]) -> Any:
    return pytest.mark.parametrize(("writer", "reader", "reason"), table.values(), ids=table)


@cache
def message_reasons(syntax: str) -> dict[str, list[str]]:
    """The reasons of all cases of a syntax, whose messages one schema has: a run of protoc takes
    50 ms."""
    table = PROTO2_CASES if syntax == PROTO2 else PROTO3_CASES
    names = {case: f"Order{number}x" for number, case in enumerate(table)}
    writer, reader = (
        "".join(
            f" message {name} {{ {table[case][side].replace('Order', name)} }}"
            for case, name in names.items()
        )
        for side in (0, 1)
    )
    found = reasons(syntax + writer, syntax + reader)
    return {
        case: [text.replace(name, "Order") for text in found if f"message {name}" in text]
        for case, name in names.items()
    }


@pytest.mark.parametrize("case", PROTO3_CASES)
def test_messages_of_proto3(case: str) -> None:
    assert_reason(message_reasons(PROTO3)[case], PROTO3_CASES[case][2])


@pytest.mark.parametrize("case", PROTO2_CASES)
def test_messages_of_proto2(case: str) -> None:
    assert_reason(message_reasons(PROTO2)[case], PROTO2_CASES[case][2])


@cases(FILE_CASES)
def test_files(writer: str, reader: str, reason: str | None) -> None:
    assert_reason(reasons(PROTO3 + writer, PROTO3 + reader), reason)


@pytest.mark.parametrize(
    ("writer_import", "reader_import", "reason"),
    [
        (ITEM, ITEM, None),
        (ITEM, ITEM.replace("int32", "int64"), None),
        (ITEM, ITEM.replace("int32", "string"), "message Item, field 1: the type changed"),
        (ITEM, ITEM.replace("int32", "string"), "message Order, field 1: the type Item is"),
        (ITEM, ITEM.replace("message Part {}", ""), "message Item.Part: the message was removed"),
    ],
)
def test_imported_messages_are_compared_where_fields_use_them(
    writer_import: str, reader_import: str, reason: str | None
) -> None:
    found = reasons(
        USES_ITEM, USES_ITEM, {"item.proto": writer_import}, {"item.proto": reader_import}
    )
    assert_reason(found, reason)


def test_an_imported_message_without_a_field_does_not_count() -> None:
    source = PROTO3 + 'import "item.proto"; message Order {}'
    changed = {"item.proto": ITEM.replace("int32", "string")}
    assert reasons(source, source, {"item.proto": ITEM}, changed) == []


def test_an_imported_message_may_move_to_another_package() -> None:
    moved = {"item.proto": ITEM.replace("package shop", "package store")}
    reader = USES_ITEM.replace("shop.Item", "store.Item")
    assert reasons(USES_ITEM, reader, {"item.proto": ITEM}, moved) == []


def test_a_message_may_move_from_an_import_but_not_to_one() -> None:
    local = PROTO3 + "message Order { Item item = 1; } message Item { int32 id = 1; }"
    imported = {"item.proto": PROTO3 + "package shop; message Item { int32 id = 1; }"}
    assert reasons(USES_ITEM, local, imported) == []
    assert reasons(local, USES_ITEM, None, imported) == ["message Item: the message was removed"]


def test_imported_messages_that_contain_each_other_are_compared_once() -> None:
    old = PROTO3 + "message A { B b = 1; } message B { A a = 1; int32 x = 2; }"
    source = PROTO3 + 'import "ab.proto"; message Order { A a = 1; }'
    new = old.replace("int32 x", "string x")
    assert reasons(source, source, {"ab.proto": old}, {"ab.proto": old}) == []
    found = reasons(source, source, {"ab.proto": old}, {"ab.proto": new})
    assert "message B, field 2: the type changed from int32 to string" in found


def test_an_enum_may_come_from_an_import() -> None:
    enum = {"e.proto": PROTO3 + "enum E { X = 0; }"}
    reader = PROTO3 + 'import "e.proto"; message Order { E e = 1; }'
    assert reasons(PROTO3 + "message Order { int32 e = 1; }", reader, None, enum) == []


def test_imported_messages_are_compared_once_each() -> None:
    """Each message has two fields of the next one: there are 2^40 paths, and no cycle."""
    chain = " ".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(40))
    old, new = (
        {"chain.proto": f"{PROTO3} {chain} message M40 {{ {kind} x = 1; }}"}
        for kind in ("int32", "string")
    )
    source = PROTO3 + 'import "chain.proto"; message Order { M0 m = 1; }'
    assert reasons(source, source, old, old) == []
    found = reasons(source, source, old, new)
    assert found[0] == "message M40, field 1: the type changed from int32 to string"


def test_imported_messages_that_are_nested_too_deeply_are_incompatible() -> None:
    chain = " ".join(f"message M{n} {{ M{n + 1} a = 1; }}" for n in range(2000))
    files = {"chain.proto": f"{PROTO3} {chain} message M2000 {{}}"}
    source = PROTO3 + 'import "chain.proto"; message Order { M0 m = 1; }'
    assert reasons(source, source, files, files) == ["its types are nested too deeply"]


def nested(size: int) -> str:
    fields = (f"message M{n} {{}} M{n} f{n} = {n + 1};" for n in range(size))
    return f"{PROTO3} message Order {{ {' '.join(fields)} }}"


def oneofs(size: int) -> str:
    fields = (f"oneof o{n} {{ int32 f{n} = {n + 1}; }}" for n in range(size))
    return f"{PROTO3} message Order {{ {' '.join(fields)} }}"


@pytest.mark.parametrize("source", [nested, oneofs])
def test_the_cost_of_a_large_message_is_linear(source: Callable[[int], str]) -> None:
    def compare(size: int) -> Callable[[], Any]:
        schema = parse_protobuf_schema(source(size), {})
        return lambda: schema.incompatibilities(schema)

    assert_linear(compare, 500)


def test_the_reasons_of_imported_messages_are_limited() -> None:
    """Each of 100 messages has a field of the type H, of which 100 fields have changed."""
    users = " ".join(f"message M{n} {{ H h = 1; }}" for n in range(100))
    fields = " ".join(f"int32 f{n} = {n + 1};" for n in range(100))
    old = f"{PROTO3} message H {{ {fields} }} {users}"
    source = f'{PROTO3} import "h.proto"; message Order {{ '
    source += " ".join(f"M{n} m{n} = {n + 1};" for n in range(100)) + " }"
    found = reasons(source, source, {"h.proto": old}, {"h.proto": old.replace("int32", "float")})
    assert found[0] == "message H, field 1: the type changed from int32 to float"
    assert len(found) <= 50


def test_a_comparison_with_messages_of_many_packages_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A type may have another package in the reader, so that each pair of packages is possible."""
    monkeypatch.setattr(parsed_schema, "COMPARISONS_MAX", 100)
    names = [f"p{n}" for n in range(12)]
    files = {
        f"{name}.proto": f"{PROTO3} package {name}; message M {{ int32 long_name = 1; }}"
        for name in names
    }
    imports = " ".join(f'import "{path}";' for path in files)

    def source(shift: int) -> str:
        pairs = [(n, m) for n in range(12) for m in range(12)]
        fields = (
            f"{names[m if shift else n]}.M f{number} = {number + 1};"
            for number, (n, m) in enumerate(pairs)
        )
        return f"{PROTO3} {imports} message Order {{ {' '.join(fields)} }}"

    assert reasons(source(0), source(1), files, files) == [TOO_MANY_COMPARISONS]
    monkeypatch.undo()
    assert reasons(source(0), source(1), files, files) == []
