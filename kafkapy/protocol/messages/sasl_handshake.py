"""SaslHandshake (key 17): chooses a SASL mechanism.

After v0, raw tokens follow; after v1, SaslAuthenticate requests (KIP-152). Never flexible.
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, STRING, Message, array, field


class SaslHandshakeRequest(Message, api=ApiKey.SASL_HANDSHAKE):
    mechanism: str = field(STRING)


class SaslHandshakeResponse(Message, api=ApiKey.SASL_HANDSHAKE):
    error_code: int = field(INT16)
    mechanisms: list[str] = array(STRING)
