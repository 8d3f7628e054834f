"""Registering, comparing and deleting schemas."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.schemas import parsed_schema
from kafkapy.schemas.avro_schema import AvroSchema
from tests.unit.schemas.registry_desk import ID, NOTE, NOTE_BY_DEFAULT, RegistryDesk, record_schema

FIRST = record_schema(ID)
WITH_NOTE = record_schema(ID, NOTE)
WITH_DEFAULT = record_schema(ID, NOTE_BY_DEFAULT)


@pytest.fixture
def desk() -> RegistryDesk:
    return RegistryDesk()


def test_equal_schemas_have_one_id(desk: RegistryDesk) -> None:
    assert desk.register("a", FIRST) == 1
    assert desk.register("a", FIRST) == 1
    assert desk.register("b", {"fields": [ID], "name": "Order", "type": "record"}) == 1
    assert desk.register("c", {"type": "string"}) == desk.register("d", "string") == 2
    assert desk("GET", "/schemas/ids/1/versions") == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]
    assert len(desk.records) == 4, "the second time, nothing was written"


@pytest.mark.parametrize(
    ("level", "old", "new", "is_accepted"),
    [
        ("BACKWARD", FIRST, WITH_DEFAULT, True),
        ("BACKWARD", FIRST, WITH_NOTE, False),
        ("BACKWARD", WITH_NOTE, FIRST, True),
        ("FORWARD", FIRST, WITH_NOTE, True),
        ("FORWARD", WITH_NOTE, FIRST, False),
        ("FULL", FIRST, WITH_DEFAULT, True),
        ("FULL", WITH_NOTE, FIRST, False),
        ("FULL", FIRST, WITH_NOTE, False),
        ("NONE", FIRST, "string", True),
    ],
)
def test_a_level_decides_on_the_next_version(
    desk: RegistryDesk, level: str, old: object, new: object, is_accepted: bool
) -> None:
    desk("PUT", "/config/a", {"compatibility": level})
    desk.register("a", old)
    body = {"schema": json.dumps(new)}
    checked = desk("POST", "/compatibility/subjects/a/versions/latest?verbose=true", body)
    assert checked["is_compatible"] is is_accepted
    assert bool(checked["messages"]) is not is_accepted
    if is_accepted:
        assert desk("POST", "/subjects/a/versions", body) == {"id": 2}
        return
    error = desk.refusal("POST", "/subjects/a/versions", body)
    assert error.code == error.status == 409
    assert "version 1: reader_field_missing_default_value at /fields/1: note" in error.message
    assert desk("GET", "/subjects/a/versions") == [1]


@pytest.mark.parametrize(
    ("level", "is_accepted"), [("FORWARD", True), ("FORWARD_TRANSITIVE", False)]
)
def test_a_transitive_level_looks_at_all_versions(
    desk: RegistryDesk, level: str, is_accepted: bool
) -> None:
    desk("PUT", "/config", {"compatibility": "NONE"})
    desk.register("a", WITH_NOTE)
    desk.register("a", WITH_DEFAULT)
    desk("PUT", "/config", {"compatibility": level})
    if is_accepted:
        assert desk.register("a", FIRST) == 3
    else:
        error = desk.refusal("POST", "/subjects/a/versions", {"schema": json.dumps(FIRST)})
        assert error.code == 409


def test_a_refusal_has_a_bounded_length(desk: RegistryDesk) -> None:
    for subject, count in (("enum", 1), ("fields", 200)):
        symbols = [f"S{number}" for number in range(1000)]
        enums = [{"type": "enum", "name": f"E{n}", "symbols": symbols} for n in range(count)]
        old = [{"name": f"f{n}", "type": each} for n, each in enumerate(enums)]
        new = [{"name": f["name"], "type": f["type"] | {"symbols": ["S"]}} for f in old]
        desk.register(subject, record_schema(*old))
        body = {"schema": json.dumps(record_schema(*new))}
        assert len(desk.refusal("POST", f"/subjects/{subject}/versions", body).message) < 30_000


def test_the_level_of_a_subject_precedes_that_of_all(desk: RegistryDesk) -> None:
    assert desk("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    desk("PUT", "/config", {"compatibility": "full"})
    assert desk.refusal("GET", "/config/a").code == 40408
    assert desk("GET", "/config/a?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert desk("PUT", "/config/a", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert desk("GET", "/config/a") == {"compatibilityLevel": "NONE"}
    assert desk("DELETE", "/config/a") == {"compatibilityLevel": "NONE"}
    assert desk.refusal("DELETE", "/config/a").code == 40401
    assert desk("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert desk("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_references(desk: RegistryDesk) -> None:
    desk.register("currency", {"type": "enum", "name": "Currency", "symbols": ["EUR"]})
    money = record_schema({"name": "in", "type": "Currency"}, name="Money")
    to_currency = [{"name": "Currency", "subject": "currency", "version": 1}]
    assert desk.register("money", money, references=to_currency) == 2
    price = record_schema({"name": "price", "type": "Money"}, name="Price")
    to_money = [{"name": "Money", "subject": "money", "version": 1}]
    assert desk.register("price", price, references=to_money) == 3
    assert desk("GET", "/schemas/ids/2")["references"] == to_currency
    assert desk("GET", "/subjects/currency/versions/1/referencedby") == [2]
    for path in ("/subjects/currency", "/subjects/currency/versions/1"):
        assert desk.refusal("DELETE", path).code == 42206
    missing = {"schema": json.dumps(price), "references": [to_money[0] | {"version": 7}]}
    error = desk.refusal("POST", "/subjects/price/versions", missing)
    assert error.code == 42201
    assert "No schema reference found for subject 'money' and version 7" in error.message


def test_schemas_of_another_type(desk: RegistryDesk) -> None:
    person = {"properties": {"id": {"type": "integer"}}, "type": "object"}
    assert desk.register("person", person, schemaType="JSON") == 1
    row = desk("GET", "/subjects/person/versions/1")
    assert row["schemaType"] == "JSON"
    assert json.loads(row["schema"]) == person
    assert desk.register("person", {"type": "object"} | person, schemaType="JSON") == 1
    friend = {"type": "object", "properties": {"friend": {"$ref": "person.json"}}}
    reference = [{"name": "person.json", "subject": "person", "version": 1}]
    assert desk.register("friend", friend, schemaType="JSON", references=reference) == 2
    avro = {"schema": json.dumps(FIRST)}
    error = desk.refusal("POST", "/subjects/person/versions", avro)
    assert (error.code, "version 1 is JSON" in error.message) == (409, True)


def test_all_comparisons_of_a_request_have_one_limit(
    desk: RegistryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check against 8 large versions stopped the registry for minutes."""
    monkeypatch.setattr(parsed_schema, "COMPARISONS_MAX", 2000)
    branches = [{"type": "enum", "name": f"E{i}", "symbols": ["S"]} for i in range(40)]
    union = {"name": "u", "type": branches}
    for name, count in (("few", 1), ("many", 10)):
        desk("PUT", f"/config/{name}", {"compatibility": "NONE"})
        for n in range(count):
            desk.register(name, record_schema(union | {"doc": str(n)}))
        desk("PUT", f"/config/{name}", {"compatibility": "BACKWARD_TRANSITIVE"})
    body = {"schema": json.dumps(record_schema(union))}
    path = "/compatibility/subjects/{}/versions?verbose=true"
    assert desk("POST", path.format("few"), body)["is_compatible"]
    refused = desk("POST", path.format("many"), body)["messages"]
    assert len(refused) == 1
    assert parsed_schema.TOO_MANY_COMPARISONS in refused[0]


