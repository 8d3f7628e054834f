"""Interfaces between a connection and the handler of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kafkapy.protocol.headers import RequestHeader
    from kafkapy.protocol.server_connection import Request


class FastPath(Protocol):
    """Handles the requests of one connection that are like one before; `times` counts them."""

    times: Any

    def handle(self, frame: memoryview) -> Any:
        """The encoded response, a `Pending` of one, or None: not one of those, nothing done."""

    def close(self) -> None:
        """The connection is gone."""


class Caller(Protocol):
    """A connection, as who handles its requests sees it. `principal` is `User:alice`."""

    listener: str
    client_host: str
    principal: str
    is_token: bool
    fast_path: FastPath | None

    def mute(self, pause_ms: int) -> None:
        """Handle nothing of it for so long."""


class RequestHandler(Protocol):
    """Handles the requests of all connections."""

    def dispatch(self, connection: Caller, request: Request) -> Any:
        """The encoded response, a `Pending` of a response, or how to end.

        Raises:
            ProtocolViolation: it is no request; the connection closes.
        """

    def repeat(self, connection: Caller, fast_path: FastPath, frame: memoryview) -> Any:
        """The same on the connection's fast path; None, and nothing done, if it must not."""

    def encode(self, header: RequestHeader, response: Any) -> Any:
        """A response as bytes, now or later; endings pass through."""
