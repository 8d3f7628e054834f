"""This broker as another broker's client: one connection, made when it is needed.

    client = NodeClient("b2", 9092, "1", request_timeout_ms=30_000)
    response = await client.request(FetchRequest(...), 17)

Requests go out in the order of the calls, without waiting for each other; answers come back in that
order (`protocol.client_connection`). A connection that ends, or does not answer in time, fails what
is under way with `NodeUnavailable`; the next request connects anew. Nothing is sent twice.

Who asks again and again uses `call`: it is told of the answer by whoever read it, where `request`
costs a future, a task's step and a turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
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


OnAnswer = Callable[[Any], None]
"""Gets the response, or the NodeUnavailable that stands for it."""


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
        return await _answer(self._open_link(), message, version, limit_s)

    def call(self, message: Message, version: int, on_answer: OnAnswer) -> None:
        """Send, and have `on_answer` called once, later: with the response, as `request` gives it,
        or with NodeUnavailable. What it raises over a response ends the connection.

        Raises:
            NodeUnavailable: this client was closed.
            ApiError: UNSUPPORTED_VERSION, from the encoder.
        """
        self._open_link().send(message, version, self._timeout_s, on_answer)

    async def api_versions(self) -> VersionRanges:
        """(lowest, highest) version by API key of the broker; asked once a connection.

        Raises:
            NodeUnavailable: no answer will come.
        """
        link = self._open_link()
        if link.api_versions is None:
            request = ApiVersionsRequest()
            answer = await _answer(link, request, _API_VERSIONS_VERSION, self._timeout_s)
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


def _answer(link: _Link, message: Message, version: int, limit_s: float) -> asyncio.Future[Any]:
    """The future of the response."""
    answer = asyncio.get_running_loop().create_future()
    link.send(message, version, limit_s, partial(_settle, answer))
    return answer


def _settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():  # nobody waits any more
        return
    if isinstance(outcome, NodeUnavailable):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


class _Sent(NamedTuple):
    """A request whose answer has not come; it is due within `limit_s`, at `due_s` of the loop."""

    on_answer: OnAnswer
    due_s: float
    limit_s: float


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
        # One timer for all that waits: a request that is answered in time does not touch it.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._connecting = self._loop.create_task(self._connect(host, port))

    @property
    def is_connected(self) -> bool:
        return self._transport is not None and not self._ended

    def send(self, message: Message, version: int, limit_s: float, on_answer: OnAnswer) -> None:
        """Send now, or as soon as connected."""
        _, frame = self._wire.send(message, version)
        due_s = self._loop.time() + limit_s
        self._sent.append(_Sent(on_answer, due_s, limit_s))
        if self._timer is None or due_s < self._timer_due_s:
            self._arm(due_s)
        if self._transport is None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)

    def _arm(self, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_s = due_s
        self._timer = self._loop.call_at(due_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        first = min(self._sent, key=lambda sent: sent.due_s, default=None)
        if first is None:
            return
        if first.due_s <= self._timer_due_s:  # not the clock, which may be a hair before it
            self.end(f"no answer within {first.limit_s:g} s")
        else:
            self._arm(first.due_s)

    def end(self, reason: str) -> None:
        """Close, and fail what waits."""
        if self._ended:
            return
        self._ended = True
        self._on_end(self)
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._sent = self._sent, deque()
        for sent in waiting:
            sent.on_answer(NodeUnavailable(f"{self._address}: {reason}"))

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
            if self._ended:  # by who got the answer before
                return
            self._sent.popleft().on_answer(response.message)
