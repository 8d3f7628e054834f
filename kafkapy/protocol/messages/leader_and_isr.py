"""LeaderAndIsr (key 4): the controller sends a broker the leader and ISR of its partitions.

v2 broker epoch (KIP-380), grouped by topic; v3 reassignment (KIP-455); v5 topic ids (KIP-516); v6
leader recovery state (KIP-704); v7 KRaft flag (KIP-866).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
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


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = field(STRING, "0-1")
    partition_index: int = field(INT32)
    controller_epoch: int = field(INT32)
    leader: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = array(INT32)
    partition_epoch: int = field(INT32)
    replicas: list[int] = array(INT32)
    adding_replicas: list[int] = array(INT32, "3+")
    removing_replicas: list[int] = array(INT32, "3+")
    is_new: bool = field(BOOL, "1+")
    leader_recovery_state: int = field(INT8, "6+")


class LeaderAndIsrTopicState(Struct):
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID, "5+")
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = field(INT32)
    host_name: str = field(STRING)
    port: int = field(INT32)


class LeaderAndIsrRequest(Message, api=ApiKey.LEADER_AND_ISR):
    controller_id: int = field(INT32)
    is_kraft_controller: bool = field(BOOL, "7+")
    controller_epoch: int = field(INT32)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        LeaderAndIsrPartitionState, "0-1"
    )
    broker_epoch: int = field(INT64, "2+", default=-1)
    type: int = field(INT8, "5+")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    topic_name: str = field(STRING, "0-4")
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid = field(UUID)
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Message, api=ApiKey.LEADER_AND_ISR):
    error_code: int = field(INT16)
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, "5+")
