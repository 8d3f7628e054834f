"""DeleteShareGroupState (key 86): deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, UUID, Message, Struct, array, field


class PartitionData(Struct):
    partition: int = field(INT32)


class DeleteStateData(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Message, api=ApiKey.DELETE_SHARE_GROUP_STATE):
    group_id: str = field(STRING)
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Struct):
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class DeleteStateResult(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Message, api=ApiKey.DELETE_SHARE_GROUP_STATE):
    results: list[DeleteStateResult] = array(DeleteStateResult)
