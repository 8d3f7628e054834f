"""ListOffsets (key 2): offsets by timestamp; -1 means the latest, -2 the earliest.

v1 one offset per partition (KIP-79); v2 isolation level (KIP-98); v4 leader epochs (KIP-320); v7 -3
max timestamp (KIP-734); v8 -4 earliest local (KIP-405); v9 -5 latest tiered (KIP-1005);
v10 a timeout for tiered storage (KIP-1075); v11 -6 earliest pending upload (KIP-1023).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, INT64, STRING, Message, Struct, array, field


class ListOffsetsPartition(Struct):
    partition_index: int = field(INT32)
    current_leader_epoch: int = field(INT32, "4+", default=-1)
    timestamp: int = field(INT64)
    max_num_offsets: int = field(INT32, "0", default=1)


class ListOffsetsTopic(Struct):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, api=ApiKey.LIST_OFFSETS):
    replica_id: int = field(INT32)
    isolation_level: int = field(INT8, "2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = field(INT32, "10+")


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    old_style_offsets: list[int] = array(INT64, "0")
    timestamp: int = field(INT64, "1+", default=-1)
    offset: int = field(INT64, "1+", default=-1)
    leader_epoch: int = field(INT32, "4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, api=ApiKey.LIST_OFFSETS):
    throttle_time_ms: int = field(INT32, "2+")
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
