"""Changes of a JSON schema that a reader accepts, as Confluent decides them."""

from __future__ import annotations

import json
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest
import re2

from kafkapy.schemas import parsed_schema
from kafkapy.schemas.json_schema import JsonSchema, parse_json_schema
from kafkapy.schemas.parsed_schema import TOO_MANY_COMPARISONS, InvalidSchema

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
NULL, BOOLEAN, ARRAY, OBJECT = ({"type": one} for one in ("null", "boolean", "array", "object"))
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
DRAFT_2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
OK = ""


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def of_numbers(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": NUMBER}


def with_pattern(pattern: str, schema: Any, **properties: Any) -> dict[str, Any]:
    return {**closed(**properties), "patternProperties": {pattern: schema}}


def requiring(*names: str, **properties: Any) -> dict[str, Any]:
    return {**closed(**properties), "required": list(names)}


def pair(*items: Any, rest: Any = True) -> dict[str, Any]:
    first = {"items": list(items)} if items else {}
    return {"type": "array", **first, "additionalItems": rest}


def pair_2020(*items: Any, rest: Any = True) -> dict[str, Any]:
    return {**DRAFT_2020, "type": "array", "prefixItems": list(items), "items": rest}


def schema(raw: Any, **references: str) -> JsonSchema:
    return parse_json_schema(json.dumps(raw), references)


def expect(writer: Any, reader: Any, reason: str) -> None:
    """`reason` is a part of the reasons; an empty one says that the schemas are compatible."""
    reasons = schema(reader).incompatibilities(schema(writer))
    assert bool(reasons) == bool(reason), reasons
    assert reason in "\n".join(reasons)


# The older schema, the newer one, why the newer cannot read the data of the older, and why the
# older cannot read the data of the newer.
Change = tuple[Any, Any, str, str]

TYPES: list[Change] = [
    (STRING, STRING, OK, OK),
    (STRING, NUMBER, "#: the type was changed from string to number", "from number to string"),
    (OBJECT, ARRAY, "from object to array", "from array to object"),
    (BOOLEAN, NULL, "from boolean to null", "from null to boolean"),
    (INTEGER, NUMBER, OK, "#: the type was narrowed from number to integer"),
    (STRING, {**STRING, "title": "a", "description": "b", "default": "c"}, OK, OK),
    ({"type": "string"}, {"type": ["string", "null"]}, OK, "from string or null to string"),
    ({"type": ["object"]}, {"type": ["object", "array"]}, OK, "#: anyOf was narrowed"),
    ({"type": ["string", "null"]}, {"type": ["null", "string"]}, OK, OK),
    ({"type": ["integer", "null"]}, {"type": ["null", "number"]}, OK, "subschemas of anyOf"),
    (STRING, {}, OK, "#: the type was changed from any value to string"),
    (STRING, True, OK, "from any value to string"),
    ({}, True, OK, OK),
    (False, STRING, OK, "#: the type was changed from string to no value"),
    (False, True, OK, "from any value to no value"),
    (False, False, OK, OK),
    (STRING, {**STRING, "format": "date"}, OK, OK),
    # Before 2019-09 `format` is a keyword of strings: Confluent reads an allOf of both kinds.
    (INTEGER, {**INTEGER, "format": "int32"}, "from integer to integer and format", OK),
    ({**DRAFT_2020, **INTEGER}, {**DRAFT_2020, **INTEGER, "format": "int32"}, OK, OK),
]


def limits(kind: str, least: str, most: str) -> list[Change]:
    def one(**keywords: Any) -> dict[str, Any]:
        return {"type": kind, **keywords}

    return [
        (one(), one(**{most: 5}), f"#/{most}: {most} was added", OK),
        (one(**{most: 5}), one(**{most: 7}), OK, f"{most} was decreased from 7 to 5"),
        (one(), one(**{least: 5}), f"#/{least}: {least} was added", OK),
        (one(**{least: 5}), one(**{least: 7}), f"{least} was increased from 5 to 7", OK),
    ]


KEYWORDS: list[Change] = [
    *limits("string", "minLength", "maxLength"),
    *limits("number", "minimum", "maximum"),
    *limits("integer", "exclusiveMinimum", "exclusiveMaximum"),
    *limits("array", "minItems", "maxItems"),
    *limits("object", "minProperties", "maxProperties"),
    ({"maxProperties": 1}, {"maxProperties": 2}, OK, "maxProperties was decreased from 2 to 1"),
    (STRING, {**STRING, "pattern": "a"}, "#/pattern: pattern was added", OK),
    (
        {**STRING, "pattern": "a"},
        {**STRING, "pattern": "b"},
        'pattern was changed from "a" to "b"',
        'from "b" to "a"',
    ),
    (NUMBER, {**NUMBER, "multipleOf": 2}, "#/multipleOf: multipleOf was added", OK),
    (
        {**NUMBER, "multipleOf": 10},
        {**NUMBER, "multipleOf": 2},
        OK,
        "multipleOf was changed from 2 to 10, not a divisor",
    ),
    ({**NUMBER, "multipleOf": 10}, {**NUMBER, "multipleOf": 11}, "to 11", "to 10"),
    (
        {"type": ["integer", "string"], "multipleOf": 10, "pattern": "a"},
        {"type": ["integer", "string"], "multipleOf": 5, "pattern": "a"},
        OK,
        "the subschemas of anyOf were changed",
    ),
    ({"type": ["string"], "pattern": "a"}, {**STRING, "pattern": "a"}, OK, OK),
    ({**NUMBER, "multipleOf": 0.3}, {**NUMBER, "multipleOf": 0.1}, OK, "from 0.1 to 0.3"),
    (ARRAY, {**ARRAY, "uniqueItems": True}, "#/uniqueItems: uniqueItems was added", OK),
    (ARRAY, {**ARRAY, "uniqueItems": False}, OK, OK),
    (
        {**DRAFT_4, **NUMBER, "maximum": 5},
        {**DRAFT_4, **NUMBER, "maximum": 5, "exclusiveMaximum": True},
        "#/exclusiveMaximum: exclusiveMaximum was added",
        OK,
    ),
    (
        {**DRAFT_4, **NUMBER, "minimum": 5, "exclusiveMinimum": True},
        {**NUMBER, "exclusiveMinimum": 6},
        "exclusiveMinimum was increased from 5 to 6",
        "minimum was added",
    ),
    (
        {**DRAFT_4, **NUMBER, "minimum": 5, "exclusiveMinimum": False},
        {**DRAFT_4, **NUMBER, "minimum": 5},
        OK,
        OK,
    ),
    ({"enum": ["a"]}, {"enum": ["b", "a"]}, OK, '#/enum: enum no longer contains "b"'),
    ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, 'contains "b"', 'contains "c"'),
    ({"enum": [1, None]}, {"enum": [True, None]}, "contains 1", "contains true"),
    ({**STRING, "enum": ["a"]}, STRING, OK, "from string to enum and string"),
    ({**STRING, "enum": ["a"]}, {**STRING, "enum": ["a", "b"]}, OK, "subschemas of allOf"),
    ({"const": 1}, {"const": 1}, OK, OK),
    ({"const": 1}, {"const": 2}, "const was changed from 1 to 2", "from 2 to 1"),
    ({"const": None}, {"const": False}, "from null to false", "from false to null"),
    ({"const": 1}, {"enum": [1, 2]}, "from const to enum", "from enum to const"),
    ({**DRAFT_4, "const": 1}, {**DRAFT_4, "const": 2}, OK, OK),
]

