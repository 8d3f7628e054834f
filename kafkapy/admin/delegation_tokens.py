"""Delegation tokens (KIP-48): create, describe, renew, expire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kafkapy.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkapy.security.acls import parse_principal
from kafkapy.security.delegation_tokens import TokenInformation, principal_of

_FIRST_WITH_OWNER: Final = 3  # KIP-373


class DelegationToken(NamedTuple):
    """A token and its HMAC."""

    information: TokenInformation
    hmac: bytes


def create_token(
    cluster: Cluster, renewers: Sequence[str], max_lifetime_ms: int, owner: str | None = None
) -> DelegationToken:
    """Create a token for `owner` or the caller. -1 is the longest lifetime that the brokers allow.

    Raises:
        ApiError: the broker refused.
        ConfigError: a principal is malformed.
    """
    kind, name = (None, None) if owner is None else parse_principal(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    response = cluster.request(request, min_version=None if owner is None else _FIRST_WITH_OWNER)
    check(response.error_code)
    information = TokenInformation(
        response.token_id,
        *_owner_and_requester(response),
        tuple(renewers),
        response.issue_timestamp_ms,
        response.max_timestamp_ms,
        response.expiry_timestamp_ms,
    )
    return DelegationToken(information, bytes(response.hmac))


def describe_tokens(cluster: Cluster, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """The tokens whose owner, requester or renewer is one of `owners` (None: all tokens), by id.
    Tokens that the caller may not describe are left out.

    Raises:
        ApiError: the broker refused.
        ConfigError: a principal is malformed.
    """
    rows = None
    if owners is not None:
        rows = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, owners)
        ]
    response = cluster.request(DescribeDelegationTokenRequest(owners=rows))
    check(response.error_code)
    tokens = []
    for row in response.tokens:
        information = TokenInformation(
            row.token_id,
            *_owner_and_requester(row),
            tuple(principal_of(r.principal_type, r.principal_name) for r in row.renewers),
            row.issue_timestamp,
            row.max_timestamp,
            row.expiry_timestamp,
        )
        tokens.append(DelegationToken(information, bytes(row.hmac)))
    return sorted(tokens)


def renew_token(cluster: Cluster, hmac: bytes, period_ms: int) -> int:
    """Renew a token for `period_ms` (-1: the brokers' default); returns the new expiry time.

    Raises:
        ApiError: the broker refused.
    """
    response = cluster.request(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))
    check(response.error_code)
    expiry_ms: int = response.expiry_timestamp_ms
    return expiry_ms


def expire_token(cluster: Cluster, hmac: bytes, period_ms: int) -> int:
    """Expire a token in `period_ms` (-1: at once); returns the expiry time.

    Raises:
        ApiError: the broker refused.
    """
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = cluster.request(request)
    check(response.error_code)
    expiry_ms: int = response.expiry_timestamp_ms
    return expiry_ms


def _owner_and_requester(row: Any) -> tuple[str, str]:
    """The owner and the requester. Brokers before KIP-373 send no requester: it is the owner."""
    owner = principal_of(row.principal_type, row.principal_name)
    kind, name = row.token_requester_principal_type, row.token_requester_principal_name
    return owner, principal_of(kind, name) if name else owner
