"""CreatePartitions (key 37): adds partitions to topics (KIP-195).

Null assignments let the controller choose.
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT16, INT32, STRING, Message, Struct, array, field


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(INT32)


class CreatePartitionsTopic(Struct):
    name: str = field(STRING)
    count: int = field(INT32)
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable=True
    )


class CreatePartitionsRequest(Message, api=ApiKey.CREATE_PARTITIONS):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = field(INT32)
    validate_only: bool = field(BOOL)


class CreatePartitionsTopicResult(Struct):
    name: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class CreatePartitionsResponse(Message, api=ApiKey.CREATE_PARTITIONS):
    throttle_time_ms: int = field(INT32)
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
