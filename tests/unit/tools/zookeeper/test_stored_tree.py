"""Trees in data directories: of a ZooKeeper of our own, and of a broker without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.system import SystemClock
from kafkapy.storage.embedded_store_file import EMBEDDED_STORE_FILE, EmbeddedStoreFile
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.tools.zookeeper.stored_tree import process_on, read_stored_tree
from kafkapy.tools.zookeeper.znode_file import ZnodeRow
from kafkapy.zk.embedded.journal import Journal, JournalCorrupt
from kafkapy.zk.embedded.memory import MemoryServer
from kafkapy.zk.service.settings import DATA_FILE
from kafkapy.zk.zookeeper import CreateMode
from tests.harness.cores.socketless_zookeeper import SocketlessServer
from tests.harness.processes.idle_servers import IdleServers

OPEN = ((31, "world", "anyone"),)


def test_the_store_of_a_broker_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    file = EmbeddedStoreFile(OsFileSystem(), str(tmp_path / EMBEDDED_STORE_FILE))
    client = MemoryServer(SystemClock(), Journal(file)).connect()

    async def fill() -> None:
        await client.create("/empty", b"")
        await client.create("/empty/n_", b"x", CreateMode.PERSISTENT_SEQUENTIAL)
        await client.create("/gone", b"", CreateMode.EPHEMERAL)
        await client.set("/empty", b"")

    asyncio.run(fill())
    file.close()
    path = tmp_path / EMBEDDED_STORE_FILE
    path.write_bytes(path.read_bytes() + b"torn")
    before = path.read_bytes()
    found = read_stored_tree(tmp_path)
    assert found.ephemerals == []
    assert found.rows == [
        ZnodeRow("/", None, 0, 2, OPEN),
        ZnodeRow("/empty", None, 1, 1, OPEN),
        ZnodeRow("/empty/n_0000000000", b"x", 0, 0, OPEN),
    ]
    assert path.read_bytes() == before


def test_the_data_of_a_zookeeper_without_its_own_nodes(tmp_path: Path) -> None:
    desk = SocketlessServer()
    client = desk.client()
    client.create("/a", None)
    client.create("/a/b", b"")
    client.create("/live", b"", 1)
    (tmp_path / DATA_FILE).write_bytes(bytes(desk.file.data))
    found = read_stored_tree(tmp_path)
    assert found.ephemerals == ["/live"], "its session may come back"
    assert found.rows[1:] == [ZnodeRow("/a", None, 0, 1, OPEN), ZnodeRow("/a/b", b"", 0, 0, OPEN)]


def test_a_directory_without_znodes_and_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"There is neither {DATA_FILE} nor embedded-store in"):
        read_stored_tree(tmp_path)
    (tmp_path / DATA_FILE).write_bytes(b"garbage")
    with pytest.raises(JournalCorrupt):
        read_stored_tree(tmp_path)
    (tmp_path / DATA_FILE).unlink()
    (tmp_path / DATA_FILE).mkdir()
    with pytest.raises(ConfigError, match="Cannot read"):
        read_stored_tree(tmp_path)


def test_a_directory_that_cannot_be_searched_is_named(tmp_path: Path) -> None:
    """It was reported as a bug of kafkapy. Root may search each directory, so its name is long."""
    with pytest.raises(ConfigError, match=r"^Cannot read .*: File name too long$"):
        read_stored_tree(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["kafkapy.pid", "kafkapy-zookeeper.pid"])
def test_the_process_on_a_directory(name: str, tmp_path: Path) -> None:
    assert process_on(tmp_path) is None
    with IdleServers() as servers:
        child = servers.start(tmp_path / name)
        assert process_on(tmp_path) == child.pid
