"""RenewDelegationToken (key 39), versions 0-2: has a delegation token expire later (KIP-48).

Behaviour: for its owner and its renewers, up to the token's longest life.
"""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkapy.server.api.handler_support import run_async
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.token_requests import admitted, token_admin


def handle(context: RequestContext, request: RenewDelegationTokenRequest) -> Any:
    """Change when the token of an HMAC expires."""
    admitted(context)
    admin = token_admin(context)
    hmac, period_ms = bytes(request.hmac), request.renew_period_ms

    async def renewed() -> RenewDelegationTokenResponse:
        expiry_ms = await admin.renew(context.principal, hmac, period_ms)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return run_async(context, renewed(), lambda error: refuse(request, error, context.version))


def refuse(
    request: RenewDelegationTokenRequest, error: ApiError, version: int
) -> RenewDelegationTokenResponse:
    """No time, and why."""
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
