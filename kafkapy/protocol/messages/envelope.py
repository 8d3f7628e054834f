"""Envelope (key 58): a request that another broker forwards (KIP-590)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BYTES, INT16, Message, field


class EnvelopeRequest(Message, api=ApiKey.ENVELOPE):
    request_data: bytes = field(BYTES)
    request_principal: bytes | None = field(BYTES, nullable=True)
    client_host_address: bytes = field(BYTES)


class EnvelopeResponse(Message, api=ApiKey.ENVELOPE):
    response_data: bytes | None = field(BYTES, nullable=True)
    error_code: int = field(INT16)
