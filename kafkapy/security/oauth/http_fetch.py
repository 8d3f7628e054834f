"""The way to `http_adapter`: `ssl` and `urllib` are imported when there is something to fetch."""

from __future__ import annotations

from kafkapy.security.oauth.http_request import HttpRequest


def fetch(request: HttpRequest) -> bytes:
    """The answer to a request.

    Raises:
        FetchFailed: there is none.
    """
    from kafkapy.security.oauth import http_adapter

    return http_adapter.fetch(request)