PROPERTIES: list[Change] = [
    (opened(a=STRING), opened(a=NUMBER), "#/properties/a: the type was changed", "#/properties/a"),
    (opened(a=INTEGER), opened(a=NUMBER), OK, "#/properties/a: the type was narrowed"),
    # An open content model allowed the property with any value.
    (
        opened(),
        opened(a=STRING),
        "#/properties/a: the property was added to an open content model",
        OK,
    ),
    (opened(), opened(a={}), OK, OK),
    (opened(), opened(a=True), OK, OK),
    (
        closed(),
        closed(a=STRING),
        OK,
        "#/properties/a: the property was removed from a closed content model",
    ),
    (closed(a=False), closed(), OK, OK),
    (closed(a=STRING), opened(), OK, "#/additionalProperties: additional properties are no longer"),
    (closed(), {}, OK, "from any value to object"),
    (of_numbers(), of_numbers(a=NUMBER), OK, OK),
    (of_numbers(), of_numbers(a=INTEGER), "not cover the added property", OK),
    (of_numbers(), of_numbers(a=STRING), "not cover the added", "not cover the removed property"),
    (closed(a=NUMBER), of_numbers(), OK, "additional properties are no longer allowed"),
    (closed(a=STRING), of_numbers(), "not cover the removed property", "no longer allowed"),
    (
        closed(a=STRING),
        {**closed(), "additionalProperties": {"oneOf": [NULL, STRING]}},
        OK,
        "no longer allowed",
    ),
    (with_pattern("^i_", INTEGER), with_pattern("^i_", INTEGER, i_a=NUMBER), OK, "not cover"),
    (
        with_pattern("^i_", NUMBER),
        with_pattern("^i_", NUMBER, i_a=STRING),
        "not cover",
        "not cover",
    ),
    (
        with_pattern("^i_", NUMBER),
        with_pattern("^i_", NUMBER, a=STRING),
        OK,
        "removed from a closed content model",
    ),
    ({"patternProperties": {"a": NUMBER}}, {"patternProperties": {"a": STRING}}, OK, OK),
    # RE2 has no lookahead: such a pattern covers no property.
    (
        with_pattern("^(?=a)", STRING),
        with_pattern("^(?=a)", STRING, a=STRING),
        OK,
        "removed from a closed content model",
    ),
    (of_numbers(), opened(), OK, "#/additionalProperties: additional properties were narrowed"),
    (of_numbers(), {**OBJECT, "additionalProperties": STRING}, "to string", "to number"),
    (
        {**OBJECT, "additionalProperties": INTEGER},
        of_numbers(),
        OK,
        "#/additionalProperties: the type was narrowed",
    ),
    ({**DRAFT_2020, "unevaluatedProperties": False}, DRAFT_2020, OK, "from any value to object"),
]

