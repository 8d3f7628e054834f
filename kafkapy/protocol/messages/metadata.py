"""Metadata (key 3): brokers, controller, and the partitions of topics.

v0 an empty topic list means all, v1+ null does; v7 leader epoch (KIP-320); v8 authorized operations
(KIP-430); v10 topic ids (KIP-516); v11 those of the cluster moved to DescribeCluster (KIP-700); v12
topics by id; v13 an error for the whole request (KIP-1102).
"""

from __future__ import annotations

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT16, INT32, STRING, UUID, Message, Struct, array, field


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field(UUID, "10+")
    name: str | None = field(STRING, nullable="10+")


class MetadataRequest(Message, api=ApiKey.METADATA):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, "8-10")
    include_topic_authorized_operations: bool = field(BOOL, "8+")


class MetadataResponseBroker(Struct):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, "1+", nullable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, "7+", default=-1)
    replica_nodes: list[int] = array(INT32)
    isr_nodes: list[int] = array(INT32)
    offline_replicas: list[int] = array(INT32, "5+")


class MetadataResponseTopic(Struct):
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="12+")
    topic_id: Uuid = field(UUID, "10+")
    is_internal: bool = field(BOOL, "1+")
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = field(INT32, "8+", default=-2147483648)


class MetadataResponse(Message, api=ApiKey.METADATA):
    throttle_time_ms: int = field(INT32, "3+")
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = field(STRING, "2+", nullable=True)
    controller_id: int = field(INT32, "1+", default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = field(INT32, "8-10", default=-2147483648)
    error_code: int = field(INT16, "13+")
