"""DescribeDelegationToken (key 41), versions 0-3: delegation tokens, by owner or all (KIP-48).

Behaviour: a token is returned to its owner, requester and renewers, to principals with DESCRIBE on
the token, and to principals with DESCRIBE_TOKENS on its owner (KIP-373). Other tokens are left out
without an error. An empty list of owners (not null) returns nothing. Version notes: v3 has a
token's requester.
"""

from __future__ import annotations

from kafkapy.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkapy.security.acls import Operation, ResourceKind, parse_principal
from kafkapy.security.delegation_tokens import TokenInformation, principal_of
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Work, chunks
from kafkapy.server.security.delegation_tokens import DelegationTokens


def handle(
    requests: TokenRequests,
    tokens: DelegationTokens,
    authorization: Authorization,
    context: RequestContext,
    request: DescribeDelegationTokenRequest,
) -> Work[DescribeDelegationTokenResponse]:
    """The requested tokens that the caller may describe."""
    requests.admit_and_get_admin(context)
    wanted: set[str] | None = None
    if request.owners is not None:
        wanted = set()
        for few in chunks(request.owners):
            wanted.update(principal_of(o.principal_type, o.principal_name) for o in few)
            yield len(few)
    found = []
    for token in list(tokens.all()):
        principals = token.owner, token.requester, *token.renewers
        yield CHECK_UNITS + len(principals)
        if wanted is not None and wanted.isdisjoint(principals):
            continue
        if _is_visible(authorization, context, token):
            found.append(_row(tokens, token))
            yield ROW_UNITS
    return DescribeDelegationTokenResponse(tokens=found)


def _is_visible(
    authorization: Authorization, context: RequestContext, token: TokenInformation
) -> bool:
    return (
        token.is_owner_or_renewer(context.principal)
        or authorization.is_allowed(
            context, Operation.DESCRIBE, ResourceKind.DELEGATION_TOKEN, token.token_id
        )
        or authorization.is_allowed(
            context, Operation.DESCRIBE_TOKENS, ResourceKind.USER, token.owner
        )
    )


def _row(tokens: DelegationTokens, token: TokenInformation) -> DescribedDelegationToken:
    owner, requester, *renewers = map(
        parse_principal, (token.owner, token.requester, *token.renewers)
    )
    return DescribedDelegationToken(
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.hmac(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in renewers
        ],
    )
