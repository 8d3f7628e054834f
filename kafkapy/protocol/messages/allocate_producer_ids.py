"""AllocateProducerIds (key 67): a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, Message, field


class AllocateProducerIdsRequest(Message, api=ApiKey.ALLOCATE_PRODUCER_IDS):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class AllocateProducerIdsResponse(Message, api=ApiKey.ALLOCATE_PRODUCER_IDS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id_start: int = field(INT64)
    producer_id_len: int = field(INT32)
