"""Delegation tokens: renewal and visibility, expiry, and the HMAC."""

from __future__ import annotations

import base64

import pytest

from kafkapy.security.delegation_tokens import TokenInformation, principal_of, token_hmac

TOKEN = TokenInformation("id", "User:owner", "User:requester", ("User:renewer",), 10, 100, 50)


@pytest.mark.parametrize(
    ("principal", "may_renew", "is_told"),
    [
        ("User:owner", True, True),
        ("User:renewer", True, True),
        ("User:requester", False, True),
        ("User:other", False, False),
        ("Group:owner", False, False),
    ],
)
def test_who_may_do_what(principal: str, may_renew: bool, is_told: bool) -> None:
    assert TOKEN.may_be_renewed_by(principal) is may_renew
    assert TOKEN.is_owner_or_renewer(principal) is is_told


@pytest.mark.parametrize(
    ("expiry_ms", "now_ms", "is_expired"),
    [(50, 50, False), (50, 51, True), (200, 100, False), (200, 101, True)],
)
def test_it_is_over_after_its_time(expiry_ms: int, now_ms: int, is_expired: bool) -> None:
    assert TOKEN._replace(expiry_ms=expiry_ms).is_expired(now_ms) is is_expired


def test_the_hmac_is_that_of_apache_kafka() -> None:
    """Given by Apache Kafka 3.9.1 with the secret of `tests.harness.security.token_brokers`."""
    made = token_hmac("Q1UP9lm5SUGazcrUvBFOpA", b"what-hmacs-are-made-with")
    assert base64.b64encode(made) == (
        b"sgbnPnxrNCIhp7r5pk1gzkvXjOCLH3mQ0YB54BtxrmfJasrp441A14zONEyiLpePGE+0ULNJzbEcsQt5SWlK+w=="
    )


def test_a_principal_of_a_message() -> None:
    assert principal_of("User", "CN=a,OU=b") == "User:CN=a,OU=b"
