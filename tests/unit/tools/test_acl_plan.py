"""Which entries are meant."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.tools.acl_plan import (
    Principals,
    check_operations,
    checked_principal,
    parse_operation,
    planned_entries,
    planned_role_entries,
)

TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
GROUP = ResourcePattern(ResourceKind.GROUP, "g", PatternType.LITERAL)
CLUSTER = ResourcePattern(ResourceKind.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
ALICE = Principals(allowed=["User:alice"])


def test_each_principal_host_and_operation() -> None:
    who = Principals(["User:a"], ["User:b"], ["h1", "h2"], [])
    assert [str(entry) for entry in who.entries([Operation.READ])] == [
        "(principal=User:a, host=h1, operation=READ, permissionType=ALLOW)",
        "(principal=User:a, host=h2, operation=READ, permissionType=ALLOW)",
        "(principal=User:b, host=*, operation=READ, permissionType=DENY)",
    ]


def test_blanks_around_a_host_are_dropped() -> None:
    who = Principals(["User:a"], ["User:b"], ["h1\r"], [" h2 "])
    assert [entry.host for entry in who.entries([Operation.READ])] == ["h1", "h2"]


def test_what_is_named_twice_is_one_entry() -> None:
    who = Principals(["User:a", " User:a"], [], ["h", "h "], [])
    assert len(who.entries([Operation.READ, Operation.READ])) == 1


def test_every_resource_gets_the_same() -> None:
    found = planned_entries([TOPIC, GROUP], ALICE, [Operation.ALL])
    assert list(found) == [TOPIC, GROUP]
    assert found[TOPIC] == [AccessControlEntry("User:alice", "*", Operation.ALL, Permission.ALLOW)]


def test_roles() -> None:
    both = planned_role_entries(
        [TOPIC, GROUP], ALICE, producer=True, consumer=True, idempotent=True
    )
    shown = {r.kind.name: [e.operation.name for e in entries] for r, entries in both.items()}
    assert shown == {
        "TOPIC": ["READ", "WRITE", "CREATE", "DESCRIBE"],
        "GROUP": ["READ"],
        "CLUSTER": ["IDEMPOTENT_WRITE"],
    }
    reader = planned_role_entries(
        [TOPIC, GROUP], ALICE, producer=False, consumer=True, idempotent=False
    )
    assert list(reader) == [TOPIC, GROUP]


@pytest.mark.parametrize("text", ["DescribeConfigs", "describeconfigs", "DESCRIBE_CONFIGS"])
def test_operations_in_any_spelling(text: str) -> None:
    assert parse_operation(text) is Operation.DESCRIBE_CONFIGS


def test_operations_that_a_resource_does_not_know() -> None:
    assert check_operations([TOPIC, CLUSTER], [Operation.CREATE]) == [Operation.CREATE]
    assert check_operations([GROUP], [Operation.ALTER_CONFIGS]) == [Operation.ALTER_CONFIGS]
    for operation in (Operation.IDEMPOTENT_WRITE, parse_operation("nonsense")):
        with pytest.raises(ConfigError, match="ResourceType TOPIC only supports operations Alter"):
            check_operations([TOPIC], [operation])


@pytest.mark.parametrize("text", ["alice", ":alice", "User:"])
def test_principals_have_a_type(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a string in format principalType:principal"):
        checked_principal(text)
