"""Fetches keys and tokens: sends one small HTTP request, or reads a file.

For clients and brokers. It blocks.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import IO, Any, Final

from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest
from kafkapy.security.tls import stores as tls_stores

ANSWER_BYTES_MAX: Final = 1 << 20
REDIRECTS_MAX: Final = 5
TOTAL_LIMIT_S: Final = 60.0
"""The time limit for a whole response."""
_CHUNK_BYTES: Final = 1 << 16
_RETRIABLE_4XX: Final = (408, 429)  # of 4xx; the others are faults of the request
_FINAL_5XX: Final = (501, 505)


class _SafeRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects of a POST, whose credentials are for the configured URL, nor, as in
    Java, those to another scheme: a redirect from HTTPS to HTTP would lose its protection.
    """

    max_redirections = REDIRECTS_MAX

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.data is not None or urllib.parse.urlsplit(newurl).scheme != req.type:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(request: HttpRequest) -> bytes:
    """Send a request. Returns the body of the response.

    Raises:
        FetchFailed: names the URL and the reason, never the credentials.
        ConfigError: a key or trust store in `tls` cannot be used.
    """
    handlers: list[Any] = [urllib.request.ProxyHandler({}), _SafeRedirectHandler()]
    if request.url.startswith("https:"):
        context = tls_stores.client_context(PrefixedProperties(dict(request.tls)))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)
    urllib_request = urllib.request.Request(request.url, request.body, dict(request.headers))
    timeout_s = max(request.connect_timeout_s, request.read_timeout_s)
    try:
        with opener.open(urllib_request, timeout=timeout_s) as answer:
            data = _read_body(answer, time.monotonic() + TOTAL_LIMIT_S)
    except urllib.error.HTTPError as error:
        with error:
            is_final = (
                400 <= error.code < 500 and error.code not in _RETRIABLE_4XX
            ) or error.code in _FINAL_5XX
            raise FetchFailed(
                f"{request.url}: HTTP {error.code} {error.reason}", is_final
            ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchFailed(f"{request.url}: {reason}", request.url.startswith("file:")) from None
    if len(data) > ANSWER_BYTES_MAX:
        raise FetchFailed(f"{request.url}: more than {ANSWER_BYTES_MAX} bytes", True)
    return data


def _read_body(answer: Any, deadline_s: float) -> bytes:
    """The body, or its beginning if it is too large. Raises OSError."""
    data = b""
    while len(data) <= ANSWER_BYTES_MAX:
        chunk: bytes = (
            answer.read1(_CHUNK_BYTES) if hasattr(answer, "read1") else answer.read(_CHUNK_BYTES)
        )
        if not chunk:
            return data
        data += chunk
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the answer is not complete after {TOTAL_LIMIT_S:.0f} s")
    return data
