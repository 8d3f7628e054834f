"""AlterPartition (key 56): a leader requests changes of its ISRs from the controller (KIP-497).

v1 leader recovery state (KIP-704); v2 topic ids (KIP-516); v3 broker epochs (KIP-903).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    field,
)


class BrokerState(Struct):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class PartitionData(Struct):
    partition_index: int = field(INT32)
    leader_epoch: int = field(INT32)
    new_isr: list[int] = array(INT32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = field(INT8, "1+")
    partition_epoch: int = field(INT32)


class TopicData(Struct):
    topic_name: str = field(STRING, "0-1")
    topic_id: Uuid = field(UUID, "2+")
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Message, api=ApiKey.ALTER_PARTITION):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionDataResponse(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = array(INT32)
    leader_recovery_state: int = field(INT8, "1+")
    partition_epoch: int = field(INT32)


class TopicDataResponse(Struct):
    topic_name: str = field(STRING, "0-1")
    topic_id: Uuid = field(UUID, "2+")
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class AlterPartitionResponse(Message, api=ApiKey.ALTER_PARTITION):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    topics: list[TopicDataResponse] = array(TopicDataResponse)
