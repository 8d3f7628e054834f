"""DescribeTransactions (key 65): the state of transactions (KIP-664)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, Message, Struct, array, field


class DescribeTransactionsRequest(Message, api=ApiKey.DESCRIBE_TRANSACTIONS):
    transactional_ids: list[str] = array(STRING)


class TopicData(Struct):
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


class TransactionState(Struct):
    error_code: int = field(INT16)
    transactional_id: str = field(STRING)
    transaction_state: str = field(STRING)
    transaction_timeout_ms: int = field(INT32)
    transaction_start_time_ms: int = field(INT64)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    topics: list[TopicData] = array(TopicData)


class DescribeTransactionsResponse(Message, api=ApiKey.DESCRIBE_TRANSACTIONS):
    throttle_time_ms: int = field(INT32)
    transaction_states: list[TransactionState] = array(TransactionState)
