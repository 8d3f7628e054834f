"""The simulated ensemble, behind production's adapter, behaves like a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.zookeeper import CreateMode, NodeExists, SessionExpired
from tests.harness.cores.zookeeper_contract import CASES, Ensemble
from tests.simulation.ensemble import HOST
from tests.simulation.events import SECOND_US
from tests.simulation.kazoo_twin import SimKazooClient
from tests.simulation.world import World

CONFIG = {"zookeeper.connect": "zookeeper:2181", "zookeeper.session.timeout.ms": "1500"}


class SimEnsemble:
    """An empty tree, and clients on one host."""

    def __init__(self) -> None:
        self.world = World(1)
        self.process = self.world.process("client")
        # Requests start later than time 0, which a znode's stat would show as no time.
        self.world.events.now_us = SECOND_US

    async def connect(self) -> KazooZooKeeper:
        client = KazooZooKeeper(
            ZooKeeperClientConfig.from_properties(CONFIG),
            lambda *args, **options: SimKazooClient(self.world.ensemble, *args, **options),
        )
        await client.connect()
        return client

    async def expire(self, client: KazooZooKeeper) -> None:
        self.world.ensemble.expire(client.session_id)

    async def reconnect(self, client: KazooZooKeeper) -> None:
        await client.reconnect()

    def run(self, case: Callable[[Any], Awaitable[None]]) -> None:
        """Run a case to its end, and raise its exception."""

        async def work() -> None:
            await case(self)

        task = self.process.create_task(work())
        self.world.events.run_until(100 * SECOND_US, task.done)
        task.result()
        self.process.kill()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_contract_is_kept(case: Callable[[Ensemble], Awaitable[None]]) -> None:
    SimEnsemble().run(case)


def test_a_session_was_connected_at_a_write_after_its_znode_and_is_until_it_is_cut() -> None:
    ensemble = SimEnsemble()
    known = []

    async def case(sessions: Any) -> None:
        def note() -> None:
            known.append(sessions.world.ensemble.was_connected_at("/owned", "/changed"))

        client = await sessions.connect()
        note()
        await client.create("/changed", b"")
        await client.create("/owned", b"", CreateMode.EPHEMERAL)
        note()  # the replaced leader may have been a broker of another session
        await client.set("/changed", b"new")
        note()
        sessions.world.ensemble.stop()
        note()

    ensemble.run(case)
    assert known == [False, False, True, False]


def test_a_write_whose_answer_is_lost_is_asked_for_again() -> None:
    """The first request was performed: the second one finds its node."""

    async def case(ensemble: SimEnsemble) -> None:
        client = await ensemble.connect()
        network = ensemble.world.network
        network.cut_link(HOST, "client")
        ensemble.world.events.after(SECOND_US, lambda: network.heal_link(HOST, "client"))
        with pytest.raises(NodeExists):
            await client.create("/once", b"")
        assert await client.exists("/once") is not None

    SimEnsemble().run(case)


def test_a_session_that_is_not_heard_of_expires_and_its_client_is_told() -> None:
    async def case(ensemble: SimEnsemble) -> None:
        client = await ensemble.connect()
        told = asyncio.Event()
        client.on_session_expired = told.set
        await client.create("/mine", b"", CreateMode.EPHEMERAL)
        network, expired = ensemble.world.network, client.session_id
        network.cut_link("client", HOST)
        ensemble.world.events.after(3 * SECOND_US, lambda: network.heal_link("client", HOST))
        await told.wait()
        await client.reconnect()
        assert client.session_id != expired
        assert await client.exists("/mine") is None

    SimEnsemble().run(case)


def test_a_write_that_arrives_after_its_session_has_expired_is_not_carried_out() -> None:
    """An ephemeral of an expired session would stay for good."""

    async def case(ensemble: SimEnsemble) -> None:
        client = await ensemble.connect()
        creation = asyncio.ensure_future(client.create("/late", b"", CreateMode.EPHEMERAL))
        await asyncio.sleep(0)  # the request is sent, and has not arrived
        await ensemble.expire(client)
        with pytest.raises(SessionExpired):
            await creation
        assert "/late" not in ensemble.world.ensemble.tree.nodes

    SimEnsemble().run(case)
