"""The broker's half of SASL/OAUTHBEARER (RFC 7628, `OAuthBearerSaslServer`), without a connection.

The answer to a refused token is a JSON object with the reason. The client replies %x01, and gets
the same reason as the failure. As in Kafka, it may send another token instead. Kafka validates any
number of them; here a second refusal ends the login.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import orjson

from kafkapy.security.oauth.tokens import (
    EXTENSION_NAME,
    EXTENSION_VALUE,
    BearerToken,
    IllegalToken,
)
from kafkapy.security.sasl.server import Refused, RefusedSilently

Validate = Callable[[str], BearerToken]
"""Parses and validates a token. Raises IllegalToken."""

_INVALID_FIRST_MESSAGE: Final = "Invalid OAUTHBEARER client first message"
_PAIRS: Final = rf"(?:{EXTENSION_NAME.pattern}={EXTENSION_VALUE.pattern}\x01)*"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+))?,\x01(?P<pairs>{_PAIRS})\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_ACKNOWLEDGEMENT: Final = b"\x01"


class OAuthBearerServer:
    """OAUTHBEARER: one message, or two if the first token is refused."""

    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the wall clock, in ms since the epoch."""
        self.username: str | None = None
        self.lifetime_ms: int | None = None
        self._validate = validate
        self._now_ms = now_ms
        self._refusal = b""  # the refusal that was sent to the client

    def evaluate(self, token: bytes) -> bytes:
        """The answer: empty if the token is accepted, else the reason as JSON."""
        if self._refusal and token == _ACKNOWLEDGEMENT:
            raise Refused(self._refusal.decode())
        authorization_id, bearer = _parse(token)
        try:
            found = self._validate(bearer)
        except IllegalToken as illegal:
            if self._refusal:
                raise Refused(_challenge(illegal).decode()) from None
            self._refusal = _challenge(illegal)
            return self._refusal
        if authorization_id not in ("", found.principal):
            raise Refused(
                "Authentication failed: Client requested an authorization id"
                f" ({authorization_id}) that is different from the token's principal name"
                f" ({found.principal})"
            )
        self.lifetime_ms = max(0, found.expires_ms - self._now_ms())
        self.username = found.principal
        return b""


def _parse(message: bytes) -> tuple[str, str]:
    """The authorization id ("" if there is none) and the token. Raises RefusedSilently."""
    fields = _FIRST.fullmatch(message.decode(errors="replace"))
    if fields is None:
        raise RefusedSilently(_INVALID_FIRST_MESSAGE)
    pairs = dict(pair.split("=", 1) for pair in fields["pairs"].split("\x01") if pair)
    auth = pairs.get("auth")
    if auth is None:
        raise RefusedSilently(f"{_INVALID_FIRST_MESSAGE}: 'auth' not specified")
    found = _AUTH.fullmatch(auth)
    if found is None:
        raise RefusedSilently(f"{_INVALID_FIRST_MESSAGE}: invalid 'auth' format")
    if found["scheme"].lower() != "bearer":
        scheme = found["scheme"]
        raise RefusedSilently(f"Invalid scheme in OAUTHBEARER client first message: {scheme}")
    return fields["authzid"] or "", found["token"]


def _challenge(illegal: IllegalToken) -> bytes:
    """The JSON of a refusal, as Kafka writes it, with a space after the comma."""
    scope = "" if illegal.scope is None else f', "scope":{orjson.dumps(illegal.scope).decode()}'
    return f'{{"status":"{illegal.status}"{scope}}}'.encode()
