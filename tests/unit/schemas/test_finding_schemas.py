"""Which registered schema a given one is: what does not count, and which ids it keeps."""

from __future__ import annotations

import json
import logging

import pytest

from kafkapy.schemas.records import Record
from tests.unit.schemas.registry_desk import ID, RegistryDesk, record_schema

ONE_ORDER = '{"type":"int","b":1,"a":2}'
OTHER_ORDER = '{"type":"int","a":2,"b":1}'
STATUS = {"type": "enum", "name": "Status", "namespace": "shop", "symbols": ["NEW"]}


@pytest.fixture
def desk() -> RegistryDesk:
    return RegistryDesk()


def register(desk: RegistryDesk, path: str, text: str, kind: str = "AVRO") -> int:
    """The id of a schema registered at a path below /subjects."""
    subject, _, query = path.partition("?")
    body = {"schema": text, "schemaType": kind}
    found: int = desk("POST", f"/subjects/{subject}/versions?{query}", body)["id"]
    return found


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("AVRO", ONE_ORDER, OTHER_ORDER),
        ("JSON", '{"type":"string","maxLength":4}', '{"maxLength":4,"type":"string"}'),
        (
            "PROTOBUF",
            "message M { optional int32 b = 2; optional int32 a = 1; }",
            'syntax = "proto2"; message M { optional int32 a=1; optional int32 b=2; }',
        ),
    ],
)
def test_the_order_does_not_count_in_normalized_schemas(
    desk: RegistryDesk, kind: str, one: str, other: str
) -> None:
    assert register(desk, "a?normalize=true", one, kind) == 1
    assert register(desk, "b?normalize=true", other, kind) == 1
    assert register(desk, "c", one, kind) == 2, "without it, the text counts"
    desk("PUT", "/config/d", {"normalize": True})
    assert register(desk, "d", other, kind) == 1
    body = {"schema": other, "schemaType": kind}
    assert desk("POST", "/subjects/a?normalize=true", body)["version"] == 1


def test_a_normalized_schema_has_sorted_references(desk: RegistryDesk) -> None:
    for subject in ("x", "y"):
        desk.register(subject, {"type": "enum", "name": f"E{subject}", "symbols": []})
    references = [{"name": f"E{s}", "subject": s, "version": 1} for s in ("y", "x", "y")]
    body = {"schema": '["Ex","Ey"]', "references": references}
    desk("POST", "/subjects/a/versions?normalize=true", body)
    found = desk("GET", "/subjects/a/versions/1")["references"]
    assert [each["subject"] for each in found] == ["x", "y"]


def test_a_wrong_default_is_refused_when_normalized(desk: RegistryDesk) -> None:
    schema = record_schema({"name": "a", "type": "int", "default": "x"})
    body = {"schema": json.dumps(schema)}
    assert desk.refusal("POST", "/subjects/a/versions?normalize=true", body).code == 42201
    assert desk("POST", "/subjects/a/versions", body) == {"id": 1}


def test_a_schema_with_the_types_of_its_references_is_known(desk: RegistryDesk) -> None:
    """Java's serializers send the schema of a generated class so."""
    desk.register("status", STATUS)
    order = record_schema({"name": "s", "type": "shop.Status"})
    reference = {"name": "shop.Status", "subject": "status", "version": 1}
    assert desk.register("o", order, references=[reference]) == 2
    inline = record_schema({"name": "s", "type": STATUS})
    assert desk("POST", "/subjects/o", {"schema": json.dumps(inline)})["id"] == 2
    assert desk.register("o", inline) == 2
    assert desk.register("o", record_schema({"name": "s", "type": ["null", STATUS]})) == 3


def test_an_empty_contract_is_none(desk: RegistryDesk) -> None:
    for more in ({}, {"metadata": {}}, {"ruleSet": {}}, {"metadata": {"properties": {}}}):
        assert desk.register("a", "int", **more) == 1
        assert desk.register("b", "int", **more) == 1
    assert desk("GET", "/subjects/a/versions") == [1]


