"""The client within the server's process keeps the port's contract, and shares the tree with the
clients of the network."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest

from kafkapy.zk.service.event_loop import ZooKeeperServer
from kafkapy.zk.service.local_client import LocalZooKeeper
from kafkapy.zk.service.settings import settings_from
from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.requests import SetDataRequest
from kafkapy.zk.zookeeper import (
    Create,
    CreateMode,
    Get,
    Multi,
    NodeExists,
    SessionExpired,
    SetData,
    StoreUnavailable,
    Watch,
    WatchEvent,
    WatchEventType,
    Znode,
    ZooKeeper,
    ZooKeeperError,
)
from tests.harness.cores.ensembles import run
from tests.harness.cores.socketless_zookeeper import SocketlessServer
from tests.harness.cores.zookeeper_contract import CASES, expiry_takes_everything_and_is_told


class WithoutSystemNodes(LocalZooKeeper):
    """The contract begins with an empty tree."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return [name for name in await super().children(path, watch) if name != "zookeeper"]


class Served:
    """A service on the running loop, and local clients of it."""

    def __init__(self, desk: SocketlessServer | None = None) -> None:
        self.desk = desk or SocketlessServer()
        self.loop = asyncio.get_running_loop()
        self.faults: list[BaseException] = []
        self.server = ZooKeeperServer(self.desk.service, 60.0, self.loop, self.faults.append)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.stop()

    async def connect(self) -> LocalZooKeeper:
        return WithoutSystemNodes(self.server)

    async def expire(self, client: Any) -> None:
        """No local session expires."""

    async def reconnect(self, client: Any) -> None:
        """No local session expires."""


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case is not expiry_takes_everything_and_is_told],
    ids=lambda case: case.__name__,
)
def test_it_keeps_the_contract(case: Callable[[Any], Awaitable[None]]) -> None:
    async def test() -> None:
        async with Served() as ensemble:
            await case(ensemble)

    run(test())


def test_clients_of_the_network_share_the_tree() -> None:
    async def test() -> None:
        async with Served() as served:
            local: ZooKeeper = await served.connect()
            remote = served.desk.client()
            heard: list[WatchEvent] = []
            await local.create("/a", b"1")
            await local.get("/a", heard.append)
            assert remote.call(OpCode.SET_DATA, SetDataRequest("/a", b"2", 0)).stat.version == 1
            assert await local.exists("/a") is not None
            assert heard == [WatchEvent(WatchEventType.DATA_CHANGED, "/a")]
            remote.exists("/a", watch=True)
            await local.set("/a", b"3", 1)
            assert remote.exists("/a").stat.version == 2
            assert remote.take_events() == [(3, "/a")]

    run(test())


def test_its_ephemerals_end_with_the_process_and_others_stay() -> None:
    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            await local.create("/mine", b"", CreateMode.EPHEMERAL)
            remote = served.desk.client()
            remote.create("/theirs", b"", 1)
            served.desk.restart()
            assert set(served.desk.nodes) == {"/theirs"}

    run(test())


def test_it_outlives_every_timeout() -> None:
    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            await local.create("/mine", b"", CreateMode.EPHEMERAL)
            served.desk.tick(10 * 60_000)
            assert await local.exists("/mine") is not None
            await local.close()
            assert served.desk.nodes == {}
            with pytest.raises(SessionExpired):
                await local.get("/")

    run(test())


def test_it_may_do_everything_where_others_must_log_in() -> None:
    async def test() -> None:
        settings = settings_from({"sessionRequireClientSASLAuth": "true"}, {"kafka": "secret"})
        async with Served(SocketlessServer(settings)) as served:
            local = await served.connect()
            await local.create("/a", b"")
            stranger = served.desk.client()
            assert stranger.exists("/a") == ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH
        async with Served() as served:
            owner = served.desk.client()
            owner.create("/closed", b"", acl=(Acl(31, "ip", "127.0.0.1"),))
            local = await served.connect()
            assert (await local.set("/closed", b"x")).version == 1

    run(test())


def test_answers_beyond_the_limit_of_a_turn_all_come() -> None:
    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            data = b"x" * 200_000
            await local.create("/big", data)
            requests = [Get("/big"), Multi([SetData("/big", data)]), Get("/none")] * 60
            answers = await local.pipeline(requests)
            assert len(answers) == 180
            assert all(isinstance(each, Znode) and each.data == data for each in answers[::3])
            assert all(isinstance(each, ZooKeeperError) for each in answers[2::3])

    run(test())


def test_a_path_that_no_node_may_have_is_refused() -> None:
    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            with pytest.raises(ZooKeeperError, match="BADARGUMENTS"):
                await local.set("/a/..", b"")
            await local.create("/a", b"")
            with pytest.raises(NodeExists):
                await local.multi([Create("/b", b""), Create("/a", b"")])
            assert await local.exists("/b") is None

    run(test())


def test_a_request_that_cannot_be_sent_leaves_nothing_that_waits() -> None:
    """The next request waited for its answer without end, and with it the whole broker."""

    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            with pytest.raises(UnicodeEncodeError):
                await local.create("/\ud800", b"")
            with pytest.raises(struct.error):
                await local.set("/", b"", 1 << 31)
            assert (await local.set("/", b"x", 0)).version == 1

    run(test())


def test_a_store_that_cannot_be_written_is_told_to_all() -> None:
    async def test() -> None:
        async with Served() as served:
            local = await served.connect()
            served.desk.file.fail = True
            with pytest.raises(StoreUnavailable):
                await local.create("/a", b"")
            assert len(served.faults) == 1
            with pytest.raises(StoreUnavailable):
                await local.get("/")
            await local.close()
            await local.close()
            with pytest.raises(StoreUnavailable):
                await local.get("/")

    run(test())
