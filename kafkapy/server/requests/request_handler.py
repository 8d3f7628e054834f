"""Interfaces between a connection and the handler of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import GeneratorType

    from kafkapy.common.errors import ProtocolViolation
    from kafkapy.protocol.headers import RequestHeader
    from kafkapy.protocol.primitives import Buffer
    from kafkapy.protocol.schema import Message
    from kafkapy.protocol.server_connection import Request
    from kafkapy.server.counts.request_times import RequestTimes
    from kafkapy.server.requests.outcomes import (
        CloseConnection,
        Elsewhere,
        NoResponse,
        Outcome,
        Pending,
    )

Parts: TypeAlias = "list[Buffer]"
"""A response as it is sent, its size first."""
Reply: TypeAlias = "Parts | Pending[bytes | Parts | Message] | NoResponse | CloseConnection"
"""A response as it is sent. One that is made later may still have to be encoded."""
Running: TypeAlias = "GeneratorType[int | Elsewhere, object, Outcome[Message]]"
"""Work (`outcomes.Work`), by the class that all of it has."""
Encodable: TypeAlias = (
    "Message | Parts | NoResponse | CloseConnection | ProtocolViolation | Running"
)
"""The end of a `Pending` that a connection waits for."""


UNKNOWN_SOFTWARE: Final = ("unknown", "unknown")
"""Of a client that has sent no ApiVersions, or an old version."""


class FastPath(Protocol):
    """Handles the requests of one connection that are like one before; `times` counts them."""

    times: RequestTimes

    def handle(self, frame: memoryview) -> bytes | Reply | None:
        """The encoded response, a `Pending` of one, or None: not one of those, nothing done."""

    def close(self) -> None:
        """The connection is gone."""


class Caller(Protocol):
    """A connection, as who handles its requests sees it. `principal` is `User:alice`, `peer` the
    client's address and port; `client_software` the name and version that ApiVersions had.
    """

    listener: str
    peer: str
    client_software: tuple[str, str]
    client_host: str
    principal: str
    is_token: bool
    fast_path: FastPath | None

    def mute(self, pause_ms: int) -> None:
        """Handle nothing of it for so long."""

    def when_closed(self, step: Callable[[], None]) -> None:
        """Call this once when the connection has ended, or at once if it has. There is one."""


class RequestHandler(Protocol):
    """Handles the requests of all connections."""

    def dispatch(self, connection: Caller, request: Request) -> Reply:
        """The encoded response, a `Pending` of a response, or how to end.

        Raises:
            ProtocolViolation: it is no request; the connection closes.
        """

    def repeat(
        self, connection: Caller, fast_path: FastPath, frame: memoryview
    ) -> bytes | Reply | None:
        """The same on the connection's fast path; None, and nothing done, if it must not."""

    def encode(self, header: RequestHeader, response: Encodable) -> Reply | ProtocolViolation:
        """A response as bytes, now or later; endings pass through."""
