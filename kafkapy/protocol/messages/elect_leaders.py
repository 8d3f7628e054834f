"""ElectLeaders (key 43): elects preferred leaders (KIP-183).

v1 also unclean elections (KIP-460).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT8, INT16, INT32, STRING, Message, Struct, array, field


class TopicPartitions(Struct):
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


class ElectLeadersRequest(Message, api=ApiKey.ELECT_LEADERS):
    election_type: int = field(INT8, "1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True)
    timeout_ms: int = field(INT32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class ReplicaElectionResult(Struct):
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, api=ApiKey.ELECT_LEADERS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, "1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
