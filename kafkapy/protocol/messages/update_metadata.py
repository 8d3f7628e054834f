"""UpdateMetadata (key 6): the controller sends a broker the metadata that clients request.

v4 offline replicas (KIP-112); v5 broker epoch (KIP-380), grouped by topic; v7 topic ids (KIP-516);
v8 KRaft flag, type (KIP-866).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import (
    BOOL,
    INT8,
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


class UpdateMetadataPartitionState(Struct):
    topic_name: str = field(STRING, "0-4")
    partition_index: int = field(INT32)
    controller_epoch: int = field(INT32)
    leader: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = array(INT32)
    zk_version: int = field(INT32)
    replicas: list[int] = array(INT32)
    offline_replicas: list[int] = array(INT32, "4+")


class UpdateMetadataTopicState(Struct):
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID, "7+")
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)


class UpdateMetadataEndpoint(Struct):
    port: int = field(INT32)
    host: str = field(STRING)
    listener: str = field(STRING, "3+")
    security_protocol: int = field(INT16)


class UpdateMetadataBroker(Struct):
    id: int = field(INT32)
    v0_host: str = field(STRING, "0")
    v0_port: int = field(INT32, "0")
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+")
    rack: str | None = field(STRING, "2+", nullable=True)


class UpdateMetadataRequest(Message, api=ApiKey.UPDATE_METADATA):
    controller_id: int = field(INT32)
    is_kraft_controller: bool = field(BOOL, "8+")
    type: int = field(INT8, "8+", tag=0)
    controller_epoch: int = field(INT32)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4"
    )
    broker_epoch: int = field(INT64, "5+", default=-1)
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Message, api=ApiKey.UPDATE_METADATA):
    error_code: int = field(INT16)
