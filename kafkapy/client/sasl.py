"""SASL on a new connection, in SaslAuthenticate frames (KIP-152)."""

from __future__ import annotations

import base64
import os
import time
from functools import partial
from typing import Final

from kafkapy.client.channel import Channel
from kafkapy.client.security import Security
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kafkapy.security.kerberos.gss_context import MECHANISM as GSSAPI
from kafkapy.security.oauth.tokens import MECHANISM as OAUTHBEARER
from kafkapy.security.sasl.client import NONCE_BYTES, Conversation, conversation

_RENEW_AT: Final = 0.85  # of a session's lifetime; Kafka's clients take up to 0.95


def authenticate(channel: Channel, security: Security, timeout_ms: int) -> None:
    """Authenticate, first or again before a session ends (KIP-368). If that fails, the channel is
    closed.

    Raises:
        ConfigError: the mechanism is unknown, or no user or token is configured.
        ApiError: the broker refuses the mechanism or the credentials.
    """
    mechanism = security.sasl_mechanism
    try:
        dialog = _conversation(security, channel.host)
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        response = channel.exchange(
            handshake, channel.version_for(handshake, min_version=1), timeout_ms
        )
        if response.error_code != ErrorCode.NONE:
            offered = ", ".join(response.mechanisms) or "none"
            raise ApiError(
                ErrorCode(response.error_code),
                f"{channel.peer} does not offer SASL mechanism {mechanism}; it offers: {offered}",
            )
        _exchange_tokens(channel, dialog, timeout_ms)
    except BaseException:  # Ctrl-C too: the connection is in the middle of a login
        channel.close()
        raise


def _conversation(security: Security, host: str) -> Conversation:
    if security.sasl_mechanism == OAUTHBEARER:
        # Imported only if it is needed: most clients have no tokens, and no tickets.
        from kafkapy.client.oauth_login import TOKENS
        from kafkapy.security.oauth.client import oauth_conversation

        return oauth_conversation(TOKENS.get(security.properties))
    if security.sasl_mechanism == GSSAPI:
        from kafkapy.security.kerberos.client import gssapi_conversation
        from kafkapy.security.kerberos.gss_library import Initiator
        from kafkapy.security.kerberos.login import kerberos_login

        initiator = Initiator(kerberos_login(PrefixedProperties(security.properties)))
        return gssapi_conversation(partial(initiator.begin, host))
    nonce = base64.b64encode(os.urandom(NONCE_BYTES)).decode()
    return conversation(security.sasl_mechanism, security.credentials(), nonce)


def _exchange_tokens(channel: Channel, dialog: Conversation, timeout_ms: int) -> None:
    message = next(dialog)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=message)
        response = channel.exchange(request, channel.version_for(request), timeout_ms)
        if response.error_code != ErrorCode.NONE:
            raise ApiError(
                ErrorCode(response.error_code), response.error_message or "Authentication failed"
            )
        try:
            message = dialog.send(bytes(response.auth_bytes))
        except StopIteration:
            lifetime_s = response.session_lifetime_ms / 1000
            renew_at_s = time.monotonic() + lifetime_s * _RENEW_AT
            channel.renew_at_s = renew_at_s if lifetime_s > 0 else None
            return
