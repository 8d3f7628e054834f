"""InitProducerId (key 22): a producer id and epoch (KIP-98).

v3 a known producer bumps its epoch (KIP-360).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, Message, field


class InitProducerIdRequest(Message, api=ApiKey.INIT_PRODUCER_ID):
    transactional_id: str | None = field(STRING, nullable=True)
    transaction_timeout_ms: int = field(INT32)
    producer_id: int = field(INT64, "3+", default=-1)
    producer_epoch: int = field(INT16, "3+", default=-1)


class InitProducerIdResponse(Message, api=ApiKey.INIT_PRODUCER_ID):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
