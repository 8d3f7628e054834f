"""Metadata and rules in a registry: new versions, inheritance, defaults, groups and lookups.

The expectations are those of Confluent's `AbstractSchemaRegistry` and `KafkaSchemaRegistry`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.schemas.registry_desk import ID, NOTE, NOTE_BY_DEFAULT, RegistryDesk, record_schema

FIRST = record_schema(ID)
WITH_DEFAULT = record_schema(ID, NOTE_BY_DEFAULT)
WITH_NOTE = record_schema(ID, NOTE)
RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}


@pytest.fixture
def desk() -> RegistryDesk:
    return RegistryDesk()


def properties(**values: str) -> dict[str, Any]:
    return {"properties": values}


def latest(desk: RegistryDesk, subject: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = desk("GET", f"/subjects/{subject}/versions/latest")
    return found


def test_another_contract_is_another_version_and_id(desk: RegistryDesk) -> None:
    owned = {"metadata": properties(owner="x"), "ruleSet": {"domainRules": [RULE]}}
    assert desk.register("a", FIRST) == 1
    assert desk.register("a", FIRST, **owned) == 2
    assert desk.register("a", FIRST, **owned) == 2
    assert desk("GET", "/subjects/a/versions") == [1, 2]
    assert latest(desk).items() >= owned.items()
    assert desk("GET", "/schemas/ids/2").items() >= owned.items()
    assert "metadata" not in desk("GET", "/schemas/ids/1")
    guids = {desk("GET", f"/schemas/ids/{each}")["guid"] for each in (1, 2)}
    assert len(guids) == 2
    assert desk.register("b", FIRST, **owned) == 2


def test_the_next_version_inherits_what_is_not_given(desk: RegistryDesk) -> None:
    desk.register("a", FIRST, metadata=properties(owner="x"), ruleSet={"domainRules": [RULE]})
    desk.register("a", WITH_DEFAULT)
    assert latest(desk)["metadata"] == properties(owner="x")
    assert latest(desk)["ruleSet"] == {"domainRules": [RULE]}
    desk.register("a", WITH_DEFAULT, metadata={}, ruleSet={})
    assert (latest(desk)["metadata"], latest(desk)["ruleSet"]) == ({}, {}), "empty removes them"
    assert desk("GET", "/subjects/a/versions") == [1, 2, 3]


def test_a_serializer_without_the_contract_finds_the_version(desk: RegistryDesk) -> None:
    """It registers or looks up its schema only."""
    schema_id = desk.register("a", FIRST, metadata=properties(owner="x"))
    assert desk.register("a", FIRST) == schema_id
    assert desk("POST", "/subjects/a", {"schema": json.dumps(FIRST)})["id"] == schema_id
    desk.register("a", FIRST, metadata={})
    body = {"schema": json.dumps(FIRST), "metadata": properties(owner="x")}
    assert desk("POST", "/subjects/a", body)["version"] == 1
    body["metadata"] = properties(owner="y")
    assert desk.refusal("POST", "/subjects/a", body).code == 40403


def test_a_contract_alone_is_for_the_latest_schema(desk: RegistryDesk) -> None:
    desk.register("a", FIRST)
    desk("POST", "/subjects/a/versions", {"schema": "", "metadata": properties(owner="x")})
    assert latest(desk)["schema"] == json.dumps(FIRST).replace(" ", "")
    assert latest(desk)["metadata"] == properties(owner="x")
    body = {"metadata": properties(owner="x")}
    assert desk.refusal("POST", "/subjects/b/versions", body).code == 42201
    assert desk.refusal("POST", "/subjects/a", body).code == 42201


def test_defaults_and_overrides_of_the_config(desk: RegistryDesk) -> None:
    desk("PUT", "/config", {"overrideMetadata": properties(policy="strict")})
    desk("PUT", "/config/a", {"defaultMetadata": properties(owner="x", policy="none")})
    desk.register("a", FIRST)
    assert latest(desk)["metadata"] == properties(owner="x", policy="strict")
    assert desk.register("a", FIRST) == 1, "the same again is no new version"
    desk.register("a", FIRST, metadata=properties(owner="y", policy="z"))
    assert latest(desk)["metadata"] == properties(owner="y", policy="strict")
    desk.register("b", FIRST)
    assert latest(desk, "b")["metadata"] == properties(policy="strict")


def test_fields_of_a_config_are_changed_one_by_one(desk: RegistryDesk) -> None:
    contract = {"defaultMetadata": properties(owner="x"), "compatibilityGroup": "major"}
    assert desk("PUT", "/config/a", {"compatibility": "FULL"} | contract) == {
        "compatibility": "FULL",
        **contract,
    }
    assert desk("GET", "/config/a") == {"compatibilityLevel": "FULL", **contract}
    desk("PUT", "/config/a", {"compatibilityGroup": None})
    desk("PUT", "/config/a", {"compatibility": "NONE"})
    contract.pop("compatibilityGroup")
    assert desk("GET", "/config/a") == {"compatibilityLevel": "NONE", **contract}
    assert desk("DELETE", "/config/a") == {"compatibilityLevel": "NONE", **contract}
    assert desk.refusal("GET", "/config/a").code == 40408
    desk("PUT", "/config/a", {"compatibilityGroup": "major"})
    assert desk("GET", "/config/a") == {
        "compatibilityLevel": "BACKWARD",
        "compatibilityGroup": "major",
    }
    assert desk("GET", "/config/a?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD",
        "compatibilityGroup": "major",
    }


def test_only_versions_of_a_group_are_compared(desk: RegistryDesk) -> None:
    desk("PUT", "/config/a", {"compatibilityGroup": "major"})
    desk.register("a", FIRST, metadata=properties(major="1"))
    assert (
        desk.refusal("POST", "/subjects/a/versions", {"schema": json.dumps(WITH_NOTE)}).code == 409
    )
    desk.register("a", WITH_NOTE, metadata=properties(major="2"))
    desk.register("a", WITH_DEFAULT, metadata=properties(major="1"))
    other = record_schema(ID, {"name": "other", "type": "int"})
    body = {"schema": json.dumps(other), "metadata": properties(major="1", minor="9")}
    check = "/compatibility/subjects/a/versions"
    assert desk("POST", check, body) == {"is_compatible": False}
    body["metadata"] = properties(major="3")
    assert desk("POST", check, body) == {"is_compatible": True}


def test_the_latest_version_with_properties(desk: RegistryDesk) -> None:
    for number in "112":
        schema = record_schema(ID, name=f"R{len(desk.records)}")
        desk("PUT", "/config/a", {"compatibility": "NONE"})
        desk.register("a", schema, metadata=properties(major=number, owner="x"))
    found = "/subjects/a/metadata?key=major&value="
    assert desk("GET", f"{found}1")["version"] == 2
    assert desk("GET", f"{found}2&key=owner&value=x")["version"] == 3
    assert desk.refusal("GET", f"{found}2&key=owner&value=y").code == 40403
    assert desk.refusal("GET", "/subjects/b/metadata?key=a&value=b").code == 40401
    desk("DELETE", "/subjects/a/versions/3")
    assert desk.refusal("GET", f"{found}2").code == 40403
    deleted = desk("GET", f"{found}2&deleted=true")
    assert (deleted["version"], deleted["metadata"]["properties"]["major"]) == (3, "2")


def test_confluent_version(desk: RegistryDesk) -> None:
    """It is the number of the version, set if the request names a version, or had it before."""
    first = desk.register("a", FIRST, version=-1)
    assert latest(desk)["metadata"] == properties(**{"confluent:version": "1"})
    assert desk.register("a", FIRST, version=-1) == desk.register("a", FIRST) == first
    assert desk.register("a", WITH_DEFAULT) != first
    assert latest(desk)["metadata"] == properties(**{"confluent:version": "2"})
    wrong = {"schema": json.dumps(FIRST), "version": 2}
    assert desk.refusal("POST", "/subjects/a/versions", wrong).code == 42201
    assert desk.register("a", FIRST, version=3) not in (1, 2), "v1 with another number"
    assert latest(desk)["metadata"] == properties(**{"confluent:version": "3"})
    expected = {"metadata": properties(**{"confluent:version": "3"})}
    assert desk.register("a", FIRST, **expected) == latest(desk)["id"]
    desk.register("a", FIRST, metadata=properties(**{"confluent:version": "9"}))
    assert latest(desk)["metadata"] == properties(**{"confluent:version": "4"})
    desk.register("b", FIRST, metadata=properties(owner="x"))
    body = {"schema": json.dumps(FIRST)}
    body |= {"metadata": properties(owner="x", **{"confluent:version": "1"})}
    assert desk("POST", "/subjects/b", body)["version"] == 1
    body |= {"metadata": properties(owner="x", **{"confluent:version": "2"})}
    assert desk.refusal("POST", "/subjects/b", body).code == 40403


def test_deletion_keeps_the_contract(desk: RegistryDesk) -> None:
    desk.register("a", FIRST, metadata=properties(owner="x"))
    desk("DELETE", "/subjects/a/versions/1")
    found = desk("GET", "/subjects/a/versions/1?deleted=true")
    assert (found["metadata"], found["deleted"]) == (properties(owner="x"), True)


def test_the_version_of_a_reference_may_be_the_latest(desk: RegistryDesk) -> None:
    desk.register("inner", record_schema(ID, name="Inner"))
    outer = record_schema({"name": "inner", "type": "Inner"})
    reference = {"name": "Inner", "subject": "inner", "version": -1}
    schema_id = desk.register("outer", outer, references=[reference])
    assert latest(desk, "outer")["references"] == [reference | {"version": 1}]
    assert desk.register("outer", outer, references=[reference]) == schema_id


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/subjects/a/versions", {"metadata": {"properties": []}}, 42201),
        ("POST", "/subjects/a/versions", {"ruleSet": {"domainRules": [{}]}}, 42210),
        ("POST", "/subjects/a/versions", {"schemaTagsToAdd": [{}]}, 42205),
        ("PUT", "/config/a", {"alias": 1}, 42201),
        ("PUT", "/config", {"validateFields": True}, 42205),
        ("PUT", "/config", {"defaultMetadata": []}, 42201),
        ("PUT", "/config", {"compatibilityGroup": 1}, 42201),
        ("PUT", "/config", {"overrideRuleSet": {"domainRules": [{}]}}, 42210),
        ("PUT", "/config", {}, 42203),
    ],
)
def test_what_cannot_be_stored_is_refused(
    desk: RegistryDesk, method: str, path: str, body: dict[str, Any], code: int
) -> None:
    given = body if method == "PUT" else {"schema": '"int"', **body}
    assert desk.refusal(method, path, given).code == code
    assert desk.records == []
