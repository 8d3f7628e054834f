"""One small HTTP request and its answer, or a file's content: how keys and tokens are fetched.

The one adapter of `common` that touches the network, for clients and brokers alike; it blocks.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import IO, Any, Final

from kafkapy.common import tls_stores
from kafkapy.common.http_request import FetchFailed, HttpRequest
from kafkapy.common.prefixed_properties import PrefixedProperties

ANSWER_BYTES_MAX: Final = 1 << 20
_TRY_AGAIN: Final = (408, 429)  # of 4xx; the others say that it is our fault
_NEVER: Final = (501, 505)


class _NoPostElsewhere(urllib.request.HTTPRedirectHandler):
    """A redirect of a POST is not followed: credentials are for the URL that was configured."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.data is not None or not newurl.startswith(("http:", "https:")):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(request: HttpRequest) -> bytes:
    """The body of the answer.

    Raises:
        FetchFailed: names the URL and the reason, never the credentials.
        ConfigError: a store of `tls` cannot be used.
    """
    handlers: list[Any] = [urllib.request.ProxyHandler({}), _NoPostElsewhere()]
    if request.url.startswith("https:"):
        context = tls_stores.client_context(PrefixedProperties(dict(request.tls)))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)
    asked = urllib.request.Request(request.url, request.body, dict(request.headers))
    timeout_s = max(request.connect_timeout_s, request.read_timeout_s)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            data: bytes = answer.read(ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            final = (
                400 <= error.code < 500 and error.code not in _TRY_AGAIN
            ) or error.code in _NEVER
            raise FetchFailed(f"{request.url}: HTTP {error.code} {error.reason}", final) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchFailed(f"{request.url}: {reason}", request.url.startswith("file:")) from None
    if len(data) > ANSWER_BYTES_MAX:
        raise FetchFailed(f"{request.url}: more than {ANSWER_BYTES_MAX} bytes", True)
    return data
