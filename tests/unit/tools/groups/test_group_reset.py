"""Planning over a cluster: who is refused, what is asked, what is committed."""

from __future__ import annotations

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.tools.groups.group_reset import ClusterOffsets, commit, plan_groups, topic_partitions
from kafkapy.tools.groups.offset_reset import Offsets, Reset, Scenario, TopicScope
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.scripted.scripted_groups import group_cluster

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))


def planned(
    reset: Reset,
    *groups: str,
    scopes: list[TopicScope] | None = None,
    file: dict[str, dict[TopicPartition, int]] | None = None,
    scripted: ScriptedCluster | None = None,
) -> tuple[dict[str, Offsets], list[str]]:
    cluster = Cluster("b:1", connector=(scripted or group_cluster()).connect)
    refused: list[str] = []
    told: list[str] = []
    found = plan_groups(cluster, groups, reset, scopes, file or {}, refused.append, told.append)
    return found, refused


def test_a_group_with_members_is_left_out_and_the_others_go_on() -> None:
    found, refused = planned(Reset(Scenario.TO_EARLIEST), "busy", "idle")
    assert found == {"idle": {T0: 0, T1: 5}}
    assert refused == [
        "Assignments can only be reset if the group 'busy' is inactive, but the current state is"
        " Stable."
    ]


def test_a_group_that_is_not_there_may_be_given_offsets() -> None:
    found, refused = planned(Reset(Scenario.TO_LATEST), "new", scopes=[TopicScope("t", None)])
    assert (found, refused) == ({"new": {T0: 10, T1: 20, T2: 0}}, [])


def test_each_group_has_its_lines_of_the_file() -> None:
    file = {"idle": {T0: 1}, "new": {T1: 9}}
    found, refused = planned(Reset(Scenario.FROM_FILE), "idle", "new", "other", file=file)
    assert found == {"idle": {T0: 1}, "new": {T1: 9}}
    assert refused == ["No reset plan for group other found"]


def test_unknown_topics_and_partitions_are_named() -> None:
    with pytest.raises(ApiError, match="Topic nope does not exist"):
        planned(Reset(Scenario.TO_LATEST), "idle", scopes=[TopicScope("nope", None)])
    with pytest.raises(ApiError, match="Partition t-7 does not exist"):
        planned(Reset(Scenario.TO_LATEST), "idle", scopes=[TopicScope("t", (7,))])
    hidden = ScriptedCluster({ApiKey.METADATA: metadata(errors={"t": 29})})
    with pytest.raises(ApiError, match="Topic t: Topic authorization failed"):
        topic_partitions(Cluster("b:1", connector=hidden.connect), "t")


def test_offsets_of_a_cluster() -> None:
    cluster = Cluster("b:1", connector=group_cluster().connect)
    source = ClusterOffsets(cluster)
    assert source.earliest([T1]) == {T1: 5}
    assert source.latest([T0]) == {T0: 10}
    assert source.at([T0, T2], 3000) == {T0: 3, T2: -1}
    assert topic_partitions(cluster, "t") == [0, 1, 2]


def test_a_plan_is_committed_group_by_group() -> None:
    scripted = group_cluster()
    plan: dict[str, Offsets] = {"a": {T0: 1}, "empty": {}, "b": {T1: 2}}
    done: dict[str, Offsets] = {}
    commit(Cluster("b:1", connector=scripted.connect), plan, done)
    assert done == plan
    assert [request.group_id for request in scripted.requests_of(ApiKey.OFFSET_COMMIT)] == [
        "a",
        "b",
    ]
