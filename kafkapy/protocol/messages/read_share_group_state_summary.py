"""ReadShareGroupStateSummary (key 87): the stored offsets of share partitions (KIP-932).

v1 the number of completed deliveries (KIP-1226).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, UUID, Message, Struct, array, field


class PartitionData(Struct):
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


class ReadStateSummaryData(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Message, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY):
    group_id: str = field(STRING)
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Struct):
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, "1+", default=-1)


class ReadStateSummaryResult(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Message, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY):
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
