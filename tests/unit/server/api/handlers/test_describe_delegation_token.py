"""DescribeDelegationToken: which tokens are described, and what many owners cost."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers.describe_delegation_token import handle
from kafkapy.server.requests.turns import SLICE_UNITS, run_now
from kafkapy.server.security.delegation_tokens import DelegationTokens
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.request_contexts import request_context


class Renewers(tuple[str, ...]):
    """Counts how often a token is compared with somebody."""

    looks = 0

    def __contains__(self, who: object) -> bool:
        Renewers.looks += 1
        return super().__contains__(who)


def known(count: int) -> DelegationTokens:
    tokens = DelegationTokens(b"secret", ManualClock())
    for number in range(count):
        renewers = Renewers([f"User:renewer-{number}"])
        owner = f"User:owner-{number}"
        tokens.put(TokenInformation(str(number), owner, "User:maker", renewers, 0, 0, 0))
    return tokens


def describe(tokens: DelegationTokens, owners: list[str] | None) -> Any:
    request = DescribeDelegationTokenRequest(
        owners=owners
        if owners is None
        else [DescribeDelegationTokenOwner(principal_type="User", principal_name=o) for o in owners]
    )
    return handle(Mock(), tokens, Authorization(None), request_context(41, 3), request)


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        (None, ["0", "1", "2"]),
        ([], []),
        (["owner-1", "nobody"], ["1"]),
        (["renewer-2", "owner-2"], ["2"]),
        (["maker"], ["0", "1", "2"]),
    ],
)
def test_tokens_of_owners_requesters_and_renewers(
    owners: list[str] | None, found: list[str]
) -> None:
    response = run_now(describe(known(3), owners))
    assert [token.token_id for token in response.tokens] == found


def test_many_owners_are_not_compared_with_each_token() -> None:
    """20,000 owners and 1,000 tokens kept the event loop for seconds."""
    Renewers.looks = 0
    work = describe(known(1000), [f"user-{number}" for number in range(20_000)])
    assert isinstance(work, Generator)
    assert max(work) < SLICE_UNITS
    assert Renewers.looks <= 1000
