"""InitializeShareGroupState (key 83): initializes the state of share partitions (KIP-932)."""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, UUID, Message, Struct, array, field


class PartitionData(Struct):
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)


class InitializeStateData(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Message, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE):
    group_id: str = field(STRING)
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Struct):
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class InitializeStateResult(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Message, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE):
    results: list[InitializeStateResult] = array(InitializeStateResult)
