"""The client's half of OAUTHBEARER."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.security.oauth.client import oauth_conversation
from kafkapy.security.oauth.tokens import BearerToken

TOKEN = BearerToken("a.b.c", "alice", 1, extensions=(("traceId", "7"), ("x", "y z")))


def test_the_token_says_who_logs_in() -> None:
    talk = oauth_conversation(TOKEN)
    assert next(talk) == b"n,,\x01auth=Bearer a.b.c\x01traceId=7\x01x=y z\x01\x01"
    with pytest.raises(StopIteration):
        talk.send(b"")


def test_a_refusal_is_acknowledged() -> None:
    talk = oauth_conversation(TOKEN)
    next(talk)
    assert talk.send(b'{"status":"invalid_token"}') == b"\x01"
    # A broker that goes on as if that were all right is none.
    with pytest.raises(ApiError) as refused:
        talk.send(b"")
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message == '{"status":"invalid_token"}'
