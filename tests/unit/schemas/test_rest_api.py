"""Routes: their answers and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.schemas.rest_api import Call, RawSchema, RestApi
from tests.unit.schemas.registry_desk import ID, NOTE_BY_DEFAULT, RegistryDesk, record_schema

TEXT = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
GUID = "b040db4b-fdae-23ea-4a07-95f3973b98c8"
ROW = {"subject": "a", "version": 1, "id": 1, "guid": GUID, "schema": TEXT}


@pytest.fixture
def desk() -> RegistryDesk:
    desk = RegistryDesk()
    desk.register("a", record_schema(ID))
    desk.register("a", record_schema(ID, NOTE_BY_DEFAULT))
    desk.register("b", "string")
    return desk


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/", {}),
        ("/contexts", ["."]),
        ("/schemas/types", ["JSON", "PROTOBUF", "AVRO"]),
        ("/subjects", ["a", "b"]),
        ("/subjects?subjectPrefix=b", ["b"]),
        ("/subjects?subjectPrefix=:*:", ["a", "b"]),
        ("/subjects?offset=1", ["b"]),
        ("/subjects?limit=1", ["a"]),
        ("/subjects/a/versions", [1, 2]),
        ("/subjects/a/versions/1", ROW),
        ("/subjects/:.:a/versions/1", ROW),
        ("/subjects/a/versions/1/schema", TEXT),
        ("/subjects/b/versions/latest/schema", '"string"'),
        ("/subjects/a/versions/-1/referencedby", []),
        ("/schemas/ids/1", {"guid": GUID, "schema": TEXT}),
        ("/schemas/ids/1?fetchMaxId=true", {"guid": GUID, "schema": TEXT, "maxId": 3}),
        (f"/schemas/guids/{GUID}", {"guid": GUID, "schema": TEXT}),
        (f"/schemas/guids/{GUID}/ids", [{"context": ".", "id": 1}]),
        ("/schemas/guids/b040/ids", []),
        ("/schemas/ids/1/schema", TEXT),
        ("/schemas/ids/3/subjects", ["b"]),
        ("/schemas/ids/1/versions", [{"subject": "a", "version": 1}]),
        ("/mode", {"mode": "READWRITE"}),
    ],
)
def test_answers(desk: RegistryDesk, path: str, answer: object) -> None:
    found = desk("GET", path)
    assert found == answer
    assert isinstance(found, RawSchema) is path.endswith("/schema")


def test_schemas_of_all_subjects(desk: RegistryDesk) -> None:
    found = desk("GET", "/schemas")
    assert found[0] == ROW
    assert [each["id"] for each in found] == [1, 2, 3]
    assert [each["id"] for each in desk("GET", "/schemas?latestOnly=true")] == [2, 3]


def test_the_cluster(desk: RegistryDesk) -> None:
    scope = desk("GET", "/v1/metadata/id")["scope"]
    assert scope["clusters"]["kafka-cluster"] == "cluster-1"


def test_a_schema_of_a_guid(desk: RegistryDesk) -> None:
    assert desk.refusal("GET", "/schemas/guids/b040").message == "Schema b040 not found"
    desk("DELETE", "/subjects/a")
    assert desk("GET", f"/schemas/guids/{GUID}")["schema"] == TEXT
    desk("DELETE", "/subjects/a?permanent=true")
    assert desk.refusal("GET", f"/schemas/guids/{GUID}").code == 40403
    assert desk("GET", f"/schemas/guids/{GUID}/ids") == []


def test_the_last_id_of_a_content_counts(desk: RegistryDesk) -> None:
    """The type is not a part of a GUID."""
    text = '{"type":"string"}'
    ids = [desk.register(name, {"type": "string"}, schemaType=name) for name in ("AVRO", "JSON")]
    guid = desk("GET", f"/schemas/ids/{ids[1]}")["guid"]
    assert desk("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": ids[1]}]
    assert desk("GET", f"/schemas/guids/{guid}") == {
        "guid": guid,
        "schemaType": "JSON",
        "schema": text,
    }


def test_only_clients_of_confluent_8_get_the_whole_version_of_a_registration(
    desk: RegistryDesk,
) -> None:
    api = RestApi(desk.state, "cluster-1")
    call = Call({"subject": "a"}, {}, {"schema": TEXT})
    assert api.register(call).answer == {"id": 1}
    later = call._replace(accepts_unknown_fields=True)
    assert api.register(later).answer == ROW


@pytest.mark.parametrize("contract", [{}, {"metadata": {"properties": {"owner": "shop"}}}])
def test_a_client_gets_the_text_that_it_registered(
    desk: RegistryDesk, contract: dict[str, Any]
) -> None:
    """Confluent's Python client sends a descriptor, keeps the answer's text by the schema's id, and
    decodes it to read its own records."""
    source = {"schema": 'syntax = "proto3"; message M {}', "schemaType": "PROTOBUF"}
    schema_id = desk("POST", "/subjects/source/versions", source)["id"]
    text = desk("GET", f"/schemas/ids/{schema_id}?format=serialized")["schema"]
    body = source | contract | {"schema": text}
    for accepts in (True, False):
        call = Call({"subject": f"m{accepts}"}, {}, body, accepts_unknown_fields=accepts)
        registered = RestApi(desk.state, "cluster-1").register(call)
        assert registered.answer.get("schema") == (text if accepts or contract else None)
        for record in registered.records:
            desk.state.apply(record)
    stored = desk("GET", "/subjects/mTrue/versions/1")
    assert "message M {" in stored["schema"]
    call = call._replace(path={"subject": "mTrue"}, accepts_unknown_fields=True)
    assert RestApi(desk.state, "cluster-1").register(call).answer == stored | {"schema": text}


def test_a_schema_is_looked_up_in_its_subject(desk: RegistryDesk) -> None:
    spaced = TEXT.replace(":", ": ")
    assert desk("POST", "/subjects/a", {"schema": spaced}) == ROW
    assert desk.refusal("POST", "/subjects/b", {"schema": TEXT}).code == 40403
    assert desk.refusal("POST", "/subjects/c", {"schema": TEXT}).code == 40401
    desk("DELETE", "/subjects/a/versions/1")
    assert desk.refusal("POST", "/subjects/a", {"schema": TEXT}).code == 40403
    assert desk("POST", "/subjects/a?deleted=true", {"schema": TEXT})["version"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "text"),
    [
        ("GET", "/subjects/c/versions", {}, 40401, "Subject 'c' not found."),
        ("GET", "/subjects/c/versions/1", {}, 40401, "Subject 'c' not found."),
        ("GET", "/subjects/a/versions/9", {}, 40402, "Version 9 not found."),
        ("GET", "/subjects/a/versions/0", {}, 42202, "'0' is not a valid version id"),
        ("GET", "/subjects/a/versions/2147483648", {}, 42202, "not a valid version id"),
        ("GET", f"/subjects/a/versions/{'9' * 5000}", {}, 42202, "not a valid version id"),
        ("GET", "/subjects/a/versions/x", {}, 42202, 'the string "latest"'),
        ("GET", "/schemas/ids/9", {}, 40403, "Schema 9 not found"),
        ("GET", "/schemas/ids/9/versions", {}, 40403, "Schema 9 not found"),
        ("GET", "/schemas/ids/x", {}, 404, "HTTP 404 Not Found"),
        ("GET", "/subjects/:.other:a/versions", {}, 42208, "':.other:a'"),
        ("POST", "/subjects/a/versions", {}, 42201, "no field 'schema'"),
        ("POST", "/subjects/a/versions", {"schema": 7}, 42201, "no field 'schema'"),
        ("POST", "/subjects/a/versions", {"schema": "{"}, 42201, "Invalid schema { with refs []"),
        (
            "POST",
            "/subjects/a/versions",
            {"schema": "x", "schemaType": "XML"},
            42201,
            "Invalid schema type XML. This registry has JSON, PROTOBUF, AVRO",
        ),
        (
            "POST",
            "/subjects/a/versions",
            {"schema": '"int"', "references": [{"name": "x"}]},
            42201,
            "a reference has a name, a subject and a version",
        ),
        ("POST", "/subjects/a/versions", {"schema": '"int"', "id": "x"}, 42201, "'id'"),
        ("PUT", "/config", {"compatibility": "x"}, 42203, "are NONE, BACKWARD,"),
        ("PUT", "/config", {}, 42203, "Invalid compatibility level"),
        ("PUT", "/mode", {"mode": "x"}, 42204, "READONLY_OVERRIDE, IMPORT"),
        (
            "POST",
            "/compatibility/subjects/a/versions/9",
            {"schema": '"int"'},
            40402,
            "Version 9 not found.",
        ),
    ],
)
def test_refusals(
    desk: RegistryDesk, method: str, path: str, body: dict[str, Any], code: int, text: str
) -> None:
    error = desk.refusal(method, path, body)
    assert error.code == code
    assert text in error.message
    assert error.status == (code if code < 1000 else code // 100)


def test_a_new_subject_is_compatible(desk: RegistryDesk) -> None:
    body = {"schema": '"int"'}
    for version in ("/latest", ""):
        path = f"/compatibility/subjects/new/versions{version}"
        assert desk("POST", path, body) == {"is_compatible": True}
    assert desk("POST", "/compatibility/subjects/b/versions", body) == {"is_compatible": False}


def test_protobuf_schemas_in_both_forms(desk: RegistryDesk) -> None:
    """A descriptor is stored as source, and is the same schema."""
    item, order = (
        {"schema": 'syntax = "proto3"; message Item { int32 id = 1; }', "schemaType": "PROTOBUF"},
        {
            "schema": 'syntax = "proto3"; import "item.proto"; message Order { Item item = 1; }',
            "schemaType": "PROTOBUF",
            "references": [{"name": "item.proto", "subject": "item", "version": 1}],
        },
    )
    desk("POST", "/subjects/item/versions", item)
    schema_id = desk("POST", "/subjects/order/versions", order)["id"]
    path = f"/schemas/ids/{schema_id}"
    descriptor = desk("GET", f"{path}?format=serialized")["schema"]
    assert desk("GET", "/subjects/order/versions/1?format=serialized")["schema"] == descriptor
    assert desk("GET", f"{path}/schema?format=serialized") == descriptor
    assert desk("GET", path)["schema"] == order["schema"]
    assert desk("POST", "/subjects/order", order | {"schema": descriptor})["id"] == schema_id
    desk("POST", "/subjects/copy/versions", order | {"schema": descriptor})
    assert "  .Item item = 1;\n" in desk("GET", "/subjects/copy/versions/1/schema")
    changed = item | {"schema": 'syntax = "proto3"; message Item { string id = 1; }'}
    error = desk.refusal("POST", "/subjects/item/versions", changed)
    assert (error.code, "message Item, field 1: the type" in error.message) == (409, True)


def test_other_types_have_one_form(desk: RegistryDesk) -> None:
    assert desk("GET", "/schemas/ids/3/schema?format=serialized") == '"string"'
