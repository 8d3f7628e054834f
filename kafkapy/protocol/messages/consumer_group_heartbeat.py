"""ConsumerGroupHeartbeat (key 68): membership in the consumer protocol (KIP-848).

v1 regular expressions, and member ids made by the client (KIP-1082).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    INT16,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    field,
    struct,
)


class TopicPartitions(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


class ConsumerGroupHeartbeatRequest(Message, api=ApiKey.CONSUMER_GROUP_HEARTBEAT):
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable=True)
    rack_id: str | None = field(STRING, nullable=True)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    subscribed_topic_names: list[str] | None = array(STRING, nullable=True)
    subscribed_topic_regex: str | None = field(STRING, "1+", nullable=True)
    server_assignor: str | None = field(STRING, nullable=True)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True)


class TopicPartitionsResponse(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitionsResponse] = array(TopicPartitionsResponse)


class ConsumerGroupHeartbeatResponse(Message, api=ApiKey.CONSUMER_GROUP_HEARTBEAT):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    member_id: str | None = field(STRING, nullable=True)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = struct(Assignment, nullable=True)
