"""DescribeCluster: clients that look for controllers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.server.api.handlers import describe_cluster
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

MISMATCHED = (
    ErrorCode.MISMATCHED_ENDPOINT_TYPE,
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
    " CONTROLLER",
)


@pytest.mark.parametrize(
    ("version", "endpoint_type", "refusal"),
    [
        (0, 1, (0, None)),
        (1, 1, (0, None)),
        (1, 2, MISMATCHED),
        (1, 3, (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3")),
        (1, 0, (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0")),
    ],
)
def test_a_broker_is_no_controller(
    tmp_path: Path, version: int, endpoint_type: int, refusal: tuple[int, str | None]
) -> None:
    """As Kafka says it (`AuthHelper.computeDescribeClusterResponse`)."""
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    cluster = Parts(tmp_path).cluster
    response = describe_cluster.handle(cluster, request_context(60, version), request)
    assert (response.error_code, response.error_message) == refusal
