"""OffsetCommit (key 8): a group's consumed offsets.

v2-4 retention time; v6 leader epoch (KIP-320); v7 static members (KIP-345); v9 member epoch,
v10 topic ids (KIP-848).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
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


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    commit_timestamp: int = field(INT64, "1", default=-1)
    committed_leader_epoch: int = field(INT32, "6+", default=-1)
    committed_metadata: str | None = field(STRING, nullable=True)


class OffsetCommitRequestTopic(Struct):
    name: str = field(STRING, "0-9")
    topic_id: Uuid = field(UUID, "10+")
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, api=ApiKey.OFFSET_COMMIT):
    group_id: str = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, "1+", default=-1)
    member_id: str = field(STRING, "1+")
    retention_time_ms: int = field(INT64, "2-4", default=-1)
    group_instance_id: str | None = field(STRING, "7+", nullable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(STRING, "0-9")
    topic_id: Uuid = field(UUID, "10+")
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, api=ApiKey.OFFSET_COMMIT):
    throttle_time_ms: int = field(INT32, "3+")
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
