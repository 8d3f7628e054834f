"""UnregisterBroker (key 64): removes a broker from a KRaft cluster (KIP-631)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, Message, field


class UnregisterBrokerRequest(Message, api=ApiKey.UNREGISTER_BROKER):
    broker_id: int = field(INT32)


class UnregisterBrokerResponse(Message, api=ApiKey.UNREGISTER_BROKER):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
