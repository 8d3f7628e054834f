"""The embedded store outlives its broker; a wrong ensemble is named, not waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError, KafkapyError, LogDirFailure
from kafkapy.common.system import SystemClock
from kafkapy.server.cluster.metadata_connection import connect
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
from kafkapy.storage.embedded_store_file import EMBEDDED_STORE_FILE
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.zk.zookeeper import CreateMode, NoNode
from tests.harness.processes.broker_process import free_port

PORTS = (OsFileSystem(), SystemClock(), ZooKeeperMetrics())


def config(directory: Path, **more: str) -> KafkaConfig:
    return KafkaConfig({"log.dirs": str(directory), **more})


def test_what_was_written_is_there_after_a_restart_but_for_ephemerals(tmp_path: Path) -> None:
    async def life(first: bool) -> None:
        connection = await connect(config(tmp_path), *PORTS)
        zookeeper = connection.zookeeper
        if first:
            await zookeeper.create("/kept", b"data")
            await zookeeper.create("/gone", b"", CreateMode.EPHEMERAL)
        else:
            assert (await zookeeper.get("/kept")).data == b"data"
            with pytest.raises(NoNode):
                await zookeeper.get("/gone")
        await connection.close()

    asyncio.run(life(True))
    assert (tmp_path / EMBEDDED_STORE_FILE).exists()
    asyncio.run(life(False))


def test_a_new_session_tells_who_listens(tmp_path: Path) -> None:
    async def expire() -> list[str]:
        connection = await connect(config(tmp_path), *PORTS)
        told: list[str] = []
        connection.on_session_expired(lambda: told.append("expired"))
        before = connection.zookeeper.session_id
        connection.zookeeper._server.expire(before)  # type: ignore[attr-defined]
        await connection.reconnect()
        assert connection.zookeeper.session_id != before
        await connection.close()
        return told

    assert asyncio.run(expire()) == ["expired"]


def test_an_ensemble_that_does_not_answer_is_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    limits = {"zookeeper.connection.timeout.ms": "300", "zookeeper.connect": address}
    with pytest.raises(KafkapyError, match=address):
        asyncio.run(connect(config(tmp_path, **limits), *PORTS))


def test_a_wrong_connect_string_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        asyncio.run(
            connect(
                config(tmp_path, **{"zookeeper.connect": "host:many"}),
                *PORTS,
            )
        )


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{EMBEDDED_STORE_FILE}.tmp").mkdir()
    with pytest.raises(LogDirFailure, match=f"Cannot write {tmp_path}/{EMBEDDED_STORE_FILE}: "):
        asyncio.run(connect(config(tmp_path), *PORTS))
