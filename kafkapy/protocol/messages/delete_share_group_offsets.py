"""DeleteShareGroupOffsets (key 92): deletes the share partitions of topics (KIP-932)."""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, UUID, Message, Struct, array, field


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(STRING)


class DeleteShareGroupOffsetsRequest(Message, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS):
    group_id: str = field(STRING)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class DeleteShareGroupOffsetsResponse(Message, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )
