"""EndTxn (key 26): commits or aborts a transaction (KIP-98).

v5 the next producer epoch (KIP-890).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT16, INT32, INT64, STRING, Message, field


class EndTxnRequest(Message, api=ApiKey.END_TXN):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    committed: bool = field(BOOL)


class EndTxnResponse(Message, api=ApiKey.END_TXN):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, "5+", default=-1)
    producer_epoch: int = field(INT16, "5+", default=-1)