REQUIRED: list[Change] = [
    (
        requiring(a=STRING),
        requiring("a", a=STRING),
        "#/properties/a: the property became required and has no default",
        OK,
    ),
    (requiring(a=STRING), requiring("a", a={**STRING, "default": "b"}), OK, OK),
    (requiring("a", a=STRING), requiring("b", a=STRING), OK, "became required"),
    (
        closed(),
        requiring("a", a=STRING),
        "#/properties/a: a required property without a default was added",
        "removed from a closed content model",
    ),
    (closed(), requiring("a", a={**STRING, "default": "b"}), OK, "removed from a closed"),
    (of_numbers(), {**of_numbers(a=NUMBER), "required": ["a"]}, "a required property", OK),
]

DEPENDENCIES: list[Change] = [
    (OBJECT, {**OBJECT, "dependencies": {"a": ["b"]}}, "#/dependencies/a: the dependency was", OK),
    (
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["b", "c"]}},
        "#/dependencies/a: the dependency was extended by c",
        OK,
    ),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["c"]}}, "by c", "by b"),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"b": ["a"]}}, "/b: the", "/a: the"),
    ({"dependencies": {}}, {"dependencies": {"a": STRING}}, "the dependency was added", OK),
    ({"dependencies": {"a": INTEGER}}, {"dependencies": {"a": NUMBER}}, OK, "narrowed"),
    ({"dependencies": {"a": STRING}}, {"dependencies": {"a": ["b"]}}, "added", "added"),
    (
        {**DRAFT_2019, "dependentRequired": {"a": ["b"]}},
        {**DRAFT_2019, "dependentRequired": {"a": ["b", "c"]}},
        "extended by c",
        OK,
    ),
    (
        {**DRAFT_2020, "dependentSchemas": {"a": opened()}},
        {**DRAFT_2020, "dependentSchemas": {"a": closed()}},
        "#/dependencies/a/additionalProperties",
        OK,
    ),
    ({"dependentRequired": 5}, {"dependentRequired": {"a": ["b"]}}, OK, OK),
]

