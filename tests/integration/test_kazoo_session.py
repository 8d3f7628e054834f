"""A session through lost connections, a lost server, expiry and reconnection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.zk.kazoo import session as kazoo_session
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.session import ConnectionState
from kafkapy.zk.zookeeper import (
    Create,
    CreateMode,
    Multi,
    NodeExists,
    SessionExpired,
    SetData,
    WatchEvent,
    WatchEventType,
    ZnodeStat,
)
from tests.harness.cores.ensembles import RealEnsemble, run
from tests.harness.cores.zookeeper_contract import LIMIT_S, RecordingWatch
from tests.harness.faults.tcp_proxy import TcpProxy
from tests.harness.processes.zookeeper_server import ZooKeeperServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper") / "data") as process:
        yield process


class States:
    """The connection states of a client, to wait for."""

    def __init__(self, zk: KazooZooKeeper) -> None:
        self._queue: asyncio.Queue[ConnectionState] = asyncio.Queue()
        zk.on_connection_state = self._queue.put_nowait

    async def wait(self, wanted: ConnectionState) -> None:
        async with asyncio.timeout(LIMIT_S):
            while await self._queue.get() is not wanted:
                continue


def test_a_lost_answer_is_asked_for_again(server: ZooKeeperServer) -> None:
    """The write happened, its answer did not arrive: the second try finds the first one's node."""

    async def test() -> None:
        async with TcpProxy(server.port) as proxy, RealEnsemble(server) as ensemble:
            other = await ensemble.connect()
            ensemble.address = f"127.0.0.1:{proxy.port}"
            zk = await ensemble.connect()
            session_id = zk.session_id
            made, changed = RecordingWatch(), RecordingWatch()
            await other.create("/b", b"")
            await other.exists("/a", made)
            await other.get("/b", changed)
            proxy.hold_answers()
            creating = asyncio.ensure_future(zk.create("/a", b""))
            setting = asyncio.ensure_future(zk.set("/b", b"x"))
            await made.wait(1)
            await changed.wait(1)
            await proxy.cut()
            with pytest.raises(NodeExists):
                await creating
            assert (await setting).version == 2
            assert zk.session_id == session_id

    run(test())


def test_requests_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    """Stopped with a window of requests in flight, killed, started again: all happen, in order."""

    async def test(server: ZooKeeperServer) -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect(session_timeout_ms="30000")
            session_id = zk.session_id
            states = States(zk)
            await zk.create("/a", b"")
            await zk.create("/e", b"", CreateMode.EPHEMERAL)
            server.pause()
            writes = [Multi([SetData("/a", b"%d" % n, n)]) for n in range(100)]
            pipeline = asyncio.ensure_future(zk.pipeline(writes))
            await asyncio.wait([pipeline], timeout=0)
            await asyncio.to_thread(server.kill)
            await states.wait(ConnectionState.CONNECTING)
            assert not zk.is_connected
            late = asyncio.ensure_future(zk.get("/a"))
            await asyncio.to_thread(server.start)
            for number, answer in enumerate(await pipeline):
                assert isinstance(answer, list)
                assert isinstance(answer[0], ZnodeStat)
                assert answer[0].version == number + 1
            assert (await late).stat.version > 0
            assert (await zk.get("/a")).data == b"99"
            assert zk.session_id == session_id
            assert await zk.exists("/e") is not None
            assert zk.is_connected

    with ZooKeeperServer(tmp_path / "data") as process:
        run(test(process))


