"""ShareGroupHeartbeat (key 76): membership in a share group (KIP-932).

v0 was removed in Kafka 4.1.
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


class ShareGroupHeartbeatRequest(Message, api=ApiKey.SHARE_GROUP_HEARTBEAT):
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    rack_id: str | None = field(STRING, nullable=True)
    subscribed_topic_names: list[str] | None = array(STRING, nullable=True)


class TopicPartitions(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Message, api=ApiKey.SHARE_GROUP_HEARTBEAT):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    member_id: str | None = field(STRING, nullable=True)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = struct(Assignment, nullable=True)
