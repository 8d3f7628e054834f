"""Following notifications, for ACLs and configs alike: a fault is tried again, and a new session
goes on where the old one ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from kafkapy.common import lasting_work
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.changes import change_follower
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.server.changes.change_follower import ChangeNotificationListener
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import StoreUnavailable, WatchEvent, WatchEventType
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import server
from tests.harness.scripted import admins

EVENT = WatchEvent(WatchEventType.CHILDREN_CHANGED, "/changes")
ALICE = AccessControlEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_follower, "_RETRY_BACKOFF_S", 0)
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await scenario()

    asyncio.run(limited())


def fail_once(of: Any, verb: str, monkeypatch: pytest.MonkeyPatch) -> list[StoreUnavailable]:
    """The verb fails at its next call; what is left of the faults."""
    plain, faults = getattr(of, verb), [StoreUnavailable("/changes")]

    async def fails_once(*args: Any) -> Any:
        if faults:
            raise faults.pop()
        return await plain(*args)

    monkeypatch.setattr(of, verb, fails_once)
    return faults


def test_a_fault_that_nobody_expected_is_tried_again_too() -> None:
    async def scenario() -> None:
        turns: asyncio.Queue[int] = asyncio.Queue()

        async def process() -> None:
            turns.put_nowait(0)
            if turns.qsize() == 1:
                raise ZeroDivisionError

        follower = ChangeNotificationListener("things", process, logging.getLogger("t"))
        follower.start()
        follower.on_watch(EVENT)
        while turns.qsize() < 2:
            await asyncio.sleep(0)
        await follower.stop()

    run(scenario)


def test_one_turn_serves_the_notifications_until_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        turns: asyncio.Queue[int] = asyncio.Queue()

        async def process() -> None:
            turns.put_nowait(len(caplog.records))

        follower = ChangeNotificationListener("things", process, logging.getLogger("t"))
        follower.start()
        for _ in range(2):
            follower.on_watch(EVENT)
            follower.on_watch(EVENT)
            assert await turns.get() == 0
            await asyncio.sleep(0)
            assert turns.empty()
        await follower.stop()
        follower.on_watch(EVENT)
        await asyncio.sleep(0)
        assert turns.empty()

    run(scenario)


@pytest.mark.parametrize("verb", ["changes", "get"])
def test_a_change_of_acls_is_not_lost_with_a_fault(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store, authorizer = admins.store(), AclAuthorizer()
        listener = AclChangeListener(store, ManualClock(), authorizer)
        await listener.start()
        faults = fail_once(store.acls, verb, monkeypatch)
        await store.acls.update(TOPIC, lambda _: frozenset((ALICE,)))
        while authorizer.acls != {TOPIC: {ALICE}}:
            await asyncio.sleep(0)
        assert not faults
        await listener.stop()

    run(scenario)


def followed(
    store: ZkStore,
) -> tuple[ConfigChangeListener, asyncio.Queue[tuple[str, dict[str, str]]]]:
    applied: asyncio.Queue[tuple[str, dict[str, str]]] = asyncio.Queue()

    def apply(entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        applied.put_nowait((name, dict(configs)))

    return ConfigChangeListener(store, ManualClock(), apply), applied


async def change(store: ZkStore, name: str, configs: dict[str, str]) -> None:
    await store.configs.set("topics", name, configs)


@pytest.mark.parametrize("verb", ["changes", "get"])
def test_a_change_of_configs_is_not_lost_with_a_fault(
    verb: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        store = admins.store()
        listener, applied = followed(store)
        await listener.start()
        faults = fail_once(store.configs, verb, monkeypatch)
        await change(store, "t", {"a": "1"})
        assert await applied.get() == ("t", {"a": "1"})
        assert not faults
        # The watch stands again: the next one needs no fault to be seen.
        await change(store, "t", {"a": "2"})
        assert await applied.get() == ("t", {"a": "2"})
        await listener.stop()

    run(scenario)
    assert [record.message for record in caplog.records] == [
        "Cannot follow config changes, trying again: StoreUnavailable for /changes"
    ]


def test_a_new_session_sets_the_watch_again() -> None:
    """`ClusterMember` begins it; the watches of the old session fire no more."""

    async def scenario() -> None:
        ensemble = server()
        other, mine = ZkStore(ensemble.connect()), ensemble.connect()
        await other.create_persistent_paths()
        await other.election.elect(1, 0)
        listener, applied = followed(ZkStore(mine))
        await listener.start()
        ensemble.expire(mine.session_id)
        await change(other, "t", {"a": "1"})
        await asyncio.sleep(0)
        assert applied.empty()
        mine.reconnect()
        await listener.process()
        assert await applied.get() == ("t", {"a": "1"})
        await change(other, "t", {"a": "2"})
        assert await applied.get() == ("t", {"a": "2"})
        await listener.stop()

    run(scenario)
