"""ControlledShutdown (key 7): a broker requests that the controller moves its leaders.

v0 has a request header without client id; v2 broker epoch (KIP-380).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import INT16, INT32, INT64, STRING, Message, Struct, array, field


class ControlledShutdownRequest(Message, api=ApiKey.CONTROLLED_SHUTDOWN):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, "2+", default=-1)


class RemainingPartition(Struct):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


class ControlledShutdownResponse(Message, api=ApiKey.CONTROLLED_SHUTDOWN):
    error_code: int = field(INT16)
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
