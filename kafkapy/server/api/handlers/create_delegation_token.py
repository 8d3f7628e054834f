"""CreateDelegationToken (key 38), versions 0-3: creates a delegation token (KIP-48).

Behaviour: any broker serves it. Clients can use the token at this broker after the response, and at
other brokers after the notification. Version notes: v3 has tokens for another owner (KIP-373), for
which the caller needs CREATE_TOKENS.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkapy.security.acls import Operation, ResourceKind, parse_principal
from kafkapy.security.delegation_tokens import (
    USER_TYPE,
    TokenInformation,
    principal_of,
)
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handler_support import run_async
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.security.delegation_tokens import DelegationTokens

_NO_TIMESTAMP: Final = -1
_RENEWERS_CHARS_MAX: Final = 100_000
"""The limit of all names together. ZooKeeper closes the connection of a broker that writes a znode
beyond `jute.maxbuffer` (1 MiB). Other requests of the broker wait until it gives up the write."""


def handle(
    requests: TokenRequests,
    tokens: DelegationTokens,
    authorization: Authorization,
    tasks: BackgroundTasks,
    context: RequestContext,
    request: CreateDelegationTokenRequest,
) -> Outcome[CreateDelegationTokenResponse]:
    """Create a token for the caller, or for another owner."""
    requester = owner = context.principal
    if request.owner_principal_name:
        owner = principal_of(request.owner_principal_type or "", request.owner_principal_name)
    to_error_response = partial(_error_response, owner, requester)
    renewers = tuple(principal_of(r.principal_type, r.principal_name) for r in request.renewers)
    try:
        requests.admit(context)
        if owner != requester:
            authorization.require(context, Operation.CREATE_TOKENS, ResourceKind.USER, owner)
        _check_principals(owner, request.renewers)
        admin = requests.admin()
    except ApiError as error:
        return to_error_response(error)

    async def create_token() -> CreateDelegationTokenResponse:
        token = await admin.create(owner, requester, renewers, request.max_lifetime_ms)
        return _token_response(token, tokens.hmac(token.token_id))

    return run_async(tasks, context, create_token(), to_error_response)


def _check_principals(owner: str, renewers: list[CreatableRenewers]) -> None:
    is_owner_complete = all(owner.partition(":"))
    are_users = all(r.principal_type == USER_TYPE and r.principal_name for r in renewers)
    if not is_owner_complete or not are_users:
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if sum(len(r.principal_name) for r in renewers) > _RENEWERS_CHARS_MAX:
        raise ApiError(ErrorCode.INVALID_REQUEST)


def _token_response(token: TokenInformation, hmac: bytes) -> CreateDelegationTokenResponse:
    response = _response(token.owner, token.requester)
    response.issue_timestamp_ms = token.issue_ms
    response.expiry_timestamp_ms = token.expiry_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = hmac
    return response


def _error_response(owner: str, requester: str, error: ApiError) -> CreateDelegationTokenResponse:
    response = _response(owner, requester)
    response.error_code = error.code
    return response


def _response(owner: str, requester: str) -> CreateDelegationTokenResponse:
    """A response without a token."""
    kind, _, name = owner.partition(":")
    requester_kind, requester_name = parse_principal(requester)
    return CreateDelegationTokenResponse(
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=_NO_TIMESTAMP,
        expiry_timestamp_ms=_NO_TIMESTAMP,
        max_timestamp_ms=_NO_TIMESTAMP,
    )
