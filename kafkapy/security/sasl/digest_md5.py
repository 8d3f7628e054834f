"""SASL DIGEST-MD5 (RFC 2831), the server's half, as ZooKeeper's clients use it: one realm, and
authentication only (`qop=auth`)."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

from kafkapy.common.errors import KafkapyError

REALM: Final = "zk-sasl-md5"
URI: Final = f"zookeeper/{REALM}"
"""Java's client and kazoo send this service and host, regardless of the server's name."""

TOKEN_MAX_BYTES: Final = 4096
"""The RFC's limit for a response."""

_DIRECTIVE: Final = re.compile(
    r'\s*(?P<name>[\w-]+)\s*=\s*(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<word>[^\s",]*))\s*(?:,|$)',
    re.DOTALL,
)
_LATIN_1_MAX: Final = "\xff"


class LoginRefused(KafkapyError):
    """The client is not authenticated. The message is for the server's log."""


class DigestMd5Server:
    """One login. `user` is the authenticated user once `evaluate` has accepted the response."""

    def __init__(self, users: Mapping[str, str], nonce: bytes) -> None:
        """`users` are passwords by name; `nonce` is random, and new for each login."""
        self._users = users
        self._nonce = nonce.hex()
        self._has_sent_challenge = False
        self.user: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a client's token: first the challenge, then the server's own proof of the
        password.

        Raises:
            LoginRefused: the token is malformed, or does not prove the password.
        """
        if self.user is not None:
            raise LoginRefused("the login is over already")
        if not self._has_sent_challenge:
            if token:
                raise LoginRefused("a DIGEST-MD5 client has no initial response")
            self._has_sent_challenge = True
            return (
                f'realm="{REALM}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess'
            ).encode()
        return self._check(_directives(token))

    def _check(self, directives: Mapping[str, str]) -> bytes:
        required = {"realm": REALM, "nonce": self._nonce, "nc": "00000001", "qop": "auth"}
        found = {"qop": "auth", "realm": "", **directives}
        for name, value in required.items():
            if not hmac.compare_digest(found.get(name, "").encode(), value.encode()):
                raise LoginRefused(f"the response has another {name} than was asked for")
        if found.get("digest-uri", "").lower() != URI:
            raise LoginRefused(f"the response is for {found.get('digest-uri')}, not for {URI}")
        user = found.get("username", "")
        if found.get("authzid", user) != user:
            raise LoginRefused(f"{user} asks to act as {found['authzid']}")
        # The same is computed for an unknown user, so the time does not reveal which users exist.
        password = self._users.get(user, "")
        expected = response_value("AUTHENTICATE", password, found)
        if not hmac.compare_digest(expected.encode(), found.get("response", "").encode()) or (
            user not in self._users
        ):
            raise LoginRefused(f"wrong user or password: {user}")
        self.user = user
        return f"rspauth={response_value('', password, found)}".encode()


def response_value(method: str, password: str, directives: Mapping[str, str]) -> str:
    """The digest of RFC 2831, 2.1.2.1; with an empty method, that of the server's answer."""
    secret = b":".join(
        map(_encode_text, (directives.get("username", ""), directives.get("realm", ""), password))
    )
    session = [
        _md5(secret),
        directives.get("nonce", "").encode(),
        directives.get("cnonce", "").encode(),
    ]
    if "authzid" in directives:
        session.append(directives["authzid"].encode())
    a1 = _md5(b":".join(session)).hex()
    a2 = _md5(f"{method}:{directives.get('digest-uri', '')}".encode()).hex()
    parts = (a1, *(directives.get(name, "") for name in ("nonce", "nc", "cnonce", "qop")), a2)
    return _md5(":".join(parts).encode()).hex()


def _directives(token: bytes) -> dict[str, str]:
    """The names and values of a response.

    Raises:
        LoginRefused: the response is malformed, too long, or has a name twice.
    """
    found: dict[str, str] = {}
    text = token.decode(errors="replace")
    position = 0
    while position < len(text) and len(token) <= TOKEN_MAX_BYTES:
        match = _DIRECTIVE.match(text, position)
        if match is None or match["name"] in found:
            break
        quoted = match["quoted"]
        value = match["word"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.S)
        found[match["name"]] = value
        position = match.end()
    if position < len(text) or not found:
        raise LoginRefused("the response is malformed")
    return found


def _encode_text(text: str) -> bytes:
    """The text as the RFC requires: in ISO 8859-1 if it has all characters, else in UTF-8."""
    return text.encode("latin-1" if all(each <= _LATIN_1_MAX for each in text) else "utf-8")


def _md5(data: bytes) -> bytes:
    # The mechanism requires MD5. It does not protect data, so the connection should use TLS.
    return hashlib.md5(data, usedforsecurity=False).digest()
