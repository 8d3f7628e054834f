"""The client's half of SASL/OAUTHBEARER (RFC 7628, `OAuthBearerSaslClient`)."""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.security.oauth.tokens import BearerToken
from kafkapy.security.sasl.client import Conversation


def first_message(token: BearerToken) -> bytes:
    """The first message of a client, with the token."""
    pairs = "".join(f"\x01{name}={value}" for name, value in token.extensions)
    return f"n,,\x01auth=Bearer {token.value}{pairs}\x01\x01".encode()


def oauth_conversation(token: BearerToken) -> Conversation:
    """The client's half of a login with `token`."""
    challenge = yield first_message(token)
    if challenge:
        # The challenge is the broker's reason. The broker ends the login after this reply.
        yield b"\x01"
        raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, challenge.decode(errors="replace"))
