"""RenewDelegationToken (key 39), versions 0-2: extends the lifetime of a delegation token (KIP-48).

Behaviour: allowed for the token's owner and renewers, up to its maximum lifetime.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.outcomes import ResponseCoroutine


def handle(
    requests: TokenRequests, context: RequestContext, request: RenewDelegationTokenRequest
) -> ResponseCoroutine[RenewDelegationTokenResponse]:
    """Change the expiry time of the token with the given HMAC."""
    admin = requests.admit_and_get_admin(context)
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms

    async def renew() -> RenewDelegationTokenResponse:
        expiry_ms = await admin.renew(context.principal, hmac, period_ms)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return renew()


def refuse(
    request: RenewDelegationTokenRequest, error: ApiError, version: int
) -> RenewDelegationTokenResponse:
    """An error without an expiry time."""
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