def test_a_schema_keeps_each_id_that_it_was_imported_with(desk: RegistryDesk) -> None:
    desk("PUT", "/mode", {"mode": "IMPORT"})
    desk.register("a", "int", id=10)
    desk.register("b", "int", id=20)
    desk("PUT", "/mode", {"mode": "READWRITE"})
    desk("DELETE", "/subjects/a")
    desk("DELETE", "/subjects/a?permanent=true")
    assert desk.register("c", "int") == 20


def test_an_imported_id_fits_a_serializer(desk: RegistryDesk) -> None:
    desk("PUT", "/mode", {"mode": "IMPORT"})
    body = {"schema": '"int"', "id": 2**31}
    assert desk.refusal("POST", "/subjects/a/versions", body).code == 42201
    assert desk.register("a", "int", id=2**31 - 1) == 2**31 - 1


def test_records_of_contexts_are_skipped(
    desk: RegistryDesk, caplog: pytest.LogCaptureFixture
) -> None:
    """Each context counts its ids apart: id 1 would be another schema than the default one's."""
    desk.register("a", record_schema(ID))
    key = {"keytype": "SCHEMA", "subject": ":.dev:a", "version": 1, "magic": 1}
    value = {"subject": ":.dev:a", "version": 1, "id": 1, "schema": '"string"'}
    with caplog.at_level(logging.WARNING):
        desk.state.apply(Record(json.dumps(key).encode(), json.dumps(value).encode()))
    assert "Order" in desk("GET", "/schemas/ids/1")["schema"]
    assert desk("GET", "/subjects") == ["a"]
    assert "contexts are not supported" in caplog.text


def test_the_settings_go_with_the_last_version(desk: RegistryDesk) -> None:
    """The next schema with the name of a deleted subject is compared at the level of all."""
    desk.register("a", "int")
    desk("PUT", "/config/a", {"compatibility": "NONE"})
    desk("PUT", "/mode/a", {"mode": "READWRITE"})
    desk.register("a", "string")
    desk("DELETE", "/subjects/a/versions/1")
    assert desk("GET", "/config/a")["compatibilityLevel"] == "NONE", "a version is left"
    desk("DELETE", "/subjects/a/versions/2")
    assert desk.refusal("GET", "/config/a").code == 40408
    assert desk.refusal("GET", "/mode/a").code == 40409


def test_the_latest_version_is_never_a_deleted_one(desk: RegistryDesk) -> None:
    desk.register("a", "int")
    desk.register("a", "long")
    desk("DELETE", "/subjects/a/versions/2")
    assert desk("GET", "/subjects/a/versions/latest?deleted=true")["version"] == 1
    assert desk("GET", "/subjects/a/versions/2?deleted=true")["version"] == 2


def test_who_refers_to_a_deleted_version(desk: RegistryDesk) -> None:
    desk.register("status", STATUS)
    reference = {"name": "shop.Status", "subject": "status", "version": 1}
    order = record_schema({"name": "s", "type": "shop.Status"})
    desk.register("o", order, references=[reference])
    desk("DELETE", "/subjects/o")
    desk("DELETE", "/subjects/status")
    assert desk("GET", "/subjects/status/versions/1/referencedby?deleted=true") == [2]


def test_an_import_does_not_remove_what_others_refer_to(desk: RegistryDesk) -> None:
    desk.register("status", STATUS)
    reference = {"name": "shop.Status", "subject": "status", "version": 1}
    order = record_schema({"name": "s", "type": "shop.Status"})
    desk.register("o", order, references=[reference])
    desk("DELETE", "/subjects/o")
    desk("DELETE", "/subjects/status")
    desk.register("o", order, references=[reference])
    assert desk.refusal("PUT", "/mode/status", {"mode": "IMPORT"}).code == 42206
    desk("PUT", "/mode?force=true", {"mode": "IMPORT"})
    assert desk("PUT", "/mode/o", {"mode": "IMPORT"}) == {"mode": "IMPORT"}, "it is so already"


def test_a_property_of_many_digits_is_no_version(desk: RegistryDesk) -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    metadata = {"properties": {"confluent:version": "9" * 5000}}
    assert desk.register("a", "int", metadata=metadata) == 1
