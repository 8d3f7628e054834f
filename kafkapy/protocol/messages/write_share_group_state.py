"""WriteShareGroupState (key 85): stores changes of share partitions (KIP-932).

v1 the number of completed deliveries (KIP-1226).
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


class StateBatch(Struct):
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


class PartitionData(Struct):
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, "1+", default=-1)
    state_batches: list[StateBatch] = array(StateBatch)


class WriteStateData(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


class WriteShareGroupStateRequest(Message, api=ApiKey.WRITE_SHARE_GROUP_STATE):
    group_id: str = field(STRING)
    topics: list[WriteStateData] = array(WriteStateData)


class PartitionResult(Struct):
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class WriteStateResult(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


class WriteShareGroupStateResponse(Message, api=ApiKey.WRITE_SHARE_GROUP_STATE):
    results: list[WriteStateResult] = array(WriteStateResult)
