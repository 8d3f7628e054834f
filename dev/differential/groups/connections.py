"""Connections with asynchronous answers: the answer to a join waits for other members."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from kafkapy.protocol.client_connection import ClientConnection

QUIET_S: Final = 0.12
"""After this time without an answer, a broker is assumed to wait for something."""


class Activity:
    """The time of the last request or answer on any connection."""

    def __init__(self) -> None:
        self._last_s = 0.0

    def note(self) -> None:
        """Record a request or an answer now."""
        self._last_s = asyncio.get_running_loop().time()

    async def quiet(self) -> None:
        """Wait until no connection has been active for QUIET_S."""
        loop = asyncio.get_running_loop()
        while (left_s := self._last_s + QUIET_S - loop.time()) > 0:
            await asyncio.sleep(left_s)


class Connection(asyncio.BufferedProtocol):
    """One connection with a client id."""

    def __init__(self, client_id: str, activity: Activity) -> None:
        self._codec = ClientConnection(client_id)
        self._activity = activity
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._transport: asyncio.WriteTransport | None = None

    @classmethod
    async def open(cls, servers: str, client_id: str, activity: Activity) -> Connection:
        """Connect to a broker (`host:port`)."""
        host, port = servers.split(":")
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: cls(client_id, activity), host, int(port)))[1]

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight: the broker reads no other one meanwhile."""
        return bool(self._waiting)

    def ask(self, request: Any, version: int) -> asyncio.Future[Any]:
        """Send a request; the future has its answer, or ConnectionError if there is none."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._activity.note()
        if self._transport is None:
            self._answer_nobody()
        else:
            self._transport.write(self._codec.send(request, version)[1])
        return future

    def close(self) -> None:
        """Close the connection; requests in flight get no answer."""
        if self._transport is not None:
            self._transport.close()

    def _answer_nobody(self) -> None:
        while self._waiting:
            self._waiting.popleft().set_exception(ConnectionError("closed"))

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._answer_nobody()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._codec.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        for response in self._codec.bytes_received(nbytes):
            self._activity.note()
            self._waiting.popleft().set_result(response.message)
