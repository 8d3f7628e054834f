"""json_subschemas: JSON schemas that are parsed or refused, and their references."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.schemas import json_subschemas
from kafkapy.schemas.json_schema import parse_json_schema
from kafkapy.schemas.parsed_schema import InvalidSchema
from tests.unit.schemas.steps import assert_linear, steps

DRAFT_4 = '"$schema": "http://json-schema.org/draft-04/schema#"'
DRAFT_2019 = '"$schema": "https://json-schema.org/draft/2019-09/schema"'
DRAFT_2020 = '"$schema": "https://json-schema.org/draft/2020-12/schema"'
DEEP = 3000

INVALID = [
    ("", "not valid JSON: Expecting value: line 1 column 1"),
    ('{"type": "string"', "not valid JSON"),
    ('{"maximum": NaN}', "the number NaN is not supported"),
    ('{"maximum": 1e999}', "the number 1e999 is not supported"),
    ('{"multipleOf": ' + "9" * 400 + "}", "the number 9{50} is not supported"),
    ('{"enum": [-' + "9" * 5000 + "]}", "the number -9{49} is not supported"),
    ('{"multipleOf": 1e-400}', "^#/multipleOf: 0.0 is less than or equal to the minimum of 0"),
    ('{"title": "\\ud800"}', "surrogates not allowed"),
    ("5", "A JSON schema is an object or a boolean"),
    ("[]", "A JSON schema is an object or a boolean"),
    ('{"type": "text"}', "^#/type: 'text' is not valid under any of the given schemas$"),
    ('{"properties": {"a": {"minLength": -1}}}', "^#/properties/a/minLength: -1 is less than"),
    ('{"required": true}', "^#/required: True is not of type 'array'"),
    ('{"exclusiveMaximum": true, "maximum": 5}', "^#/exclusiveMaximum: True is not of type"),
    (f'{{{DRAFT_4}, "exclusiveMaximum": 5}}', "exclusiveMaximum"),
    (f'{{{DRAFT_2020}, "items": [{{}}]}}', "^#/items: "),
    ('{"$ref": "other.json"}', r'\$ref "other.json" is neither in the schema nor a registered'),
    ('{"items": {"$ref": "#/definitions/a"}}', r'\$ref "#/definitions/a" is neither'),
    ('{"$ref": "#name"}', r'\$ref "#name" is neither'),
    ('{"$ref": "#/title", "title": "a"}', r'\$ref "#/title" is neither'),
    ('{"$ref": "http://[a"}', r'\$ref "http://\[a" is neither'),
    (f'{{{DRAFT_4}, "$ref": 5}}', r'\$ref "5" is neither'),
    ('{"$ref": "#"}', r'\$ref "#" refers to itself'),
    ('{"items": {"$ref": "#/items"}}', r'\$ref "#/items" refers to itself'),
    ('{"anyOf": [{}], "items": {"$ref": "#/anyOf/1"}}', r'\$ref "#/anyOf/1" is neither'),
    ('{"anyOf": [{}], "items": {"$ref": "#/anyOf/x"}}', r'\$ref "#/anyOf/x" is neither'),
    (f'{{"anyOf": [{{}}], "$ref": "#/anyOf/{"9" * 5000}"}}', "is neither"),
    ('{"dependencies": {"a": ["b"], "c": {"$ref": "#/none"}}}', r'\$ref "#/none" is neither'),
    ('{"$id": 5}', r"^#/\$id: 5 is not of type 'string'$"),
    (f'{{{DRAFT_4}, "id": 5}}', "^#/id: 5 is not of type 'string'$"),
    (f'{{{DRAFT_2020}, "items": {{"$id": []}}}}', r"^#/items/\$id: \[\] is not of type 'string'$"),
    ('{"$id": "http://[a"}', "An identifier of the schema is not a URI"),
    ('{"$id": "http://a/", "items": {"$id": "http://[a"}}', "schema is not a URI: Invalid"),
    (f'{{"$id": "http://{"a" * 2000}"}}', "has more than 2,000 characters"),
    ('{"$ref": "#/a", "a": {"type": 7}}', "^#/type: 7 is not valid"),
    ('{"$ref": "other.json"', "not valid JSON"),
    ("[" * DEEP, "The schema is nested too deeply"),
    ('{"not":' * DEEP + "{}" + "}" * DEEP, "The schema is nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), INVALID)
def test_invalid_schemas_are_refused_with_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message) as refused:
        parse_json_schema(text, {})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "false",
        "{}",
        f'{{{DRAFT_4}, "maximum": 5, "exclusiveMaximum": true}}',
        '{"$schema": "http://json-schema.org/draft-06/schema#", "exclusiveMaximum": 5}',
        '{"$schema": "http://example.com/unknown", "type": "string"}',
        f'{{{DRAFT_2019}, "items": {{"$recursiveRef": "#"}}}}',
        f'{{{DRAFT_2020}, "items": {{"$dynamicRef": "#a"}}, "$dynamicAnchor": "a"}}',
        '{"properties": {"$ref": {"type": "string"}, "id": {"type": "integer"}}}',
        '{"enum": [{"$ref": "not a reference"}]}',
        '{"$ref": "http://json-schema.org/draft-07/schema#"}',
        '{"pattern": "\\\\p{L}(?<name>a)"}',
        '{"prefixItems": 5, "unknown": [], "connect.type": "bytes"}',
        '{"dependencies": {"a": {}, "b": ["$ref"]}}',
        '{"dependencies": {"a": {}, "b": ["c"]}, "items": {"$ref": "#n"}, "not": {"$id": "#n"}}',
        f'{{{DRAFT_2019}, "dependencies": {{"a": {{"$ref": "#/none"}}}}}}',
        f'{{{DRAFT_2020}, "dependencies": {{"a": {{"$ref": "#/none"}}}}}}',
        '{"items": {"$ref": "#/unknown/0/a~1b%25"}, "unknown": [{"a/b%": {"type": "string"}}]}',
    ],
)
def test_valid_schema_can_read_its_own_data(text: str) -> None:
    schema = parse_json_schema(text, {})
    assert schema.incompatibilities(schema) == []


def test_the_text_keeps_the_order_of_keys_and_the_identity_does_not() -> None:
    one = parse_json_schema('{ "type": "object",\n "description": "é", "properties": {} }', {})
    other = parse_json_schema('{"properties":{},"description":"\\u00e9","type":"object"}', {})
    assert one.text == '{"type":"object","description":"é","properties":{}}'
    assert one.identity == '{"description":"é","properties":{},"type":"object"}'
    assert one.identity == other.identity
    assert one.text != other.text


def test_references_are_found_by_their_names() -> None:
    other = json.dumps({"definitions": {"id": {"type": "integer"}}, "type": "string"})
    whole = parse_json_schema('{"$ref": "other.json"}', {"other.json": other})
    inner = parse_json_schema('{"$ref": "other.json#/definitions/id"}', {"other.json": other})
    number = parse_json_schema('{"type": "number"}', {})
    assert whole.incompatibilities(number) == ["#: the type was changed from number to string"]
    assert number.incompatibilities(inner) == []


def test_a_relative_reference_is_resolved_against_the_id() -> None:
    text = '{"$id": "http://a.b/c/main.json", "items": {"$ref": "other.json"}}'
    other = '{"$id": "http://a.b/c/other.json", "items": {"$ref": "third.json"}}'
    third = '{"type": "string"}'
    schema = parse_json_schema(text, {"other.json": other, "third.json": third})
    absolute = parse_json_schema(text, {"http://a.b/c/other.json": third})
    assert schema.incompatibilities(schema) == []
    assert absolute.incompatibilities(parse_json_schema('{"items": ' + third + "}", {})) == []


def test_documents_with_the_same_id_are_told_apart() -> None:
    """For example, the id was copied with the rest of the schema."""
    number, text = (
        {"$id": "http://a/b", "definitions": {"a": {"type": kind}}, "items": {"$ref": "#/items2"}}
        | {"items2": {"$ref": "#/definitions/a"}}
        for kind in ("number", "string")
    )
    both = number | {"properties": {"p": {"$ref": "other.json"}}}
    schema = parse_json_schema(json.dumps(both), {"other.json": json.dumps(text)})
    expected = parse_json_schema(
        '{"items": {"type": "number"}, "properties": {"p": {"items": {"type": "string"}}}}', {}
    )
    assert schema.incompatibilities(expected) == expected.incompatibilities(schema) == []


def test_a_part_of_a_reference_has_the_draft_of_its_document() -> None:
    old = f'{{{DRAFT_4}, "definitions": {{"n": {{"maximum": 5, "exclusiveMaximum": true}}}}}}'
    schema = parse_json_schema('{"$ref": "old.json#/definitions/n"}', {"old.json": old})
    new = parse_json_schema('{"exclusiveMaximum": 5}', {})
    assert new.incompatibilities(schema) == []


def test_too_many_references_are_refused() -> None:
    """Each is found relative to the identifier of each."""
    others = {f"{n}.json": f'{{"$id": "http://host{n}/"}}' for n in range(300)}
    with pytest.raises(InvalidSchema, match="The schema has too many references"):
        parse_json_schema("{}", others)


def to_one_anchor(size: int) -> dict[str, Any]:
    anchored = {"definitions": {"a": {"$id": "#n"}}}
    return {"properties": {f"p{n}": {"$ref": "#n"} for n in range(size)}, **anchored}


def to_ids(size: int) -> dict[str, Any]:
    names = range(size)
    return {
        "properties": {f"p{n}": {"$ref": f"http://a/{n}"} for n in names},
        "definitions": {f"d{n}": {"$id": f"http://a/{n}"} for n in names},
    }


def chain(size: int) -> dict[str, Any]:
    links = {f"d{n}": {"$ref": f"#/definitions/d{n + 1}"} for n in range(size)}
    return {"definitions": {**links, f"d{size}": {}}}


@pytest.mark.parametrize("raw", [to_one_anchor, to_ids, chain])
def test_a_reference_is_found_without_a_search(raw: Callable[[int], dict[str, Any]]) -> None:
    def parse(size: int) -> Callable[[], Any]:
        text = json.dumps(raw(size))
        return lambda: parse_json_schema(text, {})

    assert_linear(parse, 50)


def test_a_text_of_many_references_is_parsed_once() -> None:
    def parse(size: int) -> Callable[[], Any]:
        names = [f"{n}.json" for n in range(size)]
        text = json.dumps({"anyOf": [{"$ref": name} for name in names]})
        other = json.dumps({"properties": {f"p{n}": {} for n in range(size)}})
        return lambda: parse_json_schema(text, dict.fromkeys(names, other))

    assert_linear(parse, 50)


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level of the nested schema is validated on its own, the innermost first."""
    monkeypatch.setattr(json_subschemas, "_SIZE_MAX", 2000)
    nested: dict[str, Any] = {"anyOf": [{}] * 100}
    for _ in range(20):
        nested = {"not": nested}
    refs = [{"$ref": "#/unknown" + "/not" * depth} for depth in range(20, 0, -1)]
    for raw in ({"unknown": nested, "anyOf": refs}, {"anyOf": [{}] * 2000}, {"enum": [[]] * 2000}):
        with pytest.raises(InvalidSchema, match="with its references, has too many parts"):
            parse_json_schema(json.dumps(raw), {})
    parse_json_schema(json.dumps({"unknown": nested, "anyOf": refs[:1]}), {})


