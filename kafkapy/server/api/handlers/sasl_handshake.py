"""SaslHandshake (key 17), versions 0-1.

Behaviour: what comes in its time is answered before dispatch (`protocol.sasl_authenticator`); here
is only what does not: after the login, or where there is none to do.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Nobody logs in now."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
