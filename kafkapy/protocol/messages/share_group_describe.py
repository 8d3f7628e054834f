"""ShareGroupDescribe (key 77): state and members of share groups (KIP-932).

v0 was removed in Kafka 4.1.
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
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


class ShareGroupDescribeRequest(Message, api=ApiKey.SHARE_GROUP_DESCRIBE):
    group_ids: list[str] = array(STRING)
    include_authorized_operations: bool = field(BOOL)


class TopicPartitions(Struct):
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = array(INT32)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    member_id: str = field(STRING)
    rack_id: str | None = field(STRING, nullable=True)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = array(STRING)
    assignment: Assignment = struct(Assignment)


class DescribedGroup(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = array(Member)
    authorized_operations: int = field(INT32, default=-2147483648)


class ShareGroupDescribeResponse(Message, api=ApiKey.SHARE_GROUP_DESCRIBE):
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = array(DescribedGroup)