def mixed(size: int) -> list[Any]:
    return [one for n in range(size) for one in (n, str(n), {"a": n})]


@pytest.mark.parametrize(
    "raw",
    [
        lambda size: {**json.loads(f"{{{DRAFT_4}}}"), "enum": mixed(size)},
        lambda size: {"dependencies": {"a": mixed(size)}},
        lambda size: {"anyOf": [{"type": "string"}] * size},
    ],
)
def test_a_metaschema_takes_linear_time(raw: Callable[[int], dict[str, Any]]) -> None:
    def parse(size: int) -> Callable[[], Any]:
        text = json.dumps(raw(size))

        def run() -> None:
            with contextlib.suppress(InvalidSchema):
                parse_json_schema(text, {})

        return run

    assert_linear(parse, 100)


@pytest.mark.parametrize("draft", [DRAFT_2019, DRAFT_2020])
def test_a_metaschema_of_many_parts_does_not_take_longer(draft: str) -> None:
    inside = '"anyOf": [{}' + ", {}" * 500 + "]"
    old, new = (f"{{{head}, {inside}}}" for head in (DRAFT_4, draft))
    assert steps(lambda: parse_json_schema(new, {})) < 2 * steps(lambda: parse_json_schema(old, {}))


def test_references_of_references_must_be_resolved_too() -> None:
    other = '{"items": {"$ref": "third.json"}}'
    with pytest.raises(InvalidSchema, match=r'\$ref "third.json" is neither'):
        parse_json_schema('{"$ref": "other.json"}', {"other.json": other})


def test_an_invalid_reference_is_refused() -> None:
    with pytest.raises(InvalidSchema, match=r"^#/type: 5 is not valid"):
        parse_json_schema('{"$ref": "other.json"}', {"other.json": '{"type": 5}'})


def test_references_that_only_refer_to_each_other_are_refused() -> None:
    text = '{"$ref": "a.json"}'
    with pytest.raises(InvalidSchema, match="refers to itself"):
        parse_json_schema(text, {"a.json": '{"$ref": "b.json"}', "b.json": '{"$ref": "a.json"}'})


def test_a_schema_and_its_reference_may_be_of_different_drafts() -> None:
    old = f'{{{DRAFT_4}, "type": "number", "maximum": 5, "exclusiveMaximum": true}}'
    schema = parse_json_schema('{"$ref": "old.json"}', {"old.json": old})
    new = parse_json_schema('{"type": "number", "exclusiveMaximum": 5}', {})
    assert new.incompatibilities(schema) == []