ITEMS: list[Change] = [
    (ARRAY, {**ARRAY, "items": STRING}, "#/items: the schema of all items was added", OK),
    ({"items": STRING}, {"items": NUMBER}, "#/items: the type was changed", "#/items: the type"),
    ({"items": INTEGER}, {"items": NUMBER}, OK, "#/items: the type was narrowed"),
    (pair(STRING), pair(NUMBER), "#/items/0: the type was changed", "#/items/0"),
    (pair(STRING), ARRAY, OK, "#/items/0: the item was added to an open content model"),
    (pair(STRING), pair(STRING, True), OK, OK),
    (pair(STRING, rest=False), pair(STRING, NUMBER, rest=False), OK, "removed from a closed"),
    (pair(STRING, rest=False), pair(STRING, False, rest=False), OK, OK),
    (pair(STRING, rest=False), pair(STRING, BOOLEAN), OK, "additional items are no longer allowed"),
    (pair(rest=NUMBER), pair(NUMBER, rest=NUMBER), OK, OK),
    (
        pair(rest=NUMBER),
        pair(STRING, rest=NUMBER),
        "not cover the added item",
        "not cover the remo",
    ),
    (pair(NUMBER, rest=False), pair(rest=NUMBER), OK, "#/additionalItems: additional items are no"),
    (pair(rest=NUMBER), pair(), OK, "#/additionalItems: additional items were narrowed"),
    (pair(rest=INTEGER), pair(rest=NUMBER), OK, "#/additionalItems: the type was narrowed"),
    (pair_2020(STRING), pair_2020(NUMBER), "#/items/0: the type was changed", "#/items/0"),
    (pair_2020(STRING), {**DRAFT_2020, **ARRAY}, OK, "#/items/0: the item was added"),
    (pair_2020(STRING, rest=NUMBER), pair_2020(STRING, NUMBER, rest=NUMBER), OK, OK),
    (pair_2020(STRING, rest=NUMBER), pair_2020(STRING, STRING, rest=NUMBER), "added item", "remov"),
    (
        pair_2020(STRING),
        pair_2020(STRING, rest=False),
        "#/additionalItems: additional items are",
        OK,
    ),
    ({**DRAFT_2020, "items": True}, {**DRAFT_2020, "items": False}, "#/additionalItems", OK),
    ({**DRAFT_2020, "items": STRING}, {**DRAFT_2020, "items": NUMBER}, "#/items", "#/items"),
    ({**DRAFT_2020, "items": STRING}, {"items": STRING}, OK, OK),
    (pair(STRING), {**DRAFT_2019, **pair(STRING)}, OK, OK),
]


def all_of(*raw: Any) -> dict[str, Any]:
    return {"allOf": list(raw)}


def any_of(*raw: Any) -> dict[str, Any]:
    return {"anyOf": list(raw)}


def one_of(*raw: Any) -> dict[str, Any]:
    return {"oneOf": list(raw)}


SHORT = {**STRING, "maxLength": 3}
COMBINED: list[Change] = [
    (one_of(STRING), one_of(NUMBER), "#: the subschemas of oneOf were changed", "were changed"),
    (one_of(STRING), one_of(NUMBER, STRING), OK, "#: oneOf was narrowed"),
    (one_of(SHORT), one_of(BOOLEAN, STRING), OK, "oneOf was narrowed"),
    (any_of(STRING, NUMBER), any_of(NUMBER, STRING), OK, OK),
    (any_of(STRING, NUMBER), any_of(NULL, STRING), "subschemas of anyOf", "subschemas of anyOf"),
    # STRING accepts both of the writer's subschemas, but each needs a counterpart of its own.
    (any_of(SHORT, STRING), any_of(STRING, NULL), "subschemas of anyOf", "subschemas of anyOf"),
    # The first match of SHORT, STRING, must give way to the only match of STRING.
    (any_of(SHORT, STRING), any_of(STRING, SHORT), OK, OK),
    (all_of(STRING, {"enum": ["a"]}), all_of(STRING), OK, "#: allOf was extended"),
    (all_of(STRING, STRING), all_of(STRING), OK, OK),
    (all_of(STRING, SHORT), all_of(NUMBER, STRING), "subschemas of allOf", "subschemas of allOf"),
    (one_of(STRING), any_of(STRING), OK, OK),
    (one_of(STRING, NULL), any_of(STRING, NULL), OK, "#: anyOf was changed to oneOf"),
    (all_of(STRING), any_of(NUMBER, STRING), OK, "anyOf was changed to allOf"),
    (all_of(STRING, SHORT), one_of(STRING), OK, "oneOf was changed to allOf"),
    (any_of(STRING, NUMBER), all_of(STRING), "anyOf was changed to allOf", OK),
    (all_of(STRING), one_of(STRING), OK, OK),
    (STRING, any_of(NUMBER, STRING), OK, "#: the type was changed from anyOf to string"),
    (STRING, one_of(NUMBER, STRING), OK, "from oneOf to string"),
    (SHORT, one_of(NUMBER, STRING), OK, "from oneOf to string"),
    (STRING, one_of(NUMBER, NULL), "from string to oneOf", "from oneOf to string"),
    (STRING, all_of(STRING), OK, OK),
    (STRING, all_of(STRING, {"maxLength": 3}), "from string to allOf", OK),
    (STRING, any_of(STRING), OK, OK),
    ({"not": NUMBER}, {"not": INTEGER}, OK, "#/not: not was extended"),
    ({"not": STRING}, {"not": NUMBER}, "#/not: not was extended", "#/not: not was extended"),
    ({"not": STRING}, {}, OK, "from any value to not"),
    ({"if": STRING, "then": SHORT}, {"if": STRING, "then": {"maxLength": 9}}, OK, OK),
    (STRING, {**STRING, "if": SHORT}, "from string to string and if", OK),
]

