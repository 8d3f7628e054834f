"""Connections on which clients may send delegation token requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.outcomes import ANONYMOUS

PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "OTHER": "SASL_SSL",
}
REQUESTS = TokenRequests(PROTOCOLS.__getitem__, None)


def context(listener: str, principal: str, is_token: bool = False) -> Any:
    return SimpleNamespace(
        listener=listener,
        principal=principal,
        is_token=is_token,
    )


@pytest.mark.parametrize(
    ("listener", "principal", "is_token", "may_ask"),
    [
        ("PLAINTEXT", ANONYMOUS, False, False),
        ("SSL", ANONYMOUS, False, False),
        ("SSL", "User:CN=alice", False, True),
        ("SASL_PLAINTEXT", "User:alice", False, True),
        ("SASL_PLAINTEXT", "User:alice", True, False),
        ("SASL_PLAINTEXT", ANONYMOUS, False, True),  # a user who is called that
        ("OTHER", "User:alice", False, True),
        ("OTHER", "User:alice", True, False),
    ],
)
def test_who_may_ask(listener: str, principal: str, is_token: bool, may_ask: bool) -> None:
    asking = context(listener, principal, is_token)
    if may_ask:
        REQUESTS.admit(asking)
        return
    with pytest.raises(ApiError) as refusal:
        REQUESTS.admit(asking)
    assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_nothing_is_served() -> None:
    with pytest.raises(ApiError) as refusal:
        REQUESTS.admit_and_get_admin(context("SSL", "User:CN=alice"))
    assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
