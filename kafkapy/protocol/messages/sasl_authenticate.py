"""SaslAuthenticate (key 36): one token of a SASL conversation (KIP-152).

v1 session lifetime (KIP-368).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BYTES, INT16, INT64, STRING, Message, field


class SaslAuthenticateRequest(Message, api=ApiKey.SASL_AUTHENTICATE):
    auth_bytes: bytes = field(BYTES)


class SaslAuthenticateResponse(Message, api=ApiKey.SASL_AUTHENTICATE):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    auth_bytes: bytes = field(BYTES)
    session_lifetime_ms: int = field(INT64, "1+")
