"""A restarted broker waits for the end of the session of its last life, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint
from kafkapy.server.cluster.stale_registration import wait_until_expired
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.znodes import run, server

A_MINUTE_MS = 60_000
AN_INSTANT_MS = 20


def info(port: int = 9092) -> BrokerInfo:
    return BrokerInfo(1, (Endpoint("PLAINTEXT", "h", port),))


def test_a_broker_that_nobody_has_registered_starts_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    run(wait_until_expired(store.brokers, 1, A_MINUTE_MS))
    assert caplog.messages == []


def test_the_wait_ends_with_the_session_of_the_last_life(caplog: pytest.LogCaptureFixture) -> None:
    ensemble = server()
    last_life, zookeeper = ensemble.connect(), ensemble.connect()
    store = ZkStore(zookeeper)

    async def restart() -> int:
        await store.create_persistent_paths()
        last_epoch = await ZkStore(last_life).brokers.register(info(), 0)
        waiting = asyncio.ensure_future(wait_until_expired(store.brokers, 1, A_MINUTE_MS))
        await asyncio.sleep(0)
        # A change of what is registered is no end of it.
        await ZkStore(last_life).brokers.update(info(9099), 0)
        await asyncio.sleep(0)
        assert not waiting.done()
        ensemble.expire(last_life.session_id)
        await waiting
        return await store.brokers.register(info(), 0) - last_epoch

    assert asyncio.run(restart()) > 0
    assert [message.partition(";")[0] for message in caplog.messages] == [
        f"Broker 1 is still registered by session 0x{last_life.session_id:x}, which is its last"
        " life's or another broker's"
    ]


def test_a_broker_that_lives_is_not_waited_for_forever() -> None:
    ensemble = server()
    other, store = ZkStore(ensemble.connect()), ZkStore(ensemble.connect())
    run(store.create_persistent_paths())
    run(other.brokers.register(info(), 0))
    asyncio.run(wait_until_expired(store.brokers, 1, AN_INSTANT_MS))
    assert run(store.brokers.ids()) == [1]
