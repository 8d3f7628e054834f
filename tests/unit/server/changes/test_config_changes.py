"""Following config changes: everything at start, then each change, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.changes import config_changes
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.requests.turns import ROWS_AT_ONCE
from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import encode_config
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins

_LATER_MS = 1 << 60

Applied = list[tuple[str, str, dict[str, str]]]


def listener(store: ZkStore, applied: Applied, clock: ManualClock) -> ConfigChangeListener:
    def apply(entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        applied.append((entity_type, name, dict(configs)))
        if configs.get("bad"):
            raise ConfigError("bad")

    return ConfigChangeListener(store, clock, apply)


async def change(store: ZkStore, kind: str, name: str, configs: dict[str, str]) -> None:
    await store.configs.set(kind, name, configs)


def test_start_applies_everything_then_follows() -> None:
    async def scenario() -> None:
        store = admins.store()
        applied: asyncio.Queue[tuple[str, str, dict[str, str]]] = asyncio.Queue()

        def apply(entity_type: str, name: str, configs: Mapping[str, str]) -> None:
            applied.put_nowait((entity_type, name, dict(configs)))

        await change(store, "topics", "t", {"a": "1"})
        await change(store, "brokers", "1", {"b": "2"})
        await store.configs.purge_changes([0, 1], _LATER_MS)
        follower = ConfigChangeListener(store, ManualClock(), apply)
        await follower.start()
        assert [applied.get_nowait() for _ in range(applied.qsize())] == [
            ("topics", "t", {"a": "1"}),
            ("brokers", "1", {"b": "2"}),
        ]
        for value in ("2", "3"):
            await change(store, "topics", "t", {"a": value})
            assert await applied.get() == ("topics", "t", {"a": value})
        await follower.stop()
        await change(store, "topics", "t", {"a": "4"})
        assert applied.empty()

    asyncio.run(scenario())


def test_each_change_is_applied_once_in_order_and_bad_ones_do_not_stop_the_rest() -> None:
    store, applied = admins.store(), Applied()
    follower = listener(store, applied, ManualClock())
    run(change(store, "topics", "b", {"bad": "1"}))
    run(change(store, "topics", "a", {"k": "1"}))
    run(store.zookeeper.create("/config/changes/config_change_0000000002", b"broken"))
    run(change(store, "topics", "c", {"k": "1"}))
    run(store.zookeeper.set("/config/topics/c", b"broken"))
    run(store.zookeeper.delete("/config/topics/a"))
    run(follower.process())
    assert applied == [("topics", "b", {"bad": "1"}), ("topics", "a", {})]
    run(follower.process())
    assert len(applied) == 2


def test_a_broken_znode_keeps_no_broker_from_applying_the_rest() -> None:
    store, applied = admins.store(), Applied()
    run(store.zookeeper.create("/config/topics/a", b"broken"))
    run(store.configs.set("topics", "b", {"k": "1"}))
    run(listener(store, applied, ManualClock()).apply_all())
    assert applied == [("topics", "b", {"k": "1"})]


def test_configs_that_were_removed_unseen_end_when_all_are_read_again() -> None:
    """A password that was revoked in a long outage of this broker's session."""
    store, applied = admins.store(), Applied()
    follower = listener(store, applied, ManualClock())
    for kind, name in (("users", "u"), ("users", "v"), ("topics", "t")):
        run(store.configs.set(kind, name, {"k": "1"}))
    run(follower.apply_all())
    applied.clear()
    run(store.configs.set("users", "u", {}))
    run(store.zookeeper.set("/config/users/v", b"broken"))
    run(store.zookeeper.delete("/config/topics/t"))
    for _ in range(2):
        run(follower.apply_all())
    assert applied == [("users", "u", {})]


def test_other_tasks_run_while_the_configs_of_many_topics_are_applied() -> None:
    async def scenario() -> list[int]:
        store = admins.store()
        loop, applied, seen = asyncio.get_running_loop(), Applied(), [0]

        def look() -> None:
            seen.append(len(applied))
            loop.call_soon(look)

        for number in range(2 * ROWS_AT_ONCE):
            await store.zookeeper.create(f"/config/topics/t{number}", encode_config({}))
        loop.call_soon(look)
        await listener(store, applied, ManualClock()).apply_all()
        return [*seen, len(applied)]

    seen = asyncio.run(scenario())
    assert max(after - before for before, after in pairwise(seen)) == ROWS_AT_ONCE
    assert seen[-1] == 2 * ROWS_AT_ONCE


def test_old_notifications_are_deleted() -> None:
    store, applied, clock = admins.store(), Applied(), ManualClock()
    follower = listener(store, applied, clock)
    run(change(store, "topics", "t", {}))
    clock.now_ms += CHANGE_EXPIRATION_MS + 1
    run(follower.process())
    assert len(applied) == 1
    assert run(store.configs.changes()) == []


def test_catching_up_waits_for_a_change_that_is_being_applied() -> None:
    """Catching up must wait while another task has read a change and not yet applied it."""

    async def scenario() -> None:
        store, applied = admins.store(), Applied()
        follower = listener(store, applied, ManualClock())
        read, go_on = asyncio.Event(), asyncio.Event()
        get = store.configs.get

        async def slow_get(kind: str, name: str) -> dict[str, str]:
            read.set()
            await go_on.wait()
            return await get(kind, name)

        store.configs.get = slow_get  # type: ignore[method-assign]
        await change(store, "topics", "t", {"k": "1"})
        first = asyncio.create_task(follower.process())
        await read.wait()
        second = asyncio.create_task(follower.catch_up())
        await asyncio.sleep(0)
        assert not second.done()
        go_on.set()
        await second
        assert applied == [("topics", "t", {"k": "1"})]
        await first

    asyncio.run(scenario())


def test_an_old_config_that_was_read_first_is_not_applied_last() -> None:
    """A rejoining broker reads thousands of entities. One may change meanwhile, and a client that
    describes it makes this broker catch up.
    """

    async def scenario() -> None:
        store, applied = admins.store(), Applied()
        follower = listener(store, applied, ManualClock())
        read, go_on = asyncio.Event(), asyncio.Event()
        get_all = store.configs.get_all

        async def slow_get_all(kind: str) -> dict[str, dict[str, str]]:
            found = await get_all(kind)
            if kind == "topics":
                read.set()
                await go_on.wait()
            return found

        store.configs.get_all = slow_get_all  # type: ignore[method-assign,assignment]
        await store.configs.set("topics", "t", {"k": "1"})
        everything = asyncio.create_task(follower.apply_all())
        await read.wait()
        await change(store, "topics", "t", {"k": "2"})
        described = asyncio.create_task(follower.catch_up())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(everything, described)
        assert applied[-1] == ("topics", "t", {"k": "2"})

    asyncio.run(scenario())


def test_catching_up_without_zookeeper_gives_up_and_loses_no_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config_changes, "_CATCH_UP_LIMIT_S", 0.01)

    async def scenario() -> None:
        store, applied = admins.store(), Applied()
        follower = listener(store, applied, ManualClock())
        get = store.configs.get

        async def no_answer(kind: str, name: str) -> dict[str, str]:
            return await asyncio.get_running_loop().create_future()

        store.configs.get = no_answer  # type: ignore[method-assign]
        await change(store, "topics", "t", {"k": "1"})
        await follower.catch_up()
        assert applied == []
        store.configs.get = get  # type: ignore[method-assign]
        await follower.catch_up()
        assert applied == [("topics", "t", {"k": "1"})]

    asyncio.run(scenario())