NAME = {"definitions": {"name": STRING}, "$ref": "#/definitions/name"}
TREE = {**opened(left={"$ref": "#"}, value=INTEGER), "$id": "http://a/tree"}
REFS: list[Change] = [
    (STRING, NAME, OK, OK),
    (NUMBER, NAME, "from number to string", "from string to number"),
    (
        {"items": STRING},
        {"items": {"$ref": "#/definitions/n"}, "definitions": {"n": STRING}},
        OK,
        OK,
    ),
    (TREE, TREE, OK, OK),
    (TREE, opened(left={"$ref": "#"}, value=STRING), "#/properties/value: the", "#/properties/v"),
    (TREE, opened(left=TREE, value=NUMBER), OK, "#/properties/value: the type was narrowed"),
    # Before 2019-09 the keywords beside a $ref have no effect.
    (NAME, {**NAME, "maxLength": 3}, OK, OK),
    ({**DRAFT_2020, **NAME}, {**DRAFT_2020, **NAME, "maxLength": 3}, "and maxLength", OK),
    ({**DRAFT_2020, "$ref": "#", **STRING}, {**DRAFT_2020, "$ref": "#", **STRING}, OK, OK),
    (
        {**DRAFT_2020, "$ref": "#n", "$defs": {"n": {"$anchor": "n", **STRING}}},
        {"$ref": "#n", "definitions": {"n": {"$id": "#n", **STRING}}},
        OK,
        OK,
    ),
    (
        {"$id": "http://a/b", "$ref": "c", "definitions": {"c": {"$id": "c", **STRING}}},
        NUMBER,
        "from string to number",
        "from number to string",
    ),
]

DRAFTS = {
    "4": DRAFT_4,
    "6": {"$schema": "http://json-schema.org/draft-06/schema#"},
    "7": {"$schema": "http://json-schema.org/draft-07/schema#"},
    "2019-09": DRAFT_2019,
    "2020-12": DRAFT_2020,
}

CHANGES = [*TYPES, *KEYWORDS, *PROPERTIES, *REQUIRED, *DEPENDENCIES, *ITEMS, *COMBINED, *REFS]


@pytest.mark.parametrize(("older", "newer", "forward", "backward"), CHANGES)
def test_change(older: Any, newer: Any, forward: str, backward: str) -> None:
    expect(older, newer, forward)
    expect(newer, older, backward)


@pytest.mark.parametrize(
    ("draft", "keyword"),
    [
        *((draft, "$dynamicRef") for draft in ("4", "6", "7", "2019-09")),
        *((draft, "$recursiveRef") for draft in ("4", "6", "7", "2020-12")),
    ],
)
def test_keywords_of_references_that_a_draft_does_not_have(draft: str, keyword: str) -> None:
    unknown = {**DRAFTS[draft], keyword: "#/nowhere"}
    expect(STRING, unknown, OK)
    expect(unknown, STRING, "from any value to string")
    expect({**unknown, **SHORT}, STRING, OK)


