"""FindCoordinator in its two shapes: one key before version 4, many from there on."""

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster

OLD = FindCoordinatorResponse(node_id=3, host="b", port=9003)
NEW = FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=3, host="b", port=9003)])


@pytest.mark.parametrize(("version", "answer"), [(3, OLD), (4, NEW), (6, NEW)])
def test_both_shapes(version: int, answer: FindCoordinatorResponse) -> None:
    versions = {ApiKey.FIND_COORDINATOR: (0, version), ApiKey.API_VERSIONS: (0, 3)}
    scripted = ScriptedCluster({ApiKey.FIND_COORDINATOR: answer}, versions)
    cluster = Cluster("b:1", connector=scripted.connect)
    assert find_coordinator(cluster, "g") == 3
    cluster.channel(3)
    assert scripted.connections[-1].port == 9003


def test_a_refusal_has_the_brokers_words() -> None:
    refused = Coordinator(
        key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="not you"
    )
    answer = FindCoordinatorResponse(coordinators=[refused])
    scripted = ScriptedCluster({ApiKey.FIND_COORDINATOR: answer})
    with pytest.raises(ApiError, match="not you"):
        find_coordinator(Cluster("b:1", connector=scripted.connect), "g")
