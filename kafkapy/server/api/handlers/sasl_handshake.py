"""SaslHandshake (key 17), versions 0-1.

Behaviour: during a login requests are handled before dispatch (`protocol.sasl_authenticator`). Only
other requests are handled here: after a login, or on a listener without SASL.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.server.api.request_context import RequestContext


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse a request outside of a login."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
