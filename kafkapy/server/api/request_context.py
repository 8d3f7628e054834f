"""The context that a handler gets with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.server.requests.outcomes import ANONYMOUS

if TYPE_CHECKING:
    from kafkapy.protocol.headers import RequestHeader


class RequestContext:
    """The context of one request: the caller's principal (`User:alice`; `is_token`: by a delegation
    token), the listener, and the version.
    """

    __slots__ = ("client_host", "header", "is_token", "listener", "principal", "version")

    def __init__(
        self,
        header: RequestHeader,
        client_host: str,
        listener: str,
        principal: str = ANONYMOUS,
        is_token: bool = False,
    ) -> None:
        self.header = header
        self.version = header.api_version
        self.client_host = client_host
        self.listener = listener
        self.principal = principal
        self.is_token = is_token
