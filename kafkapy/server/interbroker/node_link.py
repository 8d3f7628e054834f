"""One connection to another broker, from connect to close. `NodeClient` replaces it when it
fails."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafkapy.common.errors import KafkapyError, ProtocolViolation
from kafkapy.protocol.client_connection import ClientConnection, MakeFrame, ReadFrame
from kafkapy.protocol.schema import Message
from kafkapy.server.security.node_security import NodeSecurity

VersionRanges = Mapping[int, tuple[int, int]]


class NodeUnavailable(KafkapyError):
    """No response will come: not connected, disconnected, too late, or not Kafka's protocol.

    Whether the broker has performed the request is unknown.
    """


OnAnswer = Callable[[Any], None]
"""Called with the response, or with a NodeUnavailable in its place."""


class _Sent(NamedTuple):
    """A request without response so far. It times out after `limit_s`, at `due_s` of the loop."""

    on_answer: OnAnswer
    due_s: float
    limit_s: float


class NodeConnection(asyncio.BufferedProtocol):
    """One connection, from connect to close. Frames sent before it is open wait in order."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        security: NodeSecurity,
        on_end: Callable[[NodeConnection], None],
        receive_buffer_bytes: int = -1,
    ) -> None:
        self.api_versions: VersionRanges | None = None
        self._address = f"{host}:{port}"
        self._security = security
        self._on_end = on_end
        self._receive_buffer_bytes = receive_buffer_bytes
        self._wire = ClientConnection(client_id)
        self._sent: deque[_Sent] = deque()
        self._unsent: list[bytes] = []
        self._transport: Any = None
        self._ended = False
        # One timer for all pending requests: a response in time does not touch it.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._connecting = self._loop.create_task(self._connect(host, port))

    @property
    def is_connected(self) -> bool:
        return self._transport is not None and not self._ended

    def send(self, message: Message, version: int, limit_s: float, on_answer: OnAnswer) -> None:
        """Send now, or as soon as connected."""
        self._enqueue(self._wire.send(message, version)[1], limit_s, on_answer)

    def send_frame(
        self, make: MakeFrame, read: ReadFrame, limit_s: float, on_answer: OnAnswer
    ) -> None:
        """Send a request that is encoded already, and whose response `read` decodes."""
        self._enqueue(self._wire.send_frame(make, read), limit_s, on_answer)

    def _enqueue(self, frame: bytes, limit_s: float, on_answer: OnAnswer) -> None:
        due_s = self._loop.time() + limit_s
        self._sent.append(_Sent(on_answer, due_s, limit_s))
        if self._timer is None or due_s < self._timer_due_s:
            self._set_timer(due_s)
        if self._transport is None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)

    def _set_timer(self, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_s = due_s
        self._timer = self._loop.call_at(due_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        first = min(self._sent, key=lambda sent: sent.due_s, default=None)
        if first is None:
            return
        if first.due_s <= self._timer_due_s:  # not the clock, which may be just before it
            self.end(f"no answer within {first.limit_s:g} s")
        else:
            self._set_timer(first.due_s)

    def end(self, reason: str) -> None:
        """Close, and fail the pending requests."""
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
        if not 0 < port <= 65535:  # uvloop would take the lowest 16 bits
            self.end(f"{port} is not a port: expected 1 to 65535")
            return
        try:
            tls = None if self._security.tls is None else self._security.tls()
            await self._loop.create_connection(
                lambda: self, host, port, ssl=tls, server_hostname=None if tls is None else host
            )
        except (OSError, UnicodeError) as error:  # UnicodeError: no such name
            self.end(str(error))

    # asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._ended:
            transport.abort()
            return
        if self._receive_buffer_bytes != -1:
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes
            )
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
            if self._ended:  # by the callback of an earlier response
                return
            self._sent.popleft().on_answer(response.message)
