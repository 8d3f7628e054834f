"""Groups: both protocols, several brokers, a coordinator that moves."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.groups import delete_groups, describe_group, list_groups
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import consumer_group_describe as described
from kafkapy.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.scripted.scripted_groups import VERSIONS, group_cluster


def cluster_on(scripted: ScriptedCluster) -> Cluster:
    return Cluster("b:1", connector=scripted.connect)


def test_groups_of_other_things_than_consumers_are_left_out() -> None:
    found = list_groups(cluster_on(group_cluster()))
    assert [(g.group_id, g.state, g.type) for g in found] == [
        ("busy", "Stable", "Classic"),
        ("idle", "Empty", "Classic"),
    ]


def test_every_broker_is_asked_with_the_filters() -> None:
    scripted = group_cluster(METADATA=metadata(brokers={1: 9001, 2: 9002}))
    assert [g.group_id for g in list_groups(cluster_on(scripted), ["Empty"])] == ["idle"]
    asked = [
        port for port, request, _ in scripted.requests if request.API_KEY == ApiKey.LIST_GROUPS
    ]
    assert asked == [9001, 9002]


def test_a_broker_that_knows_no_types_says_so() -> None:
    scripted = group_cluster()
    scripted.versions = {**VERSIONS, ApiKey.LIST_GROUPS: (0, 4)}
    with pytest.raises(ApiError) as caught:
        list_groups(cluster_on(scripted), types=["Classic"])
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_classic_group() -> None:
    found = describe_group(cluster_on(group_cluster()), "busy")
    assert (found.state, found.type, found.assignor) == ("Stable", "Classic", "range")
    assert str(found.coordinator) == "b:9092 (id: 1 rack: null)"
    assert [m.assignment for m in found.members] == [
        (),
        (TopicPartition("t", 1), TopicPartition("t", 0)),
    ]


def test_an_unknown_group_is_dead() -> None:
    assert describe_group(cluster_on(group_cluster()), "nobody").state == "Dead"


def test_a_group_of_something_else_is_refused() -> None:
    with pytest.raises(ApiError, match=r"GroupId connect is not a consumer group \(connect\)"):
        describe_group(cluster_on(group_cluster()), "connect")


def test_the_new_protocol_is_asked_first_where_brokers_speak_it() -> None:
    assigned = described.Assignment(
        topic_partitions=[described.TopicPartitions(topic_name="t", partitions=[3])]
    )
    group = described.DescribedGroup(
        group_id="g",
        group_state="Stable",
        assignor_name="uniform",
        group_epoch=5,
        assignment_epoch=4,
        members=[
            described.Member(
                member_id="m", member_epoch=3, assignment=assigned, target_assignment=assigned
            )
        ],
    )

    def answer(request: Any, port: int) -> Any:
        if request.group_ids == ["g"]:
            return described.ConsumerGroupDescribeResponse(groups=[group])
        absent = described.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        return described.ConsumerGroupDescribeResponse(groups=[absent])

    scripted = group_cluster(CONSUMER_GROUP_DESCRIBE=answer)
    scripted.versions = {**VERSIONS, ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 0)}
    cluster = cluster_on(scripted)
    found = describe_group(cluster, "g")
    assert (found.type, found.assignor) == ("Consumer", "uniform")
    (member,) = found.members
    assert member.assignment == member.target == (TopicPartition("t", 3),)
    assert (found.epoch, found.target_epoch, member.epoch) == (5, 4, 3)
    assert describe_group(cluster, "busy").type == "Classic"


@pytest.mark.parametrize("hangs", [False, True])
def test_a_coordinator_that_loads_or_hangs_is_asked_again(hangs: bool) -> None:
    loading = DescribedGroup(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ready = DescribedGroup(group_id="g", group_state="Empty", protocol_type="consumer")
    first, last = (DescribeGroupsResponse(groups=[each]) for each in (loading, ready))
    answers = [TimeoutError() if hangs else first, last]
    assert describe_group(cluster_on(group_cluster(DESCRIBE_GROUPS=answers)), "g").state == "Empty"


def test_deleting_tells_of_each_group() -> None:
    results = delete_groups(cluster_on(group_cluster()), ["idle", "busy", "nobody", "idle"])
    assert {group: error and error.message for group, error in results.items()} == {
        "idle": None,
        "busy": "The group is not empty.",
        "nobody": "The group id does not exist.",
    }
