"""ExpireDelegationToken (key 40), versions 0-2: changes the expiry time of a delegation token, or
removes it at once (KIP-48).

Behaviour: allowed for the token's owner and renewers. A negative period removes the token.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.outcomes import ResponseCoroutine


def handle(
    requests: TokenRequests, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ResponseCoroutine[ExpireDelegationTokenResponse]:
    """Change the expiry time of the token with the given HMAC, or remove the token."""
    admin = requests.admit_and_get_admin(context)
    hmac, period_ms = bytes(request.hmac), request.expiry_time_period_ms

    async def expire() -> ExpireDelegationTokenResponse:
        expiry_ms = await admin.expire(context.principal, hmac, period_ms)
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return expire()


def refuse(
    request: ExpireDelegationTokenRequest, error: ApiError, version: int
) -> ExpireDelegationTokenResponse:
    """An error without an expiry time."""
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