def test_a_pause_shorter_than_the_session_is_not_noticed(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect(session_timeout_ms="30000")
            session_id = zk.session_id
            server.pause()
            creating = asyncio.ensure_future(zk.create("/e", b"", CreateMode.EPHEMERAL))
            done, _ = await asyncio.wait([creating], timeout=0.3)
            assert not done
            server.resume()
            assert await creating == "/e"
            assert zk.session_id == session_id

    run(test())


async def _changes_behind_the_back(ensemble: RealEnsemble, proxy: TcpProxy) -> None:
    other = await ensemble.connect()
    ensemble.address = f"127.0.0.1:{proxy.port}"
    zk = await ensemble.connect(session_timeout_ms="30000")
    states = States(zk)
    for path in ("/set", "/deleted", "/parent", "/same", "/quiet"):
        await zk.create(path, b"")
    missed, quiet = RecordingWatch(), RecordingWatch()
    for path in ("/set", "/deleted", "/created"):
        await zk.exists(path, missed)
    await zk.children("/parent", missed)
    await zk.get("/same", quiet)
    await zk.exists("/still-absent", quiet)
    await zk.children("/quiet", quiet)
    await proxy.take_down()
    await states.wait(ConnectionState.CONNECTING)
    await other.set("/set", b"1")
    await other.delete("/deleted")
    await other.create("/created", b"")
    await other.create("/parent/child", b"")
    proxy.bring_up()
    await states.wait(ConnectionState.CONNECTED)
    events = await missed.wait(4)
    assert sorted(events, key=lambda event: event.path) == [
        WatchEvent(WatchEventType.CREATED, "/created"),
        WatchEvent(WatchEventType.DELETED, "/deleted"),
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/parent"),
        WatchEvent(WatchEventType.DATA_CHANGED, "/set"),
    ]
    # The other watches are as good as before.
    await zk.exists("/")
    assert quiet.events == []
    await other.set("/same", b"1")
    await other.create("/still-absent", b"")
    await other.create("/quiet/child", b"")
    await zk.exists("/")
    assert quiet.events == [
        WatchEvent(WatchEventType.DATA_CHANGED, "/same"),
        WatchEvent(WatchEventType.CREATED, "/still-absent"),
        WatchEvent(WatchEventType.CHILDREN_CHANGED, "/quiet"),
    ]


@pytest.mark.parametrize("watches_per_request", [1000, 2], ids=["one request", "several"])
def test_watches_see_what_happened_during_an_outage(
    watches_per_request: int, server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kazoo_session, "_WATCHES_PER_REQUEST", watches_per_request)

    async def test() -> None:
        async with TcpProxy(server.port) as proxy, RealEnsemble(server) as ensemble:
            await _changes_behind_the_back(ensemble, proxy)

    run(test())


def test_a_session_ends_when_the_outage_is_longer(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with TcpProxy(server.port) as proxy, RealEnsemble(server) as ensemble:
            other = await ensemble.connect()
            ensemble.address = f"127.0.0.1:{proxy.port}"
            zk = await ensemble.connect(session_timeout_ms="1000")
            before = zk.session_id
            expired = asyncio.Event()
            zk.on_session_expired = expired.set
            await zk.create("/e", b"", CreateMode.EPHEMERAL)
            gone, mine = RecordingWatch(), RecordingWatch()
            await other.exists("/e", gone)
            await zk.exists("/e", mine)
            await proxy.take_down()
            waiting = asyncio.ensure_future(zk.pipeline([Multi([Create("/a", b"")])]))
            await gone.wait(1)
            # Nobody has told the client yet: it can only wait.
            assert not expired.is_set()
            assert not waiting.done()
            proxy.bring_up()
            async with asyncio.timeout(LIMIT_S):
                await expired.wait()
            with pytest.raises(SessionExpired):
                await waiting
            await zk.reconnect()
            assert zk.session_id != before
            assert await zk.children("/") == []
            assert mine.events == []

    run(test())


def test_closing_does_not_wait_for_a_server_that_is_stuck(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect(session_timeout_ms="60000")
            server.pause()
            try:
                waiting = asyncio.ensure_future(zk.get("/"))
                async with asyncio.timeout(20):
                    await zk.close(0.2)
                with pytest.raises(SessionExpired):
                    await waiting
            finally:
                server.resume()

    run(test())


def test_a_window_of_one_still_serves_all(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect(max_in_flight_requests="1")
            writes = [Multi([Create(f"/{n}", b"")]) for n in range(20)]
            assert await zk.pipeline(writes) == [[f"/{n}"] for n in range(20)]

    run(test())
