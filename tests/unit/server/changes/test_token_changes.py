"""A broker knows the tokens that are stored: from the start, after each change, after a lost
session."""

from __future__ import annotations

import asyncio

from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.server.changes.token_changes import TokenChangeListener
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins


def token(token_id: str, expiry_ms: int = 50) -> TokenInformation:
    return TokenInformation(token_id, "User:a", "User:a", (), 1, 100, expiry_ms)


def listener(store: ZkStore, clock: ManualClock) -> tuple[DelegationTokens, TokenChangeListener]:
    tokens = DelegationTokens(b"secret", clock)
    return tokens, TokenChangeListener(store, clock, tokens)


def ids(tokens: DelegationTokens) -> set[str]:
    return {each.token_id for each in tokens.all()}


def test_start_loads_everything_then_follows() -> None:
    async def scenario() -> None:
        store = admins.store()
        tokens, changes = listener(store, ManualClock())

        async def until(expected: set[str]) -> None:
            async with asyncio.timeout(10):
                while ids(tokens) != expected:
                    await asyncio.sleep(0)

        await store.tokens.create_paths()
        await store.tokens.create(token("a"))
        await changes.start()
        assert ids(tokens) == {"a"}
        await store.tokens.create(token("b"))
        await store.tokens.notify("b")
        await until({"a", "b"})
        await store.tokens.delete("a", 0)
        await store.tokens.notify("a")
        await until({"b"})
        await changes.stop()

    asyncio.run(scenario())


def test_a_reload_forgets_what_went_unseen() -> None:
    store = admins.store()
    run(store.tokens.create_paths())
    tokens, changes = listener(store, ManualClock())
    tokens.put(token("gone"))
    run(store.tokens.create(token("new")))
    run(store.zookeeper.create("/delegation_token/tokens/broken", b"{}"))
    run(changes.reload())
    assert ids(tokens) == {"new"}


def test_what_cannot_be_read_does_not_stop_the_rest_and_old_ones_go() -> None:
    store, clock = admins.store(), ManualClock()
    run(store.tokens.create_paths())
    tokens, changes = listener(store, clock)
    run(store.zookeeper.create("/delegation_token/tokens/broken", b"{}"))
    run(store.tokens.create(token("whole")))
    for token_id in ("broken", "whole"):
        run(store.tokens.notify(token_id))
    run(changes.process())
    assert ids(tokens) == {"whole"}
    clock.now_ms += CHANGE_EXPIRATION_MS + 1
    run(changes.process())
    assert run(store.tokens.changes()) == []


def test_a_change_is_read_once() -> None:
    store = admins.store()
    run(store.tokens.create_paths())
    run(store.tokens.create(token("a")))
    run(store.tokens.notify("a"))
    tokens, changes = listener(store, ManualClock())
    run(changes.process())
    tokens.remove("a")
    run(changes.process())
    assert ids(tokens) == set()
