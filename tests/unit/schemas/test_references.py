"""The texts of references, and their order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest

from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.records import Record, Reference
from kafkapy.schemas.references import texts_of
from tests.unit.schemas.registry_desk import ID, RegistryDesk, record_schema


def read(*names: str, **schemas: str) -> list[tuple[str, str]]:
    """The texts for references with these names. `schemas` has the references of each subject. A
    reference is "NAME" or "NAME:SUBJECT"; the subject is the name by default."""

    def references(given: Iterable[str]) -> list[Reference]:
        return [Reference(each.partition(":")[0], each.rpartition(":")[2], 1) for each in given]

    texts = texts_of(
        references(names), lambda each: (each.subject, references(schemas[each.subject].split()))
    )
    return list(texts.items())


def test_each_schema_comes_after_those_that_it_refers_to() -> None:
    assert [name for name, _ in read("a", "d", a="b c", b="c", c="", d="a")] == list("cbad")


def test_the_first_schema_with_a_name_counts() -> None:
    assert read("n:x", "a", x="n:y", y="", a="n:y") == [("n", "x"), ("a", "a")]


def test_schemas_that_refer_to_each_other() -> None:
    assert [name for name, _ in read("a", a="b", b="a c", c="c")] == ["c", "b", "a"]


def test_a_chain_that_is_too_long() -> None:
    names = [f"n{number}" for number in range(3000)]
    chain = dict(pairwise(names))
    with pytest.raises(InvalidSchema, match="its references are nested too deeply"):
        read("n0", **chain)


@pytest.mark.parametrize(
    ("kind", "text", "new_text", "refusal"),
    [
        (
            "AVRO",
            json.dumps(record_schema({"name": "other", "type": "Other"})),
            json.dumps(record_schema(ID)),
            "type Other is",
        ),
        ("JSON", '{"properties": {"other": {"$ref": "Other"}}}', "{}", None),
    ],
)
def test_a_subject_whose_schema_refers_to_itself(
    kind: str, text: str, new_text: str, refusal: str | None
) -> None:
    """As another program may write it. JSON Schema allows such references."""
    reference = {"name": "Other", "subject": "s", "version": 1}
    value = {"schemaType": kind, "schema": text, "references": [reference]}
    key = {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
    value |= {"subject": "s", "version": 1, "id": 1}
    desk = RegistryDesk()
    desk.state.apply(Record(json.dumps(key).encode(), json.dumps(value).encode()))
    new = {"schema": new_text, "schemaType": kind}
    if refusal is None:
        assert desk("POST", "/subjects/s/versions", new)["id"] == 2
    else:
        error = desk.refusal("POST", "/subjects/s/versions", new)
        assert (error.code, refusal in error.message) == (42201, True)