WORDS = """
    $anchor $defs $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $ref $schema
    additionalItems additionalProperties allOf anyOf const contains contentSchema default
    definitions dependencies dependentRequired dependentSchemas else enum exclusiveMaximum
    exclusiveMinimum format id if items maxContains maxItems maxLength maxProperties maximum
    minContains minItems minLength minProperties minimum multipleOf not oneOf pattern
    patternProperties prefixItems properties propertyNames required then type unevaluatedItems
    unevaluatedProperties uniqueItems
"""
VALUES = (None, True, 5, "#", "a", [], ["a"], [{}], {}, {"a": {}, "b": ["$ref"]}, {"a": ["b"]},
          {"$ref": "#/none"}, {"a": {"$ref": "#/none"}}, {"$id": 5})  # fmt: skip


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
def test_each_keyword_with_each_kind_of_value(draft: dict[str, Any]) -> None:
    """Such a schema is refused, or can be compared: no exception reaches the client."""
    other = schema({"type": ["string", "integer", "object", "array"]})
    parsed = 0
    for word, value in product(WORDS.split(), VALUES):
        raw = {"type": ["integer", "string", "object", "array"], **draft, word: value}
        try:
            found, again = schema(raw), schema(raw)
        except InvalidSchema:
            continue
        parsed += 1
        assert found.incompatibilities(again) == []
        assert isinstance(other.incompatibilities(found), list)
    assert parsed > 100


def test_all_differences_are_reported_with_their_paths() -> None:
    older = opened(a=STRING, b={"type": "array", "items": opened(c=NUMBER)})
    newer = opened(a=SHORT, b={"type": "array", "items": opened(c=INTEGER)})
    assert schema(newer).incompatibilities(schema(older)) == [
        "#/properties/a/maxLength: maxLength was added",
        "#/properties/b/items/properties/c: the type was narrowed from number to integer",
    ]


def test_acceptance_that_relied_on_a_recursive_pair_is_checked_again() -> None:
    def raw(value: Any) -> dict[str, Any]:
        a = opened(b={"$ref": "#/definitions/b"}, value=value)
        b = opened(a={"$ref": "#/definitions/a"})
        choice = one_of({"$ref": "#/definitions/a"}, True)
        properties = {"choice": choice, "b": {"$ref": "#/definitions/b"}}
        return {**opened(**properties), "definitions": {"a": a, "b": b}}

    expect(raw(STRING), raw(NUMBER), "#/properties/b/properties/a/properties/value: the type was")


def test_definitions_that_refer_to_each_other_are_compared_in_reasonable_time() -> None:
    names = [f"d{number}" for number in range(12)]
    union = {"anyOf": [{"$ref": f"#/definitions/{name}"} for name in names]}

    def raw(last: Any) -> dict[str, Any]:
        found = {name: opened(**{name: union, "kind": {"const": name}}) for name in names}
        found[names[-1]]["properties"]["leaf"] = last
        return {"definitions": found, **union}

    assert schema(raw(STRING)).incompatibilities(schema(raw(STRING))) == []
    assert schema(raw(NUMBER)).incompatibilities(schema(raw(STRING))) != []


def test_the_reasons_of_one_schema_are_limited() -> None:
    """Each definition has two properties of the next one: there are 2^40 paths to the change."""

    def raw(last: Any) -> dict[str, Any]:
        links = [{"$ref": f"#/definitions/d{n + 1}"} for n in range(40)]
        found = {f"d{n}": opened(a=link, b=link) for n, link in enumerate(links)}
        return {"definitions": {**found, "d40": last}, "$ref": "#/definitions/d0"}

    assert schema(raw(STRING)).incompatibilities(schema(raw(STRING))) == []
    reasons = schema(raw(NUMBER)).incompatibilities(schema(raw(STRING)))
    assert 0 < len(reasons) <= 50
    assert "the type was changed from string to number" in reasons[0]


def test_long_reasons_are_cut() -> None:
    name = "a" * 1000
    (reason,) = schema(opened(**{name: NUMBER})).incompatibilities(schema(opened(**{name: STRING})))
    assert reason.startswith("#/properties/aaa")
    assert len(reason) < 1000


@pytest.mark.parametrize("frames", range(8))
def test_a_long_chain_of_references_is_refused_rather_than_followed_without_end(
    frames: int,
) -> None:
    """At any place of Python's stack. At some, a package in Rust would panic at its end."""
    chain = {f"d{n}": {"not": {"$ref": f"#/definitions/d{n + 1}"}} for n in range(2000)}
    long = {"definitions": {**chain, "d2000": STRING}, "$ref": "#/definitions/d0"}

    def compare(deeper: int) -> None:
        if deeper:
            compare(deeper - 1)
        else:
            expect(long, long, "#: the schemas are nested too deeply to be compared")

    compare(frames)


