"""SaslAuthenticate (key 36), versions 0-2.

Behaviour: as for SaslHandshake, only requests outside of a login are handled here.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse a request outside of a login."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
