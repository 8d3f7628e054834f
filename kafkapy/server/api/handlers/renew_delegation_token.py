"""RenewDelegationToken (key 39), versions 0-2: has a delegation token expire later (KIP-48).

Behaviour: for its owner and its renewers, up to the token's longest life.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import TokenRequests
from kafkapy.server.requests.outcomes import Later


def handle(
    requests: TokenRequests, context: RequestContext, request: RenewDelegationTokenRequest
) -> Later[RenewDelegationTokenResponse]:
    """Change when the token of an HMAC expires."""
    admin = requests.admitted(context)
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms

    async def renewed() -> RenewDelegationTokenResponse:
        expiry_ms = await admin.renew(context.principal, hmac, period_ms)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return renewed()


def refuse(
    request: RenewDelegationTokenRequest, error: ApiError, version: int
) -> RenewDelegationTokenResponse:
    """No time, and why."""
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
