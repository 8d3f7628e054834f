"""Throttles set, found, removed and put back."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.configs import Resource
from kafkapy.admin.planning.throttle_plan import ThrottlePlan
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kafkapy.tools.reassign.throttles import (
    clear_throttles,
    inter_broker_throttle,
    log_dir_throttle,
    present_throttles,
    set_throttles,
)
from tests.harness.scripted.moving_cluster import MovingCluster

LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIRS = "replica.alter.log.dirs.io.max.bytes.per.second"
LISTS = {
    "leader.replication.throttled.replicas": "0:1",
    "follower.replication.throttled.replicas": "0:2",
}


def test_they_are_set_where_a_broker_lives() -> None:
    moving = MovingCluster({"t": [[1, 2]]}, down=[3])
    with Cluster("b:9001", connector=moving.scripted.connect) as cluster:
        plan = ThrottlePlan({"t": LISTS}, (1, 3))
        set_throttles(cluster, inter_broker_throttle(plan, 500, {1, 2}))
        set_throttles(cluster, log_dir_throttle([2], 7))
    assert moving.configs == {
        (2, "t"): LISTS,
        (4, "1"): {LEADER: "500", FOLLOWER: "500"},
        (4, "2"): {LOG_DIRS: "7"},
    }


def test_only_throttles_are_found() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    moving.set_config(4, "1", leader_replication_throttled_rate="5", log_cleaner_threads="2")
    moving.set_config(2, "t", retention_ms="5")
    with Cluster("b:9001", connector=moving.scripted.connect) as cluster:
        found = present_throttles(cluster, [1, 2], ["t"])
    assert found == {Resource(ResourceType.BROKER, "1"): {LEADER: "5"}}


def test_they_are_removed_or_put_back_and_nothing_else_is() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    moving.set_config(4, "1", leader_replication_throttled_rate="5", log_cleaner_threads="2")
    moving.set_config(4, "2", follower_replication_throttled_rate="5")
    moving.configs[2, "t"] = {**LISTS, "retention.ms": "9"}
    previous = {Resource(ResourceType.BROKER, "2"): {FOLLOWER: "99"}}
    with Cluster("b:9001", connector=moving.scripted.connect) as cluster:
        clear_throttles(cluster, [1, 2], ["t"], previous)
    assert moving.configs == {
        (4, "1"): {"log.cleaner.threads": "2"},
        (4, "2"): {FOLLOWER: "99"},
        (2, "t"): {"retention.ms": "9"},
    }


@pytest.mark.parametrize("refused", [1, 2])
def test_a_broker_that_refuses_keeps_no_throttle_of_the_others(refused: int) -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    for broker_id in (1, 2, 3):
        moving.set_config(4, str(broker_id), leader_replication_throttled_rate="5")
    moving.configs[2, "t"] = dict(LISTS)
    alter = moving.scripted.script[ApiKey.INCREMENTAL_ALTER_CONFIGS]

    def answer(request: Any, port: int) -> IncrementalAlterConfigsResponse:
        if port == 9000 + refused and request.resources[0].resource_type == 4:
            refusal = AlterConfigsResourceResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
            return IncrementalAlterConfigsResponse(responses=[refusal])
        response: IncrementalAlterConfigsResponse = alter(request, port)
        return response

    moving.scripted.script[ApiKey.INCREMENTAL_ALTER_CONFIGS] = answer
    with (
        Cluster("b:9001", connector=moving.scripted.connect) as cluster,
        pytest.raises(ApiError, match="The request timed out"),
    ):
        clear_throttles(cluster, [1, 2, 3], ["t"], {})
    assert moving.configs.keys() == {(4, str(refused))}
