"""DeleteTopics (key 20): deletes topics (KIP-4).

v5 error messages; v6 by name or topic id (KIP-516).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, STRING, UUID, Message, Struct, array, field


class DeleteTopicState(Struct):
    name: str | None = field(STRING, nullable=True)
    topic_id: Uuid = field(UUID)


class DeleteTopicsRequest(Message, api=ApiKey.DELETE_TOPICS):
    topic_names: list[str] = array(STRING, "0-5")
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    timeout_ms: int = field(INT32)


class DeletableTopicResult(Struct):
    name: str | None = field(STRING, nullable="6+")
    topic_id: Uuid = field(UUID, "6+")
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "5+", nullable=True)


class DeleteTopicsResponse(Message, api=ApiKey.DELETE_TOPICS):
    throttle_time_ms: int = field(INT32, "1+")
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
