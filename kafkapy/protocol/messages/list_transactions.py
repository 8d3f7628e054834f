"""ListTransactions (key 66): the transactions of a coordinator (KIP-664).

v1 by duration (KIP-994).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, Message, Struct, array, field


class ListTransactionsRequest(Message, api=ApiKey.LIST_TRANSACTIONS):
    state_filters: list[str] = array(STRING)
    producer_id_filters: list[int] = array(INT64)
    duration_filter: int = field(INT64, "1+", default=-1)


class TransactionState(Struct):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


class ListTransactionsResponse(Message, api=ApiKey.LIST_TRANSACTIONS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = array(STRING)
    transaction_states: list[TransactionState] = array(TransactionState)