def test_a_subject_may_have_any_number_of_versions(
    desk: RegistryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is for types that are combined with each other."""
    monkeypatch.setattr(parsed_schema, "COMPARISONS_MAX", 0)
    desk("PUT", "/config/a", {"compatibility": "FULL_TRANSITIVE"})
    for n in range(30):
        desk.register("a", record_schema(ID | {"doc": str(n)}))


def test_no_version_is_compared_after_enough_reasons(
    desk: RegistryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk("PUT", "/config/a", {"compatibility": "NONE"})
    for n in range(60):
        desk.register("a", record_schema(ID | {"doc": str(n)}))
    desk("PUT", "/config/a", {"compatibility": "BACKWARD_TRANSITIVE"})
    compared = Mock(return_value=["a", "b"])
    monkeypatch.setattr(AvroSchema, "incompatibilities", compared)
    error = desk.refusal("POST", "/subjects/a/versions", {"schema": json.dumps(WITH_NOTE)})
    assert (error.code, compared.call_count) == (409, parsed_schema.REASONS_MAX // 2)


def test_soft_and_permanent_deletion_of_a_subject(desk: RegistryDesk) -> None:
    desk.register("a", FIRST)
    desk.register("a", WITH_DEFAULT)
    desk("PUT", "/config/a", {"compatibility": "NONE"})
    assert desk.refusal("DELETE", "/subjects/a?permanent=true").code == 40405
    assert desk("DELETE", "/subjects/a") == [1, 2]
    assert desk("GET", "/subjects") == []
    assert desk("GET", "/subjects?deleted=true") == ["a"]
    assert desk.refusal("GET", "/config/a").code == 40408, "its level is gone"
    assert desk("GET", "/schemas/ids/1")["schema"], "records of topics may still have the id"
    assert desk.refusal("DELETE", "/subjects/a").code == 40404
    assert desk.register("a", FIRST) == 1
    assert desk("GET", "/subjects/a/versions") == [3], "numbers are not used again"
    desk("DELETE", "/subjects/a")
    assert desk("DELETE", "/subjects/a?permanent=true") == [2, 3], "3 replaced 1, as Confluent's"
    assert desk.refusal("GET", "/schemas/ids/1").code == 40403
    assert desk.refusal("DELETE", "/subjects/a?permanent=true").code == 40401
    assert desk.register("b", WITH_NOTE) == 3, "ids are not used again"


def test_deletion_of_a_version(desk: RegistryDesk) -> None:
    desk.register("a", FIRST)
    desk.register("a", WITH_DEFAULT)
    assert desk.refusal("DELETE", "/subjects/a/versions/1?permanent=true").code == 40407
    assert desk("DELETE", "/subjects/a/versions/1") == 1
    assert desk.refusal("DELETE", "/subjects/a/versions/1").code == 40406
    assert desk("GET", "/subjects/a/versions?deleted=true") == [1, 2]
    assert desk.refusal("GET", "/subjects/a/versions/1").code == 40402
    assert desk("GET", "/subjects/a/versions/1?deleted=true")["deleted"] is True
    assert desk("DELETE", "/subjects/a/versions/1?permanent=true") == 1
    assert desk("DELETE", "/subjects/a/versions/latest") == 2
    assert desk.refusal("GET", "/subjects/a/versions/latest").code == 40401


def test_modes(desk: RegistryDesk) -> None:
    desk.register("a", FIRST)
    assert desk("PUT", "/mode", {"mode": "READONLY"}) == {"mode": "READONLY"}
    body = {"schema": json.dumps(WITH_DEFAULT)}
    for method, path in [
        ("POST", "/subjects/a/versions"),
        ("DELETE", "/subjects/a"),
        ("DELETE", "/subjects/a/versions/1"),
        ("PUT", "/config/a"),
    ]:
        changes = body | {"compatibility": "NONE"}
        assert desk.refusal(method, path, changes).code == 42205, path
    assert desk("PUT", "/mode/a", {"mode": "READWRITE"}) == {"mode": "READWRITE"}
    assert desk("POST", "/subjects/a/versions", body) == {"id": 2}
    desk("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert desk.refusal("DELETE", "/subjects/a").code == 42205, "it precedes the subject's mode"
    assert desk("GET", "/mode/b") == {"mode": "READONLY_OVERRIDE"}
    assert desk("DELETE", "/mode") == {"mode": "READONLY_OVERRIDE"}


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE", "IMPORT"])
@pytest.mark.parametrize("config", [{}, {"defaultMetadata": {"properties": {"owner": "shop"}}}])
def test_serializers_write_in_each_mode(
    desk: RegistryDesk, mode: str, config: dict[str, Any]
) -> None:
    """They register the schema that their subject has."""
    desk("PUT", "/config/a", {"compatibility": "NONE", **config})
    desk.register("a", FIRST)
    desk.register("a", WITH_DEFAULT)
    before = len(desk.records)
    desk("PUT", "/mode?force=true", {"mode": mode})
    assert desk.register("a", FIRST) == 1
    assert desk.register("a", WITH_DEFAULT) == 2
    assert len(desk.records) == before + 1, "only the mode"
    body = {"schema": json.dumps(WITH_NOTE)}
    assert desk.refusal("POST", "/subjects/a/versions", body).code == 42205
    other_id = {"schema": json.dumps(FIRST), "id": 7}
    if mode != "IMPORT":
        assert desk.refusal("POST", "/subjects/a/versions", other_id).code == 42205


def test_an_import_keeps_ids_and_versions(desk: RegistryDesk) -> None:
    body = {"schema": json.dumps(FIRST), "id": 40, "version": 7}
    assert desk.refusal("POST", "/subjects/a/versions", body).code == 42205
    desk.register("other", "string")
    assert desk.refusal("PUT", "/mode", {"mode": "IMPORT"}).code == 42205
    assert desk("PUT", "/mode?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert desk("POST", "/subjects/a/versions", body) == {"id": 40}
    assert desk("GET", "/subjects/a/versions/7")["id"] == 40
    taken = {"schema": json.dumps(WITH_NOTE), "id": 40, "version": 8}
    assert desk.refusal("POST", "/subjects/a/versions", taken).code == 42205
    same_version = {"schema": json.dumps(WITH_NOTE), "id": 41, "version": 7}
    assert desk.refusal("POST", "/subjects/a/versions", same_version).code == 42205
    desk("PUT", "/mode", {"mode": "READWRITE"})
    assert desk.register("a", WITH_DEFAULT) == 41
