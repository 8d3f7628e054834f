"""Calls `http_adapter`, which imports `ssl` and `urllib`, and so is imported on first use."""

from __future__ import annotations

from kafkapy.security.oauth.http_request import HttpRequest


def fetch(request: HttpRequest) -> bytes:
    """Send a request. Returns the body of the response.

    Raises:
        FetchFailed: the request failed.
    """
    from kafkapy.security.oauth import http_adapter

    return http_adapter.fetch(request)
