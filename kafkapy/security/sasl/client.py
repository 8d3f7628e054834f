"""The client's half of SASL: PLAIN and SCRAM (RFC 5802), without a connection."""

from __future__ import annotations

import hmac
import re
from collections.abc import Generator
from typing import Final

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.security.kerberos.gss_context import MECHANISM as GSSAPI
from kafkapy.security.oauth.tokens import MECHANISM as OAUTHBEARER
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.security.sasl.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    ScramMechanism,
    escape,
    from_base64,
    to_base64,
)

Conversation = Generator[bytes, bytes, None]
"""Yields messages to send, and receives the broker's. Raises ApiError if the broker cannot be
trusted.
"""

NONCE_BYTES: Final = 18
_ITERATIONS_MAX: Final = 1 << 24  # seconds of CPU time; brokers store 16,384 at most
KNOWN_MECHANISMS: Final = ("PLAIN", *MECHANISMS, OAUTHBEARER, GSSAPI)
_B: Final = "[A-Za-z0-9+/]"
_BASE64: Final = f"(?:{_B}{{4}})*(?:{_B}{{2}}==|{_B}{{3}}=)?"
_SERVER_FIRST: Final = re.compile(
    rf"r=(?P<r>[^,]+),s=(?P<s>{_BASE64}),i=(?P<i>\d{{1,10}})(,.*)?", re.ASCII
)


def conversation(
    mechanism: str, credentials: Credentials, nonce: str, key: str = "sasl.mechanism"
) -> Conversation:
    """The client's half of a mechanism, which `key` names. `nonce` must be unique.

    Raises:
        ConfigError: the mechanism is unknown.
    """
    if mechanism == "PLAIN":
        return _plain(credentials)
    if mechanism in MECHANISMS:
        return _scram(MECHANISMS[mechanism], credentials, nonce)
    raise ConfigError(
        f"Invalid value {mechanism} for configuration {key}: "
        f"String must be one of: {', '.join(KNOWN_MECHANISMS)}"
    )


def _plain(credentials: Credentials) -> Conversation:
    yield b"\0".join((b"", credentials.username.encode(), credentials.password.encode()))


def _scram(mechanism: ScramMechanism, credentials: Credentials, nonce: str) -> Conversation:
    extensions = ",tokenauth=true" if credentials.is_token else ""
    first_bare = f"n={escape(credentials.username)},r={nonce}{extensions}"
    server_first = (yield f"n,,{first_bare}".encode()).decode(errors="replace")
    fields = _SERVER_FIRST.fullmatch(server_first)
    if fields is None:
        raise ApiError(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"The broker's answer is not SCRAM: {server_first}",
        )
    if not fields["r"].startswith(nonce):
        raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "The broker changed our SCRAM nonce")
    iterations = int(fields["i"])
    # With fewer iterations, a false broker could find the password from the proof quickly.
    if not ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise ApiError(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"The broker asks for {iterations} iterations of SCRAM; allowed are {ITERATIONS_MIN} to"
            f" {_ITERATIONS_MAX}",
        )
    salted_password = mechanism.salted_password(
        credentials.password, from_base64(fields["s"]), iterations
    )
    # "biws" is the base64 of "n,,": no channel binding.
    without_proof = f"c=biws,r={fields['r']}"
    auth = f"{first_bare},{server_first},{without_proof}".encode()
    client_key = mechanism.client_key(salted_password)
    signature = mechanism.hmac(mechanism.stored_key(client_key), auth)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = yield f"{without_proof},p={to_base64(proof)}".encode()
    expected = (
        f"v={to_base64(mechanism.hmac(mechanism.server_key(salted_password), auth))}".encode()
    )
    if not hmac.compare_digest(final, expected):
        raise ApiError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, "The broker does not know the password itself"
        )
