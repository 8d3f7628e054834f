"""The embedded store, served: other clients share it, and it is the same store afterwards."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.system import SystemClock
from kafkapy.server.cluster.metadata_connection import MetadataConnection, connect
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.tools.supervisor.process_properties import PROCESSES_MAX
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import SASL_LOGIN, ZooKeeperClientConfig
from kafkapy.zk.service.jaas_users import DIGEST_LOGIN
from kafkapy.zk.zookeeper import CreateMode
from tests.harness.cores.ensembles import run
from tests.harness.processes.broker_process import free_port

LISTEN = "kafkapy.zookeeper.listen"


def opened(directory: Path, **more: str) -> Awaitable[MetadataConnection]:
    config = KafkaConfig({"log.dirs": str(directory), **more})
    return connect(config, OsFileSystem(), SystemClock(), ZooKeeperMetrics())


def remote(port: int, **more: str) -> KazooZooKeeper:
    properties = {
        "zookeeper.connect": f"127.0.0.1:{port}",
        "zookeeper.connection.timeout.ms": "30000",
        **more,
    }
    return KazooZooKeeper(ZooKeeperClientConfig.from_properties(properties))


def test_other_clients_share_it_and_it_stays_the_brokers_store(tmp_path: Path) -> None:
    port = free_port()

    async def alone(check: Callable[[MetadataConnection], Awaitable[None]]) -> None:
        connection = await opened(tmp_path)
        await check(connection)
        await connection.close()

    async def before(connection: MetadataConnection) -> None:
        await connection.zookeeper.create("/old", b"kept")

    async def shared() -> None:
        connection = await opened(tmp_path, **{LISTEN: f"127.0.0.1:{port}"})
        other = remote(port)
        await other.connect()
        assert (await other.get("/old")).data == b"kept"
        changed = asyncio.Event()
        await connection.zookeeper.exists("/new", lambda _: changed.set())
        await other.create("/new", b"1")
        await asyncio.wait_for(changed.wait(), 60)
        await other.create("/theirs", b"", CreateMode.EPHEMERAL)
        assert await connection.zookeeper.children("/") == ["new", "old", "theirs", "zookeeper"]
        await connection.close()
        await other.close(0.1)

    async def after(connection: MetadataConnection) -> None:
        assert (await connection.zookeeper.get("/new")).data == b"1"
        assert await connection.zookeeper.exists("/theirs") is None

    run(alone(before))
    run(shared())
    run(alone(after))


def test_an_address_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        async def test() -> None:
            with pytest.raises(ConfigError, match=f"Cannot listen on {LISTEN}=127.0.0.1:{port}"):
                await opened(tmp_path, **{LISTEN: f"127.0.0.1:{port}"})

        run(test())


def test_who_may_come_is_warned_of_beyond_loopback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(f'Server {{ {DIGEST_LOGIN} required user_kafka="secret"; }};')
    file = {"kafkapy.java.security.auth.login.config": str(jaas)}
    caplog.set_level(logging.WARNING, "kafkapy.zookeeper")

    async def warned(host: str, **more: str) -> bool:
        caplog.clear()
        connection = await opened(tmp_path / "log", **{LISTEN: f"{host}:{free_port()}", **more})
        await connection.close()
        return "lets everybody who reaches it change the cluster" in caplog.text

    async def test() -> None:
        assert await warned("0.0.0.0")
        assert not await warned("127.0.0.1")
        assert not await warned("localhost")
        assert not await warned("0.0.0.0", **file)

    (tmp_path / "log").mkdir()
    run(test())


def test_with_users_others_must_log_in(tmp_path: Path) -> None:
    jaas, port = tmp_path / "jaas.conf", free_port()
    jaas.write_text(f'Server {{ {DIGEST_LOGIN} required user_kafka="secret"; }};')
    words = f'{DIGEST_LOGIN} required username="kafka" password="secret";'

    async def test() -> None:
        connection = await opened(
            tmp_path,
            **{LISTEN: f"127.0.0.1:{port}", "kafkapy.java.security.auth.login.config": str(jaas)},
        )
        await connection.zookeeper.create("/a", b"mine")
        client = remote(port, **{SASL_LOGIN: words})
        await client.connect()
        assert (await client.get("/a")).data == b"mine"
        await client.close()
        await connection.close()

    run(test())


def test_one_address_has_room_for_all_brokers_of_a_machine_but_not_for_a_flood(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        connection = await opened(tmp_path, **{LISTEN: f"127.0.0.1:{free_port()}"})
        service = connection.zookeeper._server.service  # type: ignore[attr-defined]
        admitted = sum(service.add_connection("10.0.0.1", n) is not None for n in range(1000))
        assert 2 * PROCESSES_MAX <= admitted < 1000
        await connection.close()

    run(test())


def test_a_store_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        connection = await opened(tmp_path, **{LISTEN: f"127.0.0.1:{free_port()}"})
        told: list[BaseException] = []
        connection.on_failure(told.append)

        def fail(data: bytes) -> None:
            raise OSError(28, "No space left on device")

        journal = connection.zookeeper._server.service._journal  # type: ignore[attr-defined]
        monkeypatch.setattr(journal._file, "append", fail)
        with pytest.raises(Exception, match="cannot be written"):
            await connection.zookeeper.create("/a", b"")
        assert [str(fault) for fault in told] == ["[Errno 28] No space left on device"]
        await connection.close()

    run(test())
