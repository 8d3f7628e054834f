"""Reassignments asked for by event and by znode: every refusal, precedence, and the list."""

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
UNKNOWN = ReassignmentResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
Targets = Mapping[TopicPartition, tuple[int, ...] | None]


def prepared() -> Cluster:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.take()
    return cluster


def alter(cluster: Cluster, targets: Targets) -> Mapping[TopicPartition, ReassignmentResult]:
    replies: list[Mapping[TopicPartition, ReassignmentResult] | ErrorCode] = []
    cluster.submit(AlterPartitionReassignments(targets, replies.append))
    assert len(replies) == 1
    assert not isinstance(replies[0], ErrorCode)
    return replies[0]


def listed(
    cluster: Cluster, partitions: list[TopicPartition] | None = None
) -> dict[TopicPartition, ReplicaAssignment]:
    replies: list[Mapping[TopicPartition, ReplicaAssignment] | ErrorCode] = []
    cluster.submit(ListPartitionReassignments(partitions, replies.append))
    assert len(replies) == 1
    assert not isinstance(replies[0], ErrorCode)
    return dict(replies[0])


def write(cluster: Cluster, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Requests a reassignment as old versions of the tool do: with a znode."""
    run(cluster.store.zookeeper.create(PATH, encode_reassignments(targets)))


def is_there(cluster: Cluster) -> bool:
    return PATH in cluster.server.tree.nodes


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ((), "Empty replica list specified in partition reassignment."),
        ((3, 3), "Duplicate replica ids in partition reassignment replica list: 3,3"),
        ((1, -7), "Invalid broker id in replica list: 1,-7"),
        (
            (9, 1, 2),
            "Replica assignment has brokers that are not alive. Replica list: 9,"
            " live broker list: 1,2,3",
        ),
    ],
)
def test_a_target_that_cannot_be(target: tuple[int, ...], message: str) -> None:
    cluster = prepared()
    results = alter(cluster, {T0: target, T1: (3,)})
    assert results[T0] == ReassignmentResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    assert results[T1] == BEGUN, "the others go on"
    assert list(listed(cluster)) == [T1]


def test_a_dead_replica_may_stay_but_not_come() -> None:
    cluster = prepared()
    cluster.kill(2)
    assert alter(cluster, {T0: (2, 3)}) == {T0: BEGUN}
    assert alter(cluster, {T1: (3, 1)}) == {T1: BEGUN}
    refused = alter(cluster, {T1: (2, 9)})[T1]
    assert refused.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_unknown_and_dying_partitions() -> None:
    cluster = prepared()
    none = ReassignmentResult(
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
    )
    assert alter(cluster, {U0: (1,), T0: None}) == {U0: UNKNOWN, T0: none}
    cluster.silent = {1, 2, 3}
    cluster.delete_topic("t")
    assert alter(cluster, {T0: (3,)}) == {T0: UNKNOWN}


def test_the_list() -> None:
    cluster = prepared()
    assert listed(cluster) == {}
    alter(cluster, {T0: (3, 1)})
    moving = ReplicaAssignment((3, 1, 2), (3,), (2,))
    assert listed(cluster) == {T0: moving}
    assert listed(cluster, [T1, U0, T0]) == {T0: moving}
    assert listed(cluster, [T1]) == {}
    assert listed(cluster, []) == {}
    cluster.catch_up()
    assert listed(cluster) == {}


def test_a_controller_that_is_none_says_so() -> None:
    cluster = prepared()
    replies: list[object] = []
    cluster.brokers[2].events.append(AlterPartitionReassignments({T0: (3,)}, replies.append))
    cluster.brokers[2].events.append(ListPartitionReassignments(None, replies.append))
    cluster.settle()
    assert replies == [ErrorCode.NOT_CONTROLLER] * 2


def test_the_znode_shrinks_as_its_partitions_arrive() -> None:
    cluster = prepared()
    write(cluster, {T0: (3, 1), T1: (2, 3)})
    cluster.settle()
    assert sorted(listed(cluster)) == [T0, T1]
    epochs = [cluster.state("t", index).split()[2] for index in (0, 1)]
    assert epochs == ["epoch=1", "epoch=1"]
    cluster.alter_isr("t", (1, 2, 3), 0)
    assert cluster.data(PATH) == (
        '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3]}]}'
    )
    assert cluster.state("t", 1).split()[2] == "epoch=1", "one that goes on is not begun again"
    cluster.alter_isr("t", (2, 1, 3), 1)
    assert not is_there(cluster)
    assert listed(cluster) == {}
    write(cluster, {T0: (1, 2)})
    cluster.settle()
    assert list(listed(cluster)) == [T0], "the next one is seen as well"


def test_the_znode_may_name_a_broker_that_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    cluster = prepared()
    cluster.kill(3)
    write(cluster, {T0: (3, 1)})
    cluster.settle()
    assert "/admin/reassign_partitions: t-0 has to wait" in caplog.text
    assert list(listed(cluster)) == [T0]
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
    assert list(listed(cluster)) == [T1]


@pytest.mark.parametrize("data", [b"", b"[broken", b'{"version":1,"partitions":[{"topic":"t"}]}'])
def test_a_broken_znode_is_named_and_left(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    cluster = prepared()
    run(cluster.store.zookeeper.create(PATH, data))
    cluster.settle()
    assert "znode /admin/reassign_partitions cannot be read" in caplog.text
    assert alter(cluster, {T0: (3, 1)}) == {T0: BEGUN}
    cluster.catch_up()
    assert cluster.data(PATH) == data.decode()
    assert cluster.state("t").startswith("1 [1,3] ")


def test_an_empty_list_is_done() -> None:
    cluster = prepared()
    write(cluster, {})
    cluster.settle()
    assert not is_there(cluster)


def test_the_latest_wish_holds() -> None:
    cluster = prepared()
    write(cluster, {T0: (3, 1), T1: (3, 2)})
    cluster.settle()
    assert alter(cluster, {T0: None, T1: (1, 3)}) == {T0: BEGUN, T1: BEGUN}
    assert not is_there(cluster)
    assert list(listed(cluster)) == [T1]
    write(cluster, {T1: (2, 3)})
    cluster.settle()
    assert listed(cluster)[T1].target == (2, 3)


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


def test_a_new_controller_takes_up_both_kinds() -> None:
    cluster = prepared()
    alter(cluster, {T0: (3, 2)})
    cluster.brokers[1].die()
    write(cluster, {T1: (2, 3)})
    cluster.settle()
    assert sorted(listed(cluster)) == [T0, T1]
    cluster.catch_up()
    assert listed(cluster) == {}
    assert not is_there(cluster)
    assert cluster.state("t", 0).startswith("2 [2,3] ")
    assert cluster.state("t", 1).startswith("2 [2,3] ")


def test_the_znode_of_a_topic_that_is_deleted_goes_too() -> None:
    cluster = prepared()
    write(cluster, {T0: (3, 1), T1: (3, 1)})
    cluster.settle()
    cluster.delete_topic("t")
    cluster.kill(2)
    cluster.restart(2)
    assert not cluster.controller.context.has_topic("t"), "a returning broker lets deletion go on"
    assert not is_there(cluster)