@pytest.mark.parametrize("kind", ["not", "properties", "items", "allOf", "anyOf"])
def test_schemas_that_are_nested_as_deeply_as_they_may_be(kind: str) -> None:
    def around(inner: Any) -> Any:
        if kind == "properties":
            return {"type": "object", "properties": {"a": inner}}
        if kind == "items":
            return {"type": "array", "items": inner}
        return {kind: inner if kind == "not" else [inner, {"type": "number"}]}

    nested: Any = {"$ref": "#/definitions/d0"}
    definitions: Any = {}
    for n in range(75):
        definitions[f"d{n}"] = around({"$ref": f"#/definitions/d{n + 1}"})
    long = {"definitions": {**definitions, "d75": STRING}, **nested}
    expect(long, long, "")


def test_a_value_that_is_nested_too_deeply() -> None:
    child = {"type": "object", "properties": {"a": {"$ref": "#/definitions/n"}}}
    nested = parse_json_schema(
        json.dumps({"definitions": {"n": child}, "$ref": "#/definitions/n"}), {}
    )
    value: Any = {}
    for _ in range(900):
        value = {"a": value}
    assert nested.fault(value) == "$: the value, or its schema, is nested too deeply"


def test_subschemas_are_matched_by_exchanges() -> None:
    """Two subschemas of the reader accept each of the writer's; only one accepts the first."""
    older = [{"enum": [n]} for n in range(30)]
    newer = [{"enum": [n, n + 1]} for n in range(30)]
    for order in (older, older[::-1]):
        expect(any_of(*order), any_of(*newer), OK)
        expect(any_of(*order, {"enum": [0], "title": ""}), any_of(*newer, NULL), "were changed")


def test_comparisons_that_are_known_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """References to one type are compared once, but each is still looked at with each."""
    monkeypatch.setattr(parsed_schema, "COMPARISONS_MAX", 1000)

    def union(name: str) -> dict[str, Any]:
        refs = [{"$ref": "#/definitions/a", "title": f"{name}{n}"} for n in range(150)]
        return {"anyOf": refs, "definitions": {"a": STRING}}

    expect(union("older"), union("newer"), TOO_MANY_COMPARISONS)


def test_values_are_made_text_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be large, and are compared in pairs."""
    dumps = Mock(side_effect=json.dumps)
    monkeypatch.setattr(json, "dumps", dumps)
    older, newer = ([{"const": {"a": sign * n}} for n in range(40)] for sign in (1, -1))
    expect(any_of(*older), any_of(*newer), "were changed")
    assert 0 < dumps.call_count < 4 * 80


def patterns(*names: str, size: int = 30) -> dict[str, Any]:
    """An object with a property for each name, and patterns that match none of them."""
    large = {rf"^{n}(\pL{{40}}){{3}}": STRING for n in range(size)}
    return {**closed(**dict.fromkeys(names, STRING)), "patternProperties": large}


def test_a_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Mock(side_effect=re2.compile)
    monkeypatch.setattr(re2, "compile", compiled)
    expect(patterns("a", "b", "c"), patterns(), "removed from a closed content model")
    assert compiled.call_count == 30


def test_large_patterns_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern may take milliseconds to be compiled."""
    monkeypatch.setattr(parsed_schema, "COMPARISONS_MAX", 1000)
    expect(patterns("a"), patterns(), TOO_MANY_COMPARISONS)
    expect(patterns("a", size=1), patterns(size=1), "removed from a closed content model")


def test_a_comparison_gives_up() -> None:
    """An anyOf of 50 objects, each with an anyOf of 50, would take minutes; other requests wait."""

    def schema(prefix: str) -> JsonSchema:
        inner = [
            {"anyOf": [{"const": f"{prefix}{outer}-{n}"} for n in range(50)]} for outer in range(50)
        ]
        objects = [{"type": "object", "properties": {"a": one}} for one in inner]
        return parse_json_schema(json.dumps({"anyOf": objects}), {})

    assert schema("r").incompatibilities(schema("w")) == [f"#: {TOO_MANY_COMPARISONS}"]
