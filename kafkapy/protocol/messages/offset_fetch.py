"""OffsetFetch (key 9): a group's committed offsets.

v2 null for all topics; v5 leader epoch (KIP-320); v7 stable offsets only (KIP-447); v8 several
groups (KIP-709); v9 member epoch, v10 topic ids (KIP-848).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
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


class OffsetFetchRequestTopic(Struct):
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


class OffsetFetchRequestTopics(Struct):
    name: str = field(STRING, "8-9")
    topic_id: Uuid = field(UUID, "10+")
    partition_indexes: list[int] = array(INT32)


class OffsetFetchRequestGroup(Struct):
    group_id: str = field(STRING)
    member_id: str | None = field(STRING, "9+", nullable=True)
    member_epoch: int = field(INT32, "9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable=True)


class OffsetFetchRequest(Message, api=ApiKey.OFFSET_FETCH):
    group_id: str = field(STRING, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = field(BOOL, "7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, "5-7", default=-1)
    metadata: str | None = field(STRING, nullable=True)
    error_code: int = field(INT16)


class OffsetFetchResponseTopic(Struct):
    name: str = field(STRING)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, default=-1)
    metadata: str | None = field(STRING, nullable=True)
    error_code: int = field(INT16)


class OffsetFetchResponseTopics(Struct):
    name: str = field(STRING, "8-9")
    topic_id: Uuid = field(UUID, "10+")
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(STRING)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = field(INT16)


class OffsetFetchResponse(Message, api=ApiKey.OFFSET_FETCH):
    throttle_time_ms: int = field(INT32, "3+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = field(INT16, "2-7")
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")
