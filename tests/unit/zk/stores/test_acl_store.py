"""Entries in ZooKeeper: the nodes are Kafka's, a race loses nothing, and every broker is told."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest

from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.stores.acl_store import (
    AclChange,
    AclStore,
    Entries,
    UpdateFailed,
    decode_change,
    decode_entries,
)
from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import NoNode, Op, OpResult, SessionExpired, WatchEvent, ZooKeeper
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server

ALICE = AccessControlEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
BOB = AccessControlEntry("User:bob", "10.0.0.1", Operation.DESCRIBE_CONFIGS, Permission.DENY)
TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
PREFIX = ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "pre", PatternType.PREFIXED)
NOTHING: Entries = frozenset()


def prepared() -> tuple[AclStore, ZooKeeper]:
    zk = server().connect()
    store = AclStore(zk)
    run(store.create_paths())
    return store, zk


def put(store: AclStore, resource: ResourcePattern, *entries: AccessControlEntry) -> None:
    run(store.update(resource, lambda _: frozenset(entries)))


def test_the_paths_are_those_a_broker_of_kafka_makes() -> None:
    _, zk = prepared()
    kinds = ["Cluster", "DelegationToken", "Group", "Topic", "TransactionalId", "User"]
    assert run(zk.children("/kafka-acl")) == kinds
    assert run(zk.children("/kafka-acl-extended/prefixed")) == kinds
    assert run(zk.children("/kafka-acl-changes")) == []
    assert run(zk.children("/kafka-acl-extended-changes")) == []


def test_nodes_and_notifications_are_kafkas_bytes() -> None:
    store, zk = prepared()
    put(store, TOPIC, ALICE, BOB)
    put(store, PREFIX, ALICE)
    assert run(zk.get("/kafka-acl/Topic/t")).data == (
        b'{"version":1,"acls":['
        b'{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"},'
        b'{"principal":"User:bob","permissionType":"Deny","operation":"DescribeConfigs",'
        b'"host":"10.0.0.1"}]}'
    )
    assert run(zk.get("/kafka-acl-changes/acl_changes_0000000000")).data == b"TOPIC:t"
    assert run(zk.exists("/kafka-acl-extended/prefixed/TransactionalId/pre"))
    assert run(zk.get("/kafka-acl-extended-changes/acl_changes_0000000000")).data == (
        b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"pre","patternType":"PREFIXED"}'
    )
    assert run(store.get_all()) == {TOPIC: {ALICE, BOB}, PREFIX: {ALICE}}


def test_the_last_entry_takes_the_node_with_it_and_no_change_is_no_news() -> None:
    store, zk = prepared()
    put(store, TOPIC, ALICE)
    put(store, TOPIC, ALICE)
    put(store, TOPIC)
    put(store, TOPIC)
    with pytest.raises(NoNode):
        run(zk.get("/kafka-acl/Topic/t"))
    assert len(run(store.changes())) == 2
    assert run(store.get(TOPIC)) == NOTHING


@pytest.mark.parametrize("before", [(), (ALICE,)], ids=["absent", "present"])
def test_who_was_faster_loses_nothing(before: tuple[AccessControlEntry, ...]) -> None:
    store, zk = prepared()
    put(store, TOPIC, *before)
    raced: list[Entries] = []

    def change(entries: Entries) -> Entries:
        if not raced:
            put(AclStore(zk), TOPIC, *entries, BOB)
        raced.append(entries)
        return entries | {ALICE._replace(host="h")}

    run(store.update(TOPIC, change))
    assert raced == [set(before), {*before, BOB}]
    assert run(store.get(TOPIC)) == {*before, BOB, ALICE._replace(host="h")}


def test_every_broker_is_told_of_a_write_whose_answer_was_lost() -> None:
    """Or a right that was taken away would stay."""
    zk = AnswerLosingZooKeeper(server())
    store = AclStore(zk)
    run(store.create_paths())
    for number, entries in enumerate(((ALICE,), (ALICE, BOB), ()), 1):
        zk.lost_path = "/kafka-acl/Topic/t"
        put(store, TOPIC, *entries)
        assert run(store.get(TOPIC)) == set(entries)
        assert len(run(store.changes())) == number


def test_every_broker_is_told_of_a_write_at_which_a_broker_ended() -> None:
    """The client asks another one, which finds nothing left to change and answers."""

    class Ending(MemoryZooKeeper):
        writes = 1

        async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
            if not self.writes:
                raise SessionExpired(ops[0].path)
            self.writes -= 1
            return await super().multi(ops)

    ensemble = server()
    store = AclStore(ensemble.connect())
    run(store.create_paths())
    for number, entries in enumerate(((ALICE,), (ALICE, BOB), ()), 1):
        with contextlib.suppress(SessionExpired):
            put(AclStore(Ending(ensemble)), TOPIC, *entries)
        put(store, TOPIC, *entries)
        assert run(store.get(TOPIC)) == set(entries)
        assert len(run(store.changes())) == number


def test_a_first_entry_needs_no_broker() -> None:
    zk = server().connect()
    store = AclStore(zk)
    put(store, PREFIX, ALICE)
    assert run(store.get(PREFIX)) == {ALICE}
    assert run(zk.children("/kafka-acl-extended-changes")) == ["acl_changes_0000000000"]


def test_an_update_that_never_wins_says_so() -> None:
    store, zk = prepared()
    rounds: list[int] = []

    def change(entries: Entries) -> Entries:
        rounds.append(len(rounds))
        put(AclStore(zk), TOPIC, ALICE._replace(host=str(len(rounds))))
        return frozenset((BOB,))

    with pytest.raises(UpdateFailed, match="after trying a maximum of 11 times"):
        run(store.update(TOPIC, change))


def test_changes_are_watched_read_and_purged() -> None:
    store, zk = prepared()
    seen: list[WatchEvent] = []
    assert run(store.changes(seen.append)) == []
    put(store, TOPIC, ALICE)
    put(store, PREFIX, ALICE)
    assert {event.path for event in seen} == {"/kafka-acl-changes", "/kafka-acl-extended-changes"}
    changes = run(store.changes())
    assert [run(store.changed_key(change)) for change in changes] == [TOPIC, PREFIX]
    made_ms = run(zk.get(changes[0].path)).stat.ctime_ms
    run(store.purge(changes, made_ms + CHANGE_EXPIRATION_MS))
    assert run(store.changes()) == changes
    run(store.purge(changes, made_ms + CHANGE_EXPIRATION_MS + 1))
    assert run(store.changes()) == []
    assert run(store.changed_key(changes[0])) is None
    run(store.purge(changes, made_ms + CHANGE_EXPIRATION_MS + 1))


def test_what_kafka_and_old_kafka_wrote_is_read() -> None:
    assert decode_entries("/x", b"") == NOTHING
    text = b'{"version":1,"acls":[{"principal":"User:a:b","permissionType":"Allow",'
    assert decode_entries("/x", text + b'"operation":"All","host":"*"}]}') == {
        AccessControlEntry("User:a:b", "*", Operation.ALL, Permission.ALLOW)
    }
    path = AclChange("/kafka-acl-changes", 7).path
    assert path == "/kafka-acl-changes/acl_changes_0000000007"
    named = ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "a:b", PatternType.LITERAL)
    assert decode_change(path, b"TRANSACTIONAL_ID:a:b") == named
    assert decode_change(path, b"TransactionalId:a:b") == named


@pytest.mark.parametrize("data", [b"x", b"[]", b"{}", b'{"acls":[{}]}', b'{"acls":1}'])
def test_what_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(ZnodeError, match="/kafka-acl/Topic/t"):
        decode_entries("/kafka-acl/Topic/t", data)
    for folder in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        with pytest.raises(ZnodeError, match=folder):
            decode_change(f"{folder}/acl_changes_0000000000", data)


@pytest.mark.parametrize(
    ("folder", "data"),
    [
        ("/kafka-acl-changes", b"ANY:t"),
        (
            "/kafka-acl-extended-changes",
            b'{"resourceType":"ANY","name":"t","patternType":"PREFIXED"}',
        ),
        (
            "/kafka-acl-extended-changes",
            b'{"resourceType":"TOPIC","name":"t","patternType":"MATCH"}',
        ),
    ],
)
def test_a_notification_of_what_only_filters_have_is_named(folder: str, data: bytes) -> None:
    """Its resource has no znode: the search for one would end the follower of all ACLs."""
    with pytest.raises(ZnodeError, match=folder):
        decode_change(f"{folder}/acl_changes_0000000000", data)
