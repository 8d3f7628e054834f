"""Entries described, added and removed: Kafka's checks, results in the order that was asked."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import (
    ANY_ENTRY,
    ANY_RESOURCE,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.admin.acl_admin import AclAdmin, Binding, DeletedBinding
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.zk.stores import acl_store
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import SessionExpired
from tests.harness.cores.call_counts import calls
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins

ALICE = AccessControlEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
BOB = ALICE._replace(principal="User:bob")
TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
PREFIX = ResourcePattern(ResourceKind.TOPIC, "pre", PatternType.PREFIXED)
ALL = Binding(ANY_RESOURCE, ANY_ENTRY)


@pytest.fixture
def store() -> ZkStore:
    made = admins.store()
    run(made.acls.create_paths())
    return made


@pytest.fixture
def admin(store: ZkStore) -> AclAdmin:
    authorizer = AclAuthorizer()
    return AclAdmin(store, authorizer, AclChangeListener(store, ManualClock(), authorizer))


def add(admin: AclAdmin, *bindings: Binding) -> None:
    assert run(admin.create(bindings, SliceScheduler().pace())) == [None] * len(bindings)


def test_what_is_added_is_in_force_and_described(admin: AclAdmin) -> None:
    add(admin, Binding(TOPIC, BOB), Binding(PREFIX, ALICE), Binding(TOPIC, ALICE))
    assert admin.describe(ALL) == {PREFIX: [ALICE], TOPIC: [ALICE, BOB]}
    assert admin.describe(Binding(ANY_RESOURCE, ANY_ENTRY._replace(principal="User:bob"))) == {
        TOPIC: [BOB]
    }
    of_name = ResourcePattern(ResourceKind.TOPIC, "prefix", PatternType.MATCH)
    assert list(admin.describe(Binding(of_name, ANY_ENTRY))) == [PREFIX]


def test_an_entry_is_refused_alone_and_in_kafkas_words(admin: AclAdmin) -> None:
    bad = [
        Binding(TOPIC._replace(kind=ResourceKind.CLUSTER), ALICE),
        Binding(TOPIC._replace(name=""), ALICE),
        Binding(TOPIC._replace(name="a/b"), ALICE),
        Binding(TOPIC._replace(kind=ResourceKind.ANY), ALICE),
        Binding(TOPIC._replace(pattern=PatternType.MATCH), ALICE),
        Binding(TOPIC, ALICE._replace(operation=Operation.ANY)),
        Binding(TOPIC, ALICE._replace(permission=Permission.ANY)),
        Binding(TOPIC, ALICE._replace(principal="alice")),
    ]
    *refused, last = run(admin.create([*bad, Binding(TOPIC, ALICE)], SliceScheduler().pace()))
    assert last is None
    assert {error.code for error in refused if error} == {ErrorCode.INVALID_REQUEST}
    assert [error.message for error in refused if error] == [
        "The only valid name for the CLUSTER resource is kafka-cluster",
        "Invalid empty resource name",
        "ACL binding contains invalid resource name: a/b",
        *["ACL binding contains unknown elements"] * 4,
        "expected a string in format principalType:principalName but got alice",
    ]
    assert admin.describe(ALL) == {TOPIC: [ALICE]}


def test_an_entry_is_a_row_of_the_first_filter_that_matches(admin: AclAdmin) -> None:
    add(admin, Binding(TOPIC, ALICE), Binding(TOPIC, BOB), Binding(PREFIX, ALICE))
    filters = [
        Binding(TOPIC, ANY_ENTRY._replace(principal="User:bob")),
        Binding(ANY_RESOURCE, ANY_ENTRY._replace(host="nowhere")),
        Binding(TOPIC, ANY_ENTRY),
    ]
    found = run(admin.delete(filters, SliceScheduler().pace()))
    assert [[each.binding for each in row] for row in found] == [
        [Binding(TOPIC, BOB)],
        [],
        [Binding(TOPIC, ALICE)],
    ]
    assert admin.describe(ALL) == {PREFIX: [ALICE]}


def test_what_another_broker_has_just_added_can_be_removed(admin: AclAdmin, store: ZkStore) -> None:
    run(store.acls.update(TOPIC, lambda _: frozenset((ALICE,))))
    assert admin.describe(ALL) == {}
    assert [
        len(row) for row in run(admin.delete([Binding(TOPIC, ANY_ENTRY)], SliceScheduler().pace()))
    ] == [1]
    assert run(store.acls.get(TOPIC)) == frozenset()


def test_a_failed_update_is_told_with_its_entries(
    admin: AclAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(admin, Binding(TOPIC, ALICE))
    monkeypatch.setattr(acl_store.AclStore, "_write", _never)
    [error] = run(admin.create([Binding(TOPIC, BOB)], SliceScheduler().pace()))
    assert error is not None
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    [[deleted]] = run(admin.delete([ALL], SliceScheduler().pace()))
    assert deleted.binding == Binding(TOPIC, ALICE)
    assert deleted.error is not None
    assert admin.describe(ALL) == {TOPIC: [ALICE]}


def test_a_right_whose_entries_cannot_be_read_is_not_reported_as_gone(
    admin: AclAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session with ZooKeeper expires while entries are removed."""
    add(admin, Binding(TOPIC, ALICE), Binding(TOPIC, BOB))
    monkeypatch.setattr(acl_store.AclStore, "_get_versioned", _expired)
    filters = [Binding(TOPIC, ANY_ENTRY._replace(principal="User:bob")), ALL]
    [[bob], [alice]] = run(admin.delete(filters, SliceScheduler().pace()))
    assert (bob.binding, alice.binding) == (Binding(TOPIC, BOB), Binding(TOPIC, ALICE))
    assert bob.error is not None
    assert alice.error is not None


async def _expired(*_: object) -> object:
    raise SessionExpired("/kafka-acl/Topic/t")


async def _never(*_: object) -> bool:
    return False


def test_each_filter_costs_the_same_however_many_there_are(admin: AclAdmin) -> None:
    def cost(count: int) -> int:
        resources = [TOPIC._replace(name=f"topic-{n}") for n in range(count)]
        bindings = [Binding(resource, ALICE) for resource in resources]
        run(admin.create(bindings, SliceScheduler().pace()))
        return calls(lambda: run(admin.delete(bindings, SliceScheduler().pace()))).total()

    assert cost(20) < 5 * cost(5)


def test_each_entry_of_a_resource_is_deleted_by_its_own_filter(admin: AclAdmin) -> None:
    def cost(count: int) -> int:
        entries = [ALICE._replace(principal=f"User:{n}") for n in range(count)]
        bindings = [Binding(TOPIC, entry) for entry in entries]
        run(admin.create(bindings, SliceScheduler().pace()))
        counted = calls(lambda: found.extend(run(admin.delete(bindings, SliceScheduler().pace()))))
        return counted.total()

    found: list[list[DeletedBinding]] = []
    assert cost(20) < 5 * cost(5)
    assert [len(rows) for rows in found] == [1] * 25
