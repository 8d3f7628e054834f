"""Reassignments by znode: what it may hold, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.controller.events import (
    AlterPartitionReassignments,
    ListPartitionReassignments,
    ReassignmentChange,
    ReassignmentResult,
)
from kafkapy.zk.stores.znodes import encode_reassignments
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PATH = "/admin/reassign_partitions"
BEGUN = ReassignmentResult(ErrorCode.NONE)


def prepared() -> Cluster:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.take()
    return cluster


def listed(cluster: Cluster) -> list[TopicPartition]:
    replies: list[Mapping[TopicPartition, ReplicaAssignment] | ErrorCode] = []
    cluster.submit(ListPartitionReassignments(None, replies.append))
    [reply] = replies
    return list(reply) if not isinstance(reply, ErrorCode) else []


def write(cluster: Cluster, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Requests a reassignment as old versions of the tool do: with a znode."""
    run(cluster.store.zookeeper.create(PATH, encode_reassignments(targets)))


def is_there(cluster: Cluster) -> bool:
    return PATH in cluster.server.tree.nodes


def test_a_controller_that_is_none_says_so() -> None:
    cluster = prepared()
    replies: list[object] = []
    cluster.brokers[2].events.append(AlterPartitionReassignments({T0: (3,)}, replies.append))
    cluster.brokers[2].events.append(ListPartitionReassignments(None, replies.append))
    cluster.settle()
    assert replies == [ErrorCode.NOT_CONTROLLER] * 2


def test_the_znode_may_name_a_broker_that_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    cluster = prepared()
    cluster.kill(3)
    write(cluster, {T0: (3, 1)})
    cluster.settle()
    assert "/admin/reassign_partitions: t-0 has to wait" in caplog.text
    assert listed(cluster) == [T0]
    cluster.restart(3)
    cluster.catch_up()
    assert not is_there(cluster)
    assert cluster.state("t").startswith("1 [1,3] ")


def test_rows_that_cannot_be_done_go_and_the_rest_stays(caplog: pytest.LogCaptureFixture) -> None:
    cluster = prepared()
    write(cluster, {U0: (1,), T0: (), T1: (3, 2)})
    cluster.settle()
    assert "/admin/reassign_partitions: u-0 cannot be reassigned" in caplog.text
    assert "/admin/reassign_partitions: t-0 cannot be reassigned: Empty" in caplog.text
    assert cluster.data(PATH) == (
        '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[3,2]}]}'
    )
    assert listed(cluster) == [T1]


@pytest.mark.parametrize("data", [b"", b"[broken", b'{"version":1,"partitions":[{"topic":"t"}]}'])
def test_a_broken_znode_is_named_and_left(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    cluster = prepared()
    run(cluster.store.zookeeper.create(PATH, data))
    cluster.settle()
    assert "znode /admin/reassign_partitions cannot be read" in caplog.text
    replies: list[object] = []
    cluster.submit(AlterPartitionReassignments({T0: (3, 1)}, replies.append))
    assert replies == [{T0: BEGUN}]
    cluster.catch_up()
    assert cluster.data(PATH) == data.decode()
    assert cluster.state("t").startswith("1 [1,3] ")


def test_an_empty_list_is_done() -> None:
    cluster = prepared()
    write(cluster, {})
    cluster.settle()
    assert not is_there(cluster)


def test_a_wish_that_is_newer_than_what_ends_is_kept() -> None:
    cluster = prepared()
    write(cluster, {T0: (3, 1)})
    cluster.settle()
    data = encode_reassignments({T0: (1, 2)})
    run(cluster.store.zookeeper.set(PATH, data))
    change = cluster.brokers[1].events.pop()
    assert isinstance(change, ReassignmentChange)
    cluster.alter_isr("t", (1, 2, 3))
    assert cluster.state("t").startswith("1 [1,3] ")
    assert cluster.data(PATH) == data.decode()
    cluster.submit(change)
    cluster.catch_up()
    assert cluster.state("t").startswith("1 [1,2] ")
    assert not is_there(cluster)
