"""A client of another broker: one connection, opened when it is needed.

    client = NodeClient("b2", 9092, "1", request_timeout_ms=30_000)
    response = await client.request(FetchRequest(...), 17)

Requests are sent in the order of the calls, without waiting for each other. Responses come back in
that order (`protocol.client_connection`). If the connection ends or a response is late, all pending
requests fail with `NodeUnavailable`, and the next request opens a new connection. Nothing is sent
twice.

Frequent callers use `call`, whose callback runs as soon as the response is read. `request` costs a
future, a step of a task and a turn of the event loop.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from kafkapy.protocol.client_connection import MakeFrame, ReadFrame
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.schema import Message
from kafkapy.server.interbroker.node_link import (
    NodeConnection,
    NodeUnavailable,
    OnAnswer,
    VersionRanges,
)
from kafkapy.server.interbroker.sasl_link import SaslNodeConnection
from kafkapy.server.security.node_security import PLAINTEXT, NodeSecurity

__all__ = ["NodeClient", "NodeUnavailable", "OnAnswer", "VersionRanges"]

# All brokers support version 0, and it has the version ranges.
_API_VERSIONS_VERSION: Final = 0


class NodeClient:
    """A client of one broker's listener. Fixed: the address, the client id, the timeout, the
    security of the listener, and the socket's receive buffer (-1: the kernel's default)."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        request_timeout_ms: int,
        security: NodeSecurity = PLAINTEXT,
        receive_buffer_bytes: int = -1,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self._security = security
        self._receive_buffer_bytes = receive_buffer_bytes
        self._timeout_s = request_timeout_ms / 1000
        self._connection: NodeConnection | None = None
        self._closed = False

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open. The broker may have closed it unnoticed."""
        return self._connection is not None and self._connection.is_connected

    async def request(
        self, message: Message, version: int, *, timeout_ms: int | None = None
    ) -> Any:
        """Send and wait for the response. `timeout_ms` (default: the client's) includes the time to
        connect.

        `records` of the response are views into memory that is not used again. Cancelling drops the
        response only.

        Raises:
            NodeUnavailable: no response will come.
            ApiError: UNSUPPORTED_VERSION, from the encoder.
        """
        limit_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        return await _answer(self._open_connection(), message, version, limit_s)

    def call(self, message: Message, version: int, on_answer: OnAnswer) -> None:
        """Send, and call `on_answer` once, later: with the response, as `request` returns it, or
        with NodeUnavailable. An exception that it raises for a response ends the connection.

        Raises:
            NodeUnavailable: this client was closed.
            ApiError: UNSUPPORTED_VERSION, from the encoder.
        """
        self._open_connection().send(message, version, self._timeout_s, on_answer)

    def call_frame(self, make: MakeFrame, read: ReadFrame, on_answer: OnAnswer) -> None:
        """`call` with a request that is encoded already, and a response that `read` decodes.

        Raises:
            NodeUnavailable: this client was closed.
        """
        self._open_connection().send_frame(make, read, self._timeout_s, on_answer)

    async def api_versions(self) -> VersionRanges:
        """The broker's (lowest, highest) version by API key, requested once per connection.

        Raises:
            NodeUnavailable: no response will come.
        """
        connection = self._open_connection()
        if connection.api_versions is None:
            request = ApiVersionsRequest()
            answer = await _answer(connection, request, _API_VERSIONS_VERSION, self._timeout_s)
            connection.api_versions = {
                row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
            }
        return connection.api_versions

    def disconnect(self, reason: str = "disconnected") -> None:
        """Drop the connection. The next request opens another."""
        if self._connection is not None:
            self._connection.end(reason)

    def close(self) -> None:
        """Drop the connection for good. Pending and later requests fail."""
        self._closed = True
        self.disconnect("this client was closed")

    def _open_connection(self) -> NodeConnection:
        if self._closed:
            raise NodeUnavailable(f"{self.host}:{self.port}: this client was closed")
        if self._connection is None:
            kind = NodeConnection if self._security.begin_login is None else SaslNodeConnection
            self._connection = kind(
                self.host,
                self.port,
                self.client_id,
                self._security,
                self._ended,
                self._receive_buffer_bytes,
            )
        return self._connection

    def _ended(self, connection: NodeConnection) -> None:
        if self._connection is connection:
            self._connection = None


def _answer(
    connection: NodeConnection, message: Message, version: int, limit_s: float
) -> asyncio.Future[Any]:
    """The future of the response."""
    answer = asyncio.get_running_loop().create_future()
    connection.send(message, version, limit_s, partial(_settle, answer))
    return answer


def _settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():  # the caller was cancelled
        return
    if isinstance(outcome, NodeUnavailable):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
