"""DescribeCluster (key 60): cluster id, controller and brokers (KIP-700).

v1 brokers or controllers (KIP-919); v2 fenced brokers (KIP-1073).
"""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BOOL, INT8, INT16, INT32, STRING, Message, Struct, array, field


class DescribeClusterRequest(Message, api=ApiKey.DESCRIBE_CLUSTER):
    include_cluster_authorized_operations: bool = field(BOOL)
    endpoint_type: int = field(INT8, "1+", default=1)
    include_fenced_brokers: bool = field(BOOL, "2+")


class DescribeClusterBroker(Struct):
    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=True)
    is_fenced: bool = field(BOOL, "2+")


class DescribeClusterResponse(Message, api=ApiKey.DESCRIBE_CLUSTER):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)
    endpoint_type: int = field(INT8, "1+", default=1)
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = field(INT32, default=-2147483648)
