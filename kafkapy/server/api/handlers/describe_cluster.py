"""DescribeCluster (key 60), versions 0-2.

Behaviour: returns the brokers with the request's listener, the cluster id and the controller.
Endpoint type 2 (controllers) is MISMATCHED_ENDPOINT_TYPE: only KRaft has controller endpoints.
Version notes: v2 can also request fenced brokers, which only KRaft has.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkapy.server.api.authorized_operations import CLUSTER_OPERATIONS
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.request_context import RequestContext

_BROKERS, _CONTROLLERS = 1, 2


def handle(
    cluster: ClusterView, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe the cluster's nodes."""
    if context.version >= 1 and request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an"
            " endpoint of type CONTROLLER",
        )
    if context.version >= 1 and request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    response = DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in cluster.nodes(context.listener)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
