"""The port's contract against memory and a real ZooKeeper; chroot, ACLs and failing to connect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kafkapy.zk.kazoo.adapter import KazooZooKeeper, ZooKeeperUnavailable
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.kazoo.session import ConnectionState
from kafkapy.zk.zookeeper import CreateMode, WatchEvent, WatchEventType, ZooKeeperError
from tests.harness.cores.ensembles import MemoryEnsemble, RealEnsemble, run
from tests.harness.cores.zookeeper_contract import CASES, Ensemble, RecordingWatch
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.zookeeper_server import ZooKeeperServer

Case = Callable[[Ensemble], Awaitable[None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper") / "data") as process:
        yield process


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_memory_keeps_the_contract(case: Case) -> None:
    async def test() -> None:
        async with MemoryEnsemble() as ensemble:
            await case(ensemble)

    run(test())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_real_zookeeper_keeps_the_contract(case: Case, server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            await case(ensemble)

    run(test())


def test_paths_are_below_the_chroot(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect()
            inner, ensemble.chroot = ensemble.chroot, ""
            bare = await ensemble.connect()
            seen = RecordingWatch()
            await zk.children("/", seen)
            await zk.exists("/a", seen)
            await bare.create(f"{inner}/a", b"1")
            assert await seen.wait(2) == [
                WatchEvent(WatchEventType.CREATED, "/a"),
                WatchEvent(WatchEventType.CHILDREN_CHANGED, "/"),
            ]
            mode = CreateMode.PERSISTENT_SEQUENTIAL
            assert await zk.create("/n_", b"", mode) == "/n_0000000001"
            assert await bare.children(inner) == ["a", "n_0000000001"]

    run(test())


def test_each_change_of_the_connection_is_told(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            states: list[ConnectionState] = []
            zk = ensemble.client()
            zk.on_connection_state = states.append
            answered_s: list[float] = []
            zk.on_answer = answered_s.append
            await zk.connect()
            await zk.create("/a", b"")
            await zk.close()
            assert len(answered_s) > 1
            assert all(0 <= seconds < 60 for seconds in answered_s)
            assert states == [ConnectionState.CONNECTED, ConnectionState.CLOSED]

    run(test())


def test_nobody_there_is_said_with_the_address() -> None:
    address = f"127.0.0.1:{free_port()}"
    config = ZooKeeperClientConfig.from_properties(
        {"zookeeper.connect": f"{address}/chroot", "zookeeper.connection.timeout.ms": "300"}
    )

    async def test() -> None:
        with pytest.raises(
            ZooKeeperUnavailable, match=rf"{address} .* no answer within .*=300 .*refused"
        ):
            await KazooZooKeeper(config).connect()

    run(test())


def test_set_acl_makes_nodes_the_creators(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            login = {"kafkapy.zookeeper.auth": "digest:kafka:secret"}
            properties = {
                "zookeeper.connect": f"{ensemble.address}{ensemble.chroot}",
                "zookeeper.set.acl": "true",
            }
            owner = KazooZooKeeper(ZooKeeperClientConfig.from_properties(properties | login))
            await owner.connect()
            for path in ("/config", "/config/users", "/config/topics", "/consumers"):
                await owner.create(path, b"x")
            anyone = await ensemble.connect()
            assert (await anyone.get("/config/topics")).data == b"x"
            await anyone.set("/consumers", b"y")
            with pytest.raises(ZooKeeperError, match="NoAuth"):
                await anyone.get("/config/users")
            for path in ("/config", "/config/topics"):
                with pytest.raises(ZooKeeperError, match="NoAuth"):
                    await anyone.set(path, b"y")
            await owner.set("/config/users", b"y")
            await owner.close()

    run(test())


def test_a_cancelled_request_harms_no_other(server: ZooKeeperServer) -> None:
    async def test() -> None:
        async with RealEnsemble(server) as ensemble:
            zk = await ensemble.connect(max_in_flight_requests="1")
            first = asyncio.ensure_future(zk.create("/a", b""))
            second = asyncio.ensure_future(zk.create("/b", b""))
            await asyncio.wait([first], timeout=0)
            second.cancel()
            assert await first == "/a"
            assert await zk.create("/c", b"") == "/c"

    run(test())
