"""Metadata and rules of schemas: their JSON, merging, and the check of rules."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.schemas.contract import Contract, Metadata, check_rules, read_contract

METADATA = {
    "tags": {"Order.email": ["PII"]},
    "properties": {"major": "1", "owner": "orders"},
    "sensitive": ["owner"],
}
RULE = {
    "name": "checked",
    "doc": "A positive id",
    "kind": "CONDITION",
    "mode": "WRITE",
    "type": "CEL",
    "tags": ["A", "PII"],
    "params": {"a": "1", "b": "2"},
    "expr": "message.id > 0",
    "onSuccess": "NONE",
    "onFailure": "ERROR",
    "disabled": True,
}
RULES = {"domainRules": [RULE], "enableAt": "2026-01-01"}


def rules(*given: dict[str, Any], name: str = "domainRules") -> dict[str, Any]:
    return {name: list(given)}


def test_what_is_written_is_what_was_read() -> None:
    contract = read_contract(METADATA, RULES)
    assert contract.fields() == {"metadata": METADATA, "ruleSet": RULES}
    assert read_contract(*contract.fields().values()) == contract
    assert read_contract(None, None).fields() == {}
    assert read_contract({}, {}).fields() == {"metadata": {}, "ruleSet": {}}


def test_order_and_unknown_fields_do_not_count() -> None:
    """Java sorts by UTF-16 code units: U+FF5E comes after U+10000, which begins with U+D800."""
    given = {"properties": {"\uff5e": "1", "\U00010000": "2", "b": 3, "c": True, "d": None}, "x": 1}
    [metadata, _] = read_contract(given, None)
    assert isinstance(metadata, Metadata)
    assert metadata.properties == (("b", "3"), ("c", "true"), ("\U00010000", "2"), ("\uff5e", "1"))
    assert read_contract({"sensitive": ["b", "a", "b"]}, None) == read_contract(
        {"sensitive": ["a", "b"]}, None
    )


def test_a_rule_has_defaults() -> None:
    [found] = read_contract(None, rules({"name": "r", "type": "CEL"})).fields()["ruleSet"][
        "domainRules"
    ]
    assert found == {
        "name": "r",
        "kind": "TRANSFORM",
        "mode": "WRITEREAD",
        "type": "CEL",
        "disabled": False,
    }


def test_what_is_newer_replaces_what_has_its_name() -> None:
    old = read_contract(METADATA, rules(RULE, RULE | {"name": "kept"}))
    newer = read_contract(
        {"properties": {"major": "2"}, "sensitive": ["major"], "tags": {"Order.email": ["MAIL"]}},
        rules(RULE | {"expr": "true"}, RULE | {"name": "new"}),
    )
    merged = old.merged(newer).fields()
    assert merged["metadata"] == {
        "tags": {"Order.email": ["MAIL"]},
        "properties": {"major": "2", "owner": "orders"},
        "sensitive": ["major", "owner"],
    }
    found = [(each["name"], each["expr"]) for each in merged["ruleSet"]["domainRules"]]
    expression = RULE["expr"]
    assert found == [("kept", expression), ("checked", "true"), ("new", expression)]
    assert Contract().merged(newer) == newer
    assert old.merged(Contract()) == old


def test_what_is_not_given_is_taken_from_the_other() -> None:
    other = read_contract(METADATA, RULES)
    assert Contract().or_else(other) == other
    empty = read_contract({}, {})
    assert empty.or_else(other) == empty, "empty is given: it removes the earlier ones"


def test_the_texts_of_a_guid_are_in_the_order_of_confluent() -> None:
    texts = [each for each in read_contract(METADATA, RULES).texts() if each]
    assert texts == [
        *("Order.email", "PII", "major", "1", "owner", "orders", "owner"),
        *("checked", "A positive id", "CONDITION", "WRITE", "CEL", "A", "PII"),
        *("a", "1", "b", "2", "message.id > 0", "NONE", "ERROR", "\1"),
    ]


@pytest.mark.parametrize(
    ("metadata", "given", "error"),
    [
        ([], None, "metadata: expected an object"),
        ({"tags": {"a": "PII"}}, None, "metadata.tags: expected a list"),
        ({"tags": ["PII"]}, None, "metadata.tags: expected an object"),
        ({"properties": {"a": {}}}, None, "metadata.properties: expected a text"),
        ({"sensitive": [[]]}, None, "metadata.sensitive: expected a text"),
        (None, "x", "ruleSet: expected an object"),
        (None, {"domainRules": {}}, "domainRules: expected a list"),
        (None, {"domainRules": [1]}, "a rule: expected an object"),
        (None, rules(RULE | {"expr": []}), "expr of a rule: expected a text"),
        (None, rules(RULE | {"params": {"a": []}}), "params of a rule: expected a text"),
    ],
)
def test_another_type_is_refused(metadata: Any, given: Any, error: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_contract(metadata, given)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (rules(RULE | {"name": ""}), "a rule of domainRules lacks a name"),
        (rules(RULE | {"type": None}), "a rule of domainRules lacks a type"),
        (rules(RULE, RULE), "two rules have the name 'checked'"),
        (rules(RULE) | rules(RULE, name="encodingRules"), "two rules have the name 'checked'"),
        (
            rules(RULE | {"kind": "X"}),
            "kind of rule 'checked': expected one of TRANSFORM, CONDITION, found X",
        ),
        (
            rules(RULE | {"mode": "UPDOWN"}),
            "mode of rule 'checked': expected one of WRITE, READ, WRITEREAD, found UPDOWN",
        ),
        (
            rules(RULE, name="migrationRules"),
            "mode of rule 'checked': expected one of UPGRADE, DOWNGRADE, UPDOWN, found WRITE",
        ),
    ],
)
def test_a_wrong_rule_is_refused(given: dict[str, Any], error: str) -> None:
    found = read_contract(None, given).rules
    assert found is not None, "records of other registries are read anyway"
    with pytest.raises(ValueError) as raised:
        check_rules(found)
    assert str(raised.value) == error
