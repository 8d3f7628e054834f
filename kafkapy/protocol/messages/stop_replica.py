"""StopReplica (key 5): the controller stops, and may delete, replicas of a broker.

v1 broker epoch (KIP-380); v3 leader epoch and deletion per partition (KIP-570); v4 KRaft flag
(KIP-866).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT16, INT32, INT64, STRING, Message, Struct, array, field


class StopReplicaPartitionV0(Struct):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


class StopReplicaTopicV1(Struct):
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


class StopReplicaPartitionState(Struct):
    partition_index: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1)
    delete_partition: bool = field(BOOL)


class StopReplicaTopicState(Struct):
    topic_name: str = field(STRING)
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState)


class StopReplicaRequest(Message, api=ApiKey.STOP_REPLICA):
    controller_id: int = field(INT32)
    is_kraft_controller: bool = field(BOOL, "4+")
    controller_epoch: int = field(INT32)
    broker_epoch: int = field(INT64, "1+", default=-1)
    delete_partitions: bool = field(BOOL, "0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Struct):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class StopReplicaResponse(Message, api=ApiKey.STOP_REPLICA):
    error_code: int = field(INT16)
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
