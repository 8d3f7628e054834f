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
        NoResponse,
        Outcome,
        Pending,
        ThreadCall,
    )

Parts: TypeAlias = "list[Buffer]"
"""An encoded response. It begins with its size."""
Reply: TypeAlias = "Parts | Pending[bytes | Parts | Message] | NoResponse | CloseConnection"
"""An encoded response. The response of a `Pending` may still have to be encoded."""
RunningWork: TypeAlias = "GeneratorType[int | ThreadCall, object, Outcome[Message]]"
"""Work (`outcomes.Work`) by its class, for `isinstance`."""
Encodable: TypeAlias = (
    "Message | Parts | NoResponse | CloseConnection | ProtocolViolation | RunningWork"
)
"""The completion of a `Pending` for which a connection waits."""


UNKNOWN_SOFTWARE: Final = ("unknown", "unknown")
"""The software of a client that has sent no ApiVersions, or an old version of it."""


class FastPath(Protocol):
    """Handles requests of one connection that are like an earlier one. `times` counts them."""

    times: RequestTimes

    def handle(self, frame: memoryview) -> bytes | Reply | None:
        """The encoded response, or a `Pending` of one. None if the request is not like the earlier
        one; then nothing is done."""

    def close(self) -> None:
        """Release resources after the connection has closed."""


class Caller(Protocol):
    """A connection, as seen by request handlers. `principal` is `User:alice`, `peer` the client's
    address and port, `client_software` the name and version in ApiVersions.
    """

    listener: str
    peer: str
    client_software: tuple[str, str]
    client_host: str
    principal: str
    is_token: bool
    fast_path: FastPath | None

    def mute(self, pause_ms: int) -> None:
        """Stop handling requests of this connection for `pause_ms`."""

    def when_closed(self, step: Callable[[], None]) -> None:
        """Call `step` once when the connection has closed, or at once if it already has. A
        connection has one step."""


class RequestHandler(Protocol):
    """Handles the requests of all connections."""

    def dispatch(self, connection: Caller, request: Request) -> Reply:
        """The encoded response, a `Pending` of a response, `NO_RESPONSE` or `CLOSE_CONNECTION`.

        Raises:
            ProtocolViolation: it is no request; the connection closes.
        """

    def dispatch_fast(
        self, connection: Caller, fast_path: FastPath, frame: memoryview
    ) -> bytes | Reply | None:
        """Handle a request on the connection's fast path. None if it cannot be used; then nothing
        is done."""

    def encode(self, header: RequestHeader, response: Encodable) -> Reply | ProtocolViolation:
        """Encode a response, now or later. Outcomes that are not responses are returned as they
        are."""
