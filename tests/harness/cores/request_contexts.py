"""The context of a request that a test hands to a handler."""

from __future__ import annotations

from kafkapy.protocol.headers import RequestHeader
from kafkapy.server.api.request_context import RequestContext


def request_context(api_key: int, version: int) -> RequestContext:
    """The context for a client on this machine, on a plaintext listener."""
    return RequestContext(RequestHeader(api_key, version, 1, "test"), "127.0.0.1", "PLAINTEXT")
