"""Calls `http_adapter`, and imports `ssl` and `urllib` only for that."""

from __future__ import annotations

from kafkapy.security.oauth.http_request import HttpRequest


def fetch(request: HttpRequest) -> bytes:
    """Send a request. Returns the body of the response.

    Raises:
        FetchFailed: there is no response.
    """
    from kafkapy.security.oauth import http_adapter

    return http_adapter.fetch(request)
