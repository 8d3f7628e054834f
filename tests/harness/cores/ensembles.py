"""The two sources of ZooKeeper clients in tests: a tree in memory, and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import count
from types import TracebackType
from typing import Any, Self

import uvloop
from kazoo.client import KazooClient

from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from tests.harness.cores import znodes
from tests.harness.processes.zookeeper_server import ZooKeeperServer

_chroots = count()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a test on the broker's kind of event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(coroutine)


class MemoryEnsemble:
    """An empty tree in memory."""

    def __init__(self) -> None:
        self._server = znodes.server()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: everything is in memory."""

    async def connect(self) -> MemoryZooKeeper:
        return self._server.connect()

    async def expire(self, client: MemoryZooKeeper) -> None:
        self._server.expire(client.session_id)

    async def reconnect(self, client: MemoryZooKeeper) -> None:
        client.reconnect()


class RealEnsemble:
    """A chroot of its own on a real server; closes its clients at the end."""

    def __init__(self, server: ZooKeeperServer, port: int | None = None) -> None:
        """`port` is that of a proxy in front of the server."""
        self.chroot = f"/test-{next(_chroots)}/inner"
        self.address = f"127.0.0.1:{server.port if port is None else port}"
        self._clients: list[KazooZooKeeper] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self._clients:
            await client.close()

    def client(self, **settings: str) -> KazooZooKeeper:
        """A client that is not connected yet; `_` in a setting's name stands for a dot."""
        properties = {
            "zookeeper.connect": f"{self.address}{self.chroot}",
            "zookeeper.connection.timeout.ms": "30000",
            **{f"zookeeper.{key.replace('_', '.')}": value for key, value in settings.items()},
        }
        client = KazooZooKeeper(ZooKeeperClientConfig.from_properties(properties))
        self._clients.append(client)
        return client

    async def connect(self, **settings: str) -> KazooZooKeeper:
        client = self.client(**settings)
        await client.connect()
        return client

    async def expire(self, client: KazooZooKeeper) -> None:
        """End a session on the server: a second client with its id and password closes it."""
        assert client._session is not None
        credentials = client._session._client.client_id
        await asyncio.to_thread(_close_session, self.address, credentials)

    async def reconnect(self, client: KazooZooKeeper) -> None:
        await client.reconnect()


def _close_session(address: str, credentials: tuple[int, bytes]) -> None:
    twin = KazooClient(address, client_id=credentials)
    twin.start()
    twin.stop()
    twin.close()
