"""This broker as another broker's client: one connection, made when it is needed.

    client = NodeClient("b2", 9092, "1", request_timeout_ms=30_000)
    response = await client.request(FetchRequest(...), 17)

Requests go out in the order of the calls, without waiting for each other; answers come back in that
order (`protocol.client_connection`). A connection that ends, or does not answer in time, fails what
is under way with `NodeUnavailable`; the next request connects anew. Nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import KafkapyError, ProtocolViolation
from kafkapy.protocol.client_connection import ClientConnection
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.schema import Message

# Any broker answers version 0, and it has all that is asked for here: the ranges.
_API_VERSIONS_VERSION: Final = 0

VersionRanges = Mapping[int, tuple[int, int]]


class NodeUnavailable(KafkapyError):
    """No answer will come: not connected, disconnected, too late, or not Kafka's protocol.

    Whether the broker carried the request out is unknown.
    """


class NodeClient:
    """A client of one broker's listener. Fixed: the address, client id and time limit."""

    def __init__(self, host: str, port: int, client_id: str, *, request_timeout_ms: int) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._timeout_s = request_timeout_ms / 1000
        self._link: _Link | None = None
        self._closed = False

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now; it may turn out to be gone."""
        return self._link is not None and self._link.is_connected

    async def request(
        self, message: Message, version: int, *, timeout_ms: int | None = None
    ) -> Any:
        """Send and wait for the response, `timeout_ms` (default: the client's) with connecting.

        `records` of the response are views into memory that is not used again. Cancelling drops
        the response only.

        Raises:
            NodeUnavailable: no answer will come.
            ApiError: UNSUPPORTED_VERSION, from the encoder.
        """
        limit_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        return await self._open_link().send(message, version, limit_s)

    async def api_versions(self) -> VersionRanges:
        """(lowest, highest) version by API key of the broker; asked once a connection.

        Raises:
            NodeUnavailable: no answer will come.
        """
        link = self._open_link()
        if link.api_versions is None:
            answer = await link.send(ApiVersionsRequest(), _API_VERSIONS_VERSION, self._timeout_s)
            link.api_versions = {
                row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
            }
        return link.api_versions

    def disconnect(self, reason: str = "disconnected") -> None:
        """Drop the connection; the next request makes another."""
        if self._link is not None:
            self._link.end(reason)

    def close(self) -> None:
        """Drop the connection for good; what waits fails, and so do later requests."""
        self._closed = True
        self.disconnect("this client was closed")

    def _open_link(self) -> _Link:
        if self._closed:
            raise NodeUnavailable(f"{self.host}:{self.port}: this client was closed")
        if self._link is None:
            self._link = _Link(self.host, self.port, self._client_id, self._ended)
        return self._link

    def _ended(self, link: _Link) -> None:
        if self._link is link:
            self._link = None


class _Sent(NamedTuple):
    """A request whose answer has not come."""

    answer: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class _Link(asyncio.BufferedProtocol):
    """One connection from the attempt to its end. Frames made before it stands wait in order."""

    def __init__(
        self, host: str, port: int, client_id: str, on_end: Callable[[_Link], None]
    ) -> None:
        self.api_versions: VersionRanges | None = None
        self._address = f"{host}:{port}"
        self._on_end = on_end
        self._wire = ClientConnection(client_id)
        self._sent: deque[_Sent] = deque()
        self._unsent: list[bytes] = []
        self._transport: Any = None
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._connecting = self._loop.create_task(self._connect(host, port))

    @property
    def is_connected(self) -> bool:
        return self._transport is not None and not self._ended

    def send(self, message: Message, version: int, limit_s: float) -> asyncio.Future[Any]:
        """Send now, or as soon as connected; the future of the response."""
        _, frame = self._wire.send(message, version)
        answer = self._loop.create_future()
        timer = self._loop.call_later(limit_s, self.end, f"no answer within {limit_s:g} s")
        self._sent.append(_Sent(answer, timer))
        if self._transport is None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)
        return answer

    def end(self, reason: str) -> None:
        """Close, and fail what waits."""
        if self._ended:
            return
        self._ended = True
        self._on_end(self)
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        for answer, timer in self._sent:
            timer.cancel()
            if not answer.done():
                answer.set_exception(NodeUnavailable(f"{self._address}: {reason}"))
        self._sent.clear()

    async def _connect(self, host: str, port: int) -> None:
        try:
            await self._loop.create_connection(lambda: self, host, port)
        except (OSError, OverflowError, UnicodeError) as error:  # the latter: no such address
            self.end(str(error))

    # asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._ended:
            transport.abort()
            return
        transport.writelines(self._unsent)
        self._unsent.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end("the connection was closed" if exc is None else str(exc))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            responses = self._wire.bytes_received(nbytes)
        except ProtocolViolation as violation:
            self.end(str(violation))
            return
        for response in responses:
            answer, timer = self._sent.popleft()
            timer.cancel()
            with contextlib.suppress(asyncio.InvalidStateError):  # nobody waits any more
                answer.set_result(response.message)
