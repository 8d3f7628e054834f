"""Produce (key 0): a producer's batches for the leaders of their partitions.

v2 log append time (KIP-32); v3 one batch of format 2 per partition, transactions (KIP-98); v5 log
start offset (KIP-107); v8 which record failed (KIP-467); v10 the new leader (KIP-951); v11 errors
that abort a transaction, v12 adds partitions to it (KIP-890); v13 topic ids (KIP-516).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    field,
    struct,
)


class PartitionProduceData(Struct):
    index: int = field(INT32)
    # One buffer: only the records in a broker's responses have several.
    records: bytes | memoryview | None = field(RECORDS, nullable=True)  # type: ignore[assignment]


class TopicProduceData(Struct):
    name: str = field(STRING, "0-12")
    topic_id: Uuid = field(UUID, "13+")
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, api=ApiKey.PRODUCE):
    transactional_id: str | None = field(STRING, "3+", nullable=True)
    acks: int = field(INT16)
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field(INT32)
    batch_index_error_message: str | None = field(STRING, nullable=True)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


class PartitionProduceResponse(Struct):
    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, "2+", default=-1)
    log_start_offset: int = field(INT64, "5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+")
    error_message: str | None = field(STRING, "8+", nullable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = field(STRING, "0-12")
    topic_id: Uuid = field(UUID, "13+")
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=True)


class ProduceResponse(Message, api=ApiKey.PRODUCE):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = field(INT32, "1+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
