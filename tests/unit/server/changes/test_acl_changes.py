"""A broker's authorizer has what is stored: from the start, after each change, after a lost
session."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ZnodeError
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins

ALICE = AccessControlEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)
PREFIX = ResourcePattern(ResourceKind.TOPIC, "pre", PatternType.PREFIXED)


def prepared() -> tuple[ZkStore, AclAuthorizer, AclChangeListener]:
    store, authorizer = admins.store(), AclAuthorizer()
    run(store.acls.create_paths())
    return store, authorizer, AclChangeListener(store, ManualClock(), authorizer)


async def put(store: ZkStore, resource: ResourcePattern, *entries: AccessControlEntry) -> None:
    await store.acls.update(resource, lambda _: frozenset(entries))


async def until(authorizer: AclAuthorizer, expected: object) -> None:
    async with asyncio.timeout(10):
        while authorizer.acls != expected:
            await asyncio.sleep(0)


def test_start_loads_everything_then_follows() -> None:
    async def scenario() -> None:
        store, authorizer, listener = admins.store(), AclAuthorizer(), None
        listener = AclChangeListener(store, ManualClock(), authorizer)
        await store.acls.create_paths()
        await put(store, PREFIX, ALICE)
        await listener.start()
        assert authorizer.acls == {PREFIX: {ALICE}}
        await put(store, TOPIC, ALICE)
        await until(authorizer, {PREFIX: {ALICE}, TOPIC: {ALICE}})
        await put(store, PREFIX)
        await until(authorizer, {TOPIC: {ALICE}})
        await listener.stop()
        await put(store, TOPIC)
        await asyncio.sleep(0)
        assert authorizer.acls == {TOPIC: {ALICE}}

    asyncio.run(scenario())


def test_a_reload_forgets_what_went_unseen() -> None:
    store, authorizer, listener = prepared()
    authorizer.update(PREFIX, [ALICE])
    run(put(store, TOPIC, ALICE))
    run(listener.reload())
    assert authorizer.acls == {TOPIC: {ALICE}}


def test_entries_that_cannot_be_read_keep_no_running_broker_from_reloading() -> None:
    """It would begin session after session, and be elected controller in none."""
    store, authorizer, listener = prepared()
    run(put(store, TOPIC, ALICE))
    run(listener.reload())
    run(store.zookeeper.set("/kafka-acl/Topic/t", b"broken"))
    run(put(store, PREFIX, ALICE))
    run(listener.reload())
    assert authorizer.acls == {TOPIC: {ALICE}, PREFIX: {ALICE}}
    with pytest.raises(ZnodeError):
        run(AclChangeListener(store, ManualClock(), AclAuthorizer()).reload())


def test_bad_changes_do_not_stop_the_rest_and_old_ones_go() -> None:
    store, authorizer, _ = prepared()
    clock = ManualClock()
    listener = AclChangeListener(store, clock, authorizer)
    run(store.zookeeper.create("/kafka-acl-changes/acl_changes_0000000000", b"NOTHING:t"))
    run(put(store, PREFIX, ALICE))
    run(store.zookeeper.create("/kafka-acl-changes/acl_changes_0000000001", b"TOPIC:t"))
    run(store.zookeeper.create("/kafka-acl/Topic/t", b"broken"))
    run(listener.process())
    assert authorizer.acls == {PREFIX: {ALICE}}
    clock.now_ms += CHANGE_EXPIRATION_MS + 1
    run(listener.process())
    assert run(store.acls.changes()) == []
