"""Kafka's rules, one by one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.acl_authorizer import AclAuthorizer, parse_super_users
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from tests.harness.cores.call_counts import calls, counting_comparisons

TOPIC, GROUP = ResourceKind.TOPIC, ResourceKind.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALLOW, DENY = Permission.ALLOW, Permission.DENY


def entry(
    operation: Operation = READ,
    permission: Permission = ALLOW,
    principal: str = "User:a",
    host: str = "*",
) -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, permission)


def authorizer(
    *rules: tuple[str, PatternType, AccessControlEntry], **more: object
) -> AclAuthorizer:
    made = AclAuthorizer(**more)  # type: ignore[arg-type]
    by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for name, pattern, each in rules:
        by_pattern.setdefault(ResourcePattern(TOPIC, name, pattern), []).append(each)
    for resource, entries in by_pattern.items():
        made.update(resource, entries)
    return made


def may(
    rules: AclAuthorizer,
    operation: Operation = READ,
    name: str = "t",
    principal: str = "User:a",
    host: str = "10.0.0.1",
    kind: ResourceKind = TOPIC,
) -> bool:
    return rules.is_allowed(principal, host, operation, kind, name)


def test_nobody_may_do_what_no_entry_allows() -> None:
    rules = authorizer(("t", LITERAL, entry()))
    assert may(rules)
    assert not may(rules, WRITE)
    assert not may(rules, name="t2")
    assert not may(rules, principal="User:b")
    assert not may(rules, kind=GROUP)


def test_super_users_may_do_everything() -> None:
    rules = authorizer(
        ("*", LITERAL, entry(Operation.ALL, DENY, "User:*")), super_users=["User:root"]
    )
    assert may(rules, principal="User:root")
    assert not may(rules)


def test_a_denial_wins_over_every_grant() -> None:
    for pattern, name in ((LITERAL, "t"), (LITERAL, "*"), (PREFIXED, "t")):
        rules = authorizer(
            ("t", LITERAL, entry()),
            ("*", LITERAL, entry()),
            ("t", PREFIXED, entry()),
            (name, pattern, entry(permission=DENY)),
        )
        assert not may(rules), (pattern, name)


def test_wildcards_of_principal_host_and_resource() -> None:
    assert may(authorizer(("t", LITERAL, entry(principal="User:*"))))
    assert may(authorizer(("*", LITERAL, entry())), name="any")
    here = authorizer(("t", LITERAL, entry(host="10.0.0.1")))
    assert may(here)
    assert not may(here, host="10.0.0.2")
    # The resource * is a name of its own among prefixes.
    assert not may(authorizer(("*", PREFIXED, entry())), name="any")


def test_prefixes_of_any_length() -> None:
    rules = authorizer(("a", PREFIXED, entry()), ("abc", PREFIXED, entry(WRITE)))
    assert may(rules, name="a")
    assert may(rules, WRITE, "abcd")
    assert not may(rules, WRITE, "ab")
    assert not may(rules, name="ba")


@pytest.mark.parametrize(
    ("granted", "implied"),
    [
        *((each, DESCRIBE) for each in (READ, WRITE, Operation.DELETE, Operation.ALTER)),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
        *((Operation.ALL, each) for each in (READ, WRITE, DESCRIBE, Operation.CLUSTER_ACTION)),
    ],
)
def test_what_a_grant_implies(granted: Operation, implied: Operation) -> None:
    assert may(authorizer(("t", LITERAL, entry(granted))), implied)


def test_what_is_not_implied() -> None:
    assert not may(authorizer(("t", LITERAL, entry(DESCRIBE))), READ)
    assert not may(authorizer(("t", LITERAL, entry(Operation.CREATE))), DESCRIBE)
    assert not may(authorizer(("t", LITERAL, entry(Operation.ALTER))), Operation.DESCRIBE_CONFIGS)
    # A denial denies no more than it says.
    rules = authorizer(("t", LITERAL, entry(READ, DENY)), ("t", LITERAL, entry(WRITE)))
    assert may(rules, DESCRIBE)
    # A denial of DESCRIBE leaves what would have implied it.
    rules = authorizer(("t", LITERAL, entry(DESCRIBE, DENY)), ("t", LITERAL, entry(READ)))
    assert may(rules)
    assert not may(rules, DESCRIBE)
    assert not may(authorizer(("t", LITERAL, entry(Operation.ALL, DENY))), READ)


def test_allow_everyone_if_no_acl_found_is_about_any_principal() -> None:
    rules = authorizer(
        ("t", LITERAL, entry(principal="User:b")),
        ("pre", PREFIXED, entry(principal="User:b")),
        allow_if_none_found=True,
    )
    assert may(rules, name="free")
    assert not may(rules)
    assert not may(rules, name="prefix")
    assert may(rules, principal="User:b")


def test_an_update_replaces() -> None:
    rules = AclAuthorizer()
    prefix = ResourcePattern(TOPIC, "t", PREFIXED)

    def after(*entries: AccessControlEntry) -> tuple[bool, bool]:
        rules.update(prefix, entries)
        return may(rules), may(rules, WRITE)

    steps: Iterable[tuple[AccessControlEntry, ...]]
    steps = ((entry(),), (entry(WRITE),), (), (), (entry(),))
    assert [after(*step) for step in steps] == [
        *((True, False), (False, True), (False, False), (False, False), (True, False))
    ]
    rules.update(prefix, ())
    assert rules.acls == {}
    assert not rules._prefix_lengths[TOPIC], "no look-up is made for prefixes that are gone"


def test_a_look_up_does_not_walk_the_entries() -> None:
    rules = AclAuthorizer()
    for index in range(10_000):
        rules.update(ResourcePattern(TOPIC, f"{index:05}", PREFIXED), [entry()])
        rules.update(ResourcePattern(TOPIC, f"literal-{index}", LITERAL), [entry()])
    rules.update(ResourcePattern(TOPIC, "ab", PREFIXED), [entry()])
    assert len(list(rules._entries_for(TOPIC, "abcdef"))) == 1
    assert sorted(rules._prefix_lengths[TOPIC].items()) == [(2, 1), (5, 10_000)]


def test_a_look_up_reads_only_the_entries_of_the_principal_and_the_host() -> None:
    """A resource with 5,000 entries took 1 ms for each check of any client."""

    def comparisons(others: int) -> int:
        compared = counting_comparisons(str)
        rules = authorizer(
            *(("*", LITERAL, entry(principal=f"User:{i}")) for i in range(others)),
            *(("t", PREFIXED, entry(principal="User:*", host=f"h{i}")) for i in range(others)),
            ("t", LITERAL, entry(principal="User:a", host="h")),
        )
        principal, host = compared("User:a"), compared("h")
        assert may(rules, principal=principal, host=host)
        times: int = compared.times
        return times

    assert comparisons(1000) == comparisons(1)


def test_any_resource_of_a_kind() -> None:
    def any_topic(*rules: tuple[str, PatternType, AccessControlEntry], **more: object) -> bool:
        made = authorizer(*rules, **more)
        return made.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC)

    one = ("t", LITERAL, entry(WRITE))
    assert any_topic(one)
    assert not any_topic()
    assert not any_topic(("t", LITERAL, entry(READ)))
    assert any_topic(("t", PREFIXED, entry(Operation.ALL)))
    assert not any_topic(one, ("*", LITERAL, entry(WRITE, DENY)))
    assert not any_topic(one, ("t", LITERAL, entry(WRITE, DENY)))
    assert not any_topic(("tt", PREFIXED, entry(WRITE)), ("t", PREFIXED, entry(WRITE, DENY)))
    assert any_topic(("t", PREFIXED, entry(WRITE)), ("tt", PREFIXED, entry(WRITE, DENY)))
    star = ("*", PREFIXED, entry(WRITE, DENY))
    assert any_topic(("*", LITERAL, entry(WRITE)), star), "names of other letters are left"
    assert not any_topic(("*a", LITERAL, entry(WRITE)), star)
    assert any_topic(allow_if_none_found=True)
    assert any_topic(super_users=["User:a"])
    assert not authorizer(one).is_allowed_for_any("User:a", "h", WRITE, GROUP)


@pytest.mark.parametrize("permission", [ALLOW, DENY])
def test_a_refused_producer_id_does_not_freeze_the_clients_of_a_broker_with_many_acls(
    permission: Permission,
) -> None:
    """400 refusals scanned 2,000 entries twice each, and stopped the event loop for 5 s."""

    def work_with(others: int) -> int:
        rules = authorizer(
            *((f"t-{i}", PREFIXED, entry(WRITE, permission, f"User:{i}")) for i in range(others)),
            ("a", LITERAL, entry(WRITE)),
            ("a", PREFIXED, entry(WRITE, DENY)),
        )
        made = calls(lambda: rules.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC))
        assert not rules.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC)
        return made.total()

    assert work_with(1000) == work_with(1)


def test_a_denied_client_does_not_freeze_the_clients_of_a_broker_with_many_allowed_topics() -> None:
    """Each of its requests compared 2,000 topics of all users with its denial: 40 ms."""

    def work_with(topics: int) -> int:
        rules = authorizer(
            *((f"t-{i}", LITERAL, entry(WRITE, principal="User:*")) for i in range(topics)),
            ("t", PREFIXED, entry(WRITE, DENY)),
        )
        assert not rules.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC)
        return calls(lambda: rules.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC)).total()

    assert work_with(1000) == work_with(1)


def test_any_resource_follows_changes_of_entries() -> None:
    rules = AclAuthorizer()
    t, u = (ResourcePattern(TOPIC, name, LITERAL) for name in "tu")

    def after(resource: ResourcePattern, *entries: AccessControlEntry) -> bool:
        rules.update(resource, entries)
        return rules.is_allowed_for_any("User:a", "10.0.0.1", WRITE, TOPIC)

    assert after(t, entry(WRITE), entry(READ))
    assert not after(t, entry(READ))
    assert after(u, entry(WRITE))
    assert after(t, entry(WRITE))
    assert after(u), "t still allows it"
    assert not after(t, entry(WRITE), entry(WRITE, DENY))
    assert after(t, entry(WRITE))
    assert not after(t)
    assert rules._patterns == {}, "what has no entries takes no memory"


def test_super_users_are_between_semicolons() -> None:
    assert parse_super_users("User:a; User:CN=b,O=c;") == {"User:a", "User:CN=b,O=c"}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ConfigError, match="'root' is not a principal"):
        parse_super_users("User:a;root")
