"""Which entries a filter lets through, and Kafka's text."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.acls import (
    ANY_ENTRY,
    ANY_RESOURCE,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
    parse_principal,
)

TOPIC, GROUP = ResourceKind.TOPIC, ResourceKind.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ENTRY = AccessControlEntry("User:a", "*", Operation.READ, Permission.ALLOW)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ANY_RESOURCE, "orders * ord"),
        (ResourcePattern(TOPIC, None, PREFIXED), "ord"),
        (ResourcePattern(GROUP, None, PatternType.ANY), ""),
        (ResourcePattern(TOPIC, "orders", LITERAL), "orders"),
        (ResourcePattern(TOPIC, "orders", PREFIXED), ""),
        (ResourcePattern(TOPIC, "ord", PatternType.ANY), "ord"),
        (ResourcePattern(TOPIC, "orders", PatternType.ANY), "orders"),
        (ResourcePattern(TOPIC, "orders", PatternType.MATCH), "orders * ord"),
        (ResourcePattern(TOPIC, "o", PatternType.MATCH), "*"),
        (ResourcePattern(TOPIC, "*", LITERAL), "*"),
    ],
    ids=str,
)
def test_resources_that_a_filter_matches(wanted: ResourcePattern, found: str) -> None:
    stored = [
        ResourcePattern(TOPIC, "orders", LITERAL),
        ResourcePattern(TOPIC, "*", LITERAL),
        ResourcePattern(TOPIC, "ord", PREFIXED),
    ]
    assert [each.name for each in stored if wanted.matches(each)] == found.split()


def test_entries_that_a_filter_matches() -> None:
    assert ANY_ENTRY.matches(ENTRY)
    assert ENTRY.matches(ENTRY)
    for other in (
        ENTRY._replace(principal="User:b"),
        ENTRY._replace(host="10.0.0.1"),
        ENTRY._replace(operation=Operation.WRITE),
        ENTRY._replace(permission=Permission.DENY),
    ):
        assert not other.matches(ENTRY)


def test_the_text_is_kafkas() -> None:
    assert str(ENTRY) == "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"
    assert (
        str(ResourcePattern(TOPIC, "t", LITERAL))
        == "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    )


def test_principals_have_a_type_and_a_name() -> None:
    assert parse_principal("User:CN=a,O=b:c") == ("User", "CN=a,O=b:c")
    for text in ("", "bob", ":bob", "User:"):
        with pytest.raises(ConfigError, match=f"principalType:principalName but got {text}$"):
            parse_principal(text)
