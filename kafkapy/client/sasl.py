"""SASL on a fresh connection: PLAIN and SCRAM (RFC 5802), in SaslAuthenticate frames (KIP-152)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Generator
from typing import Final

from kafkapy.client.channel import Channel
from kafkapy.client.security import Credentials, Security
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest

Conversation = Generator[bytes, bytes, None]
"""Yields what to send, is sent what came back."""

_SCRAM_HASH: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NONCE_BYTES: Final = 18
_SERVER_FIRST: Final = re.compile(r"r=(?P<r>[^,]+),s=(?P<s>[A-Za-z0-9+/]+=*),i=(?P<i>\d+)(,.*)?")


def authenticate(channel: Channel, security: Security, timeout_ms: int) -> None:
    """Prove who we are; the channel is closed when that fails.

    Raises:
        ConfigError: the mechanism is not one we know, or no user is configured.
        ApiError: the broker does not take the mechanism or the credentials.
    """
    mechanism = security.sasl_mechanism
    try:
        talk = conversation(mechanism, security.credentials())
        shake = SaslHandshakeRequest(mechanism=mechanism)
        response = channel.exchange(shake, channel.version_for(shake, min_version=1), timeout_ms)
        if response.error_code != ErrorCode.NONE:
            offered = ", ".join(response.mechanisms)
            raise ApiError(
                ErrorCode(response.error_code),
                f"{channel.peer} does not offer SASL mechanism {mechanism}; it offers: {offered}",
            )
        _converse(channel, talk, timeout_ms)
    except (ApiError, ConfigError):
        channel.close()
        raise


def conversation(
    mechanism: str, credentials: Credentials, nonce: str | None = None
) -> Conversation:
    """The client's half of a mechanism.

    Raises:
        ConfigError: the mechanism is unknown.
    """
    if mechanism == "PLAIN":
        return _plain(credentials)
    if mechanism in _SCRAM_HASH:
        made = nonce or base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
        return _scram(_SCRAM_HASH[mechanism], credentials, made)
    raise ConfigError(
        f"Invalid value {mechanism} for configuration sasl.mechanism: "
        f"String must be one of: PLAIN, {', '.join(_SCRAM_HASH)}"
    )


def _converse(channel: Channel, talk: Conversation, timeout_ms: int) -> None:
    message = next(talk)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=message)
        response = channel.exchange(request, channel.version_for(request), timeout_ms)
        if response.error_code != ErrorCode.NONE:
            raise ApiError(
                ErrorCode(response.error_code), response.error_message or "Authentication failed"
            )
        try:
            message = talk.send(bytes(response.auth_bytes))
        except StopIteration:
            return


def _plain(credentials: Credentials) -> Conversation:
    yield b"\0".join((b"", credentials.username.encode(), credentials.password.encode()))


def _scram(algorithm: str, credentials: Credentials, nonce: str) -> Conversation:
    name = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first_bare = f"n={name},r={nonce}"
    server_first = (yield f"n,,{first_bare}".encode()).decode()
    fields = _SERVER_FIRST.fullmatch(server_first)
    if fields is None:
        raise ApiError(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"The broker's answer is not SCRAM: {server_first}",
        )
    if not fields["r"].startswith(nonce):
        raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "The broker changed our SCRAM nonce")
    salted = hashlib.pbkdf2_hmac(
        algorithm, credentials.password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
    )
    # "biws" is the base64 of "n,,": no channel binding.
    without_proof = f"c=biws,r={fields['r']}"
    auth = f"{first_bare},{server_first},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    signature = hmac.digest(stored_key, auth, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    expected = b"v=" + base64.b64encode(hmac.digest(server_key, auth, algorithm))
    if not hmac.compare_digest(final, expected):
        raise ApiError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, "The broker does not know the password itself"
        )
