"""Tokens on the wire, of brokers that know KIP-373 and of older ones."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.delegation_tokens import (
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import create_delegation_token as created
from kafkapy.protocol.messages import describe_delegation_token as described
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from kafkapy.security.delegation_tokens import TokenInformation
from tests.harness.scripted.scripted_broker import ScriptedCluster

CREATED = created.CreateDelegationTokenResponse(
    principal_type="User",
    principal_name="a",
    token_requester_principal_type="User",
    token_requester_principal_name="r",
    issue_timestamp_ms=1,
    expiry_timestamp_ms=2,
    max_timestamp_ms=3,
    token_id="id",
    hmac=b"proof",
)


def scripted(
    key: ApiKey, answer: object, version: int | None = None
) -> tuple[ScriptedCluster, Cluster]:
    made = ScriptedCluster({key: answer})
    if version is not None:
        made.versions = {**made.versions, key: (0, version)}
    return made, Cluster("b:1", connector=made.connect)


def test_one_is_created_for_oneself_or_for_another() -> None:
    script, cluster = scripted(ApiKey.CREATE_DELEGATION_TOKEN, CREATED)
    token = create_token(cluster, ["User:b", "User:c:d"], -1)
    expected = TokenInformation("id", "User:a", "User:r", ("User:b", "User:c:d"), 1, 3, 2)
    assert token == (expected, b"proof")
    create_token(cluster, [], 5, owner="User:o")
    own, other = script.requests_of(ApiKey.CREATE_DELEGATION_TOKEN)
    assert [(r.principal_type, r.principal_name) for r in own.renewers] == [
        ("User", "b"),
        ("User", "c:d"),
    ]
    assert (own.owner_principal_name, own.max_lifetime_ms) == (None, -1)
    assert (other.owner_principal_type, other.owner_principal_name) == ("User", "o")


def test_older_brokers_know_no_other_owner() -> None:
    _, cluster = scripted(ApiKey.CREATE_DELEGATION_TOKEN, CREATED, version=2)
    assert create_token(cluster, [], -1).information.requester == "User:a"
    with pytest.raises(ApiError) as refusal:
        create_token(cluster, [], -1, owner="User:o")
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("owners", "asked"), [(None, None), (["User:a"], [("User", "a")])])
def test_they_are_described_by_their_ids(owners: list[str] | None, asked: Any) -> None:
    rows = [
        described.DescribedDelegationToken(
            principal_type="User",
            principal_name="a",
            token_id=token_id,
            hmac=b"h",
            issue_timestamp=1,
            expiry_timestamp=2,
            max_timestamp=3,
            renewers=[
                described.DescribedDelegationTokenRenewer(principal_type="User", principal_name="b")
            ],
        )
        for token_id in ("y", "x")
    ]
    answer = described.DescribeDelegationTokenResponse(tokens=rows)
    script, cluster = scripted(ApiKey.DESCRIBE_DELEGATION_TOKEN, answer)
    first, second = describe_tokens(cluster, owners)
    assert first == (TokenInformation("x", "User:a", "User:a", ("User:b",), 1, 3, 2), b"h")
    assert second.information.token_id == "y"
    (request,) = script.requests_of(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    sent = request.owners and [(o.principal_type, o.principal_name) for o in request.owners]
    assert sent == asked


def test_they_are_renewed_and_expired() -> None:
    script, cluster = scripted(
        ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenResponse(expiry_timestamp_ms=7)
    )
    assert renew_token(cluster, b"h", 5) == 7
    (renewal,) = script.requests_of(ApiKey.RENEW_DELEGATION_TOKEN)
    assert (renewal.hmac, renewal.renew_period_ms) == (b"h", 5)
    script, cluster = scripted(
        ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenResponse(expiry_timestamp_ms=8)
    )
    assert expire_token(cluster, b"h", -1) == 8
    (expiry,) = script.requests_of(ApiKey.EXPIRE_DELEGATION_TOKEN)
    assert (expiry.hmac, expiry.expiry_time_period_ms) == (b"h", -1)


def test_a_refusal_is_said_as_kafkas_clients_say_it() -> None:
    answer = RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    _, cluster = scripted(ApiKey.RENEW_DELEGATION_TOKEN, answer)
    with pytest.raises(ApiError, match="Specified Principal is not valid Owner/Renewer"):
        renew_token(cluster, b"h", 5)


@pytest.mark.parametrize("principal", ["bob", ":bob", "User:"])
def test_a_malformed_principal_is_not_sent(principal: str) -> None:
    script, cluster = scripted(ApiKey.CREATE_DELEGATION_TOKEN, CREATED)
    with pytest.raises(ConfigError, match=f"principalType:principalName but got {principal}"):
        create_token(cluster, [principal], -1)
    assert script.requests_of(ApiKey.CREATE_DELEGATION_TOKEN) == []
