"""Elections on request and by the rebalance timer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    AlterPartitionReassignments,
    AutoRebalance,
    ElectionResult,
    ElectionType,
    ElectLeaders,
    UncleanElectionEnabled,
)
from kafkapy.zk.stores.znodes import encode_partitions
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def elect(
    cluster: Cluster, partitions: Sequence[TopicPartition] | None, kind: ElectionType
) -> Mapping[TopicPartition, ElectionResult]:
    replies: list[Mapping[TopicPartition, ElectionResult] | ErrorCode] = []
    cluster.submit(ElectLeaders(partitions, kind, replies.append))
    assert len(replies) == 1
    assert not isinstance(replies[0], ErrorCode)
    return replies[0]


def rejoin(cluster: Cluster, index: int, isr: tuple[int, ...]) -> None:
    """The leader takes a caught-up follower into the ISR."""
    state = cluster.controller.context.leadership[TopicPartition("t", index)]
    wish = AlterPartitionItem(
        "t", topic_id(7), index, state.leader_epoch, isr, 0, state.partition_epoch
    )
    epoch = cluster.brokers[state.leader].broker_epoch
    cluster.submit(AlterPartition(state.leader, epoch, [wish], lambda _: None))


def test_the_preferred_leader_comes_back_once_it_is_in_sync() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1), 1: (1, 2)})
    cluster.kill(2)
    cluster.restart(2)
    result = elect(cluster, [T0], PREFERRED)[T0]
    assert result.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert result.message is not None
    assert "PreferredReplicaPartitionLeaderElectionStrategy" in result.message

    rejoin(cluster, 0, (1, 2))
    assert elect(cluster, None, PREFERRED) == {T0: ElectionResult(ErrorCode.NONE, None, 2)}
    assert cluster.state("t").startswith("2 [1,2] ")
    assert elect(cluster, [T0], PREFERRED)[T0].error is ErrorCode.ELECTION_NOT_NEEDED


def test_an_admin_may_ask_for_an_unclean_leader() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3), 1: (1, 3)})
    cluster.kill(3)
    cluster.kill(2)
    assert elect(cluster, [T0], UNCLEAN)[T0].error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.restart(3)
    results = elect(cluster, [T0, T1], UNCLEAN)
    assert results[T0] == ElectionResult(ErrorCode.NONE, None, 3)
    assert results[T1].error is ErrorCode.ELECTION_NOT_NEEDED


def test_unknown_and_dying_partitions() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.silent = {1, 2}
    cluster.delete_topic("t")
    results = elect(cluster, [T0, TopicPartition("x", 3)], PREFERRED)
    assert results[T0] == ElectionResult(
        ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"
    )
    assert results[TopicPartition("x", 3)] == ElectionResult(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
    )


def test_the_znode_of_older_tools() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.kill(2)
    cluster.restart(2)
    rejoin(cluster, 0, (1, 2))
    path = "/admin/preferred_replica_election"
    run(cluster.store.zookeeper.create(path, encode_partitions([T0])))
    cluster.settle()
    assert cluster.state("t").startswith("2 [1,2] ")
    assert path not in cluster.server.tree.nodes
    run(cluster.store.zookeeper.create(path, encode_partitions([])))
    cluster.settle()
    assert path not in cluster.server.tree.nodes, "an empty list is done too"
    run(cluster.store.zookeeper.create(path, b"[broken"))
    cluster.settle()
    assert cluster.data(path) == "[broken"


def test_rebalance_acts_above_the_percentage_only() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1), 1: (2, 1)})
    cluster.kill(2)
    cluster.restart(2)
    rejoin(cluster, 0, (1, 2))
    config = cluster.brokers[1].config
    config.leader_imbalance_per_broker_percentage = 100
    cluster.submit(AutoRebalance())
    assert cluster.state("t", 0).startswith("1 [1,2] ")
    config.leader_imbalance_per_broker_percentage = 10
    cluster.submit(AutoRebalance())
    assert cluster.state("t", 0).startswith("2 [1,2] ")
    assert cluster.state("t", 1).startswith("1 [1] "), "2 is not in sync there"


def test_rebalance_leaves_what_moves_or_dies_alone() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 1), 1: (2, 1)})
    cluster.kill(2)
    cluster.restart(2)
    rejoin(cluster, 0, (1, 2))
    rejoin(cluster, 1, (1, 2))
    target = {T0: (2, 3)}
    cluster.submit(AlterPartitionReassignments(target, lambda _: None))
    cluster.submit(AutoRebalance())
    assert cluster.state("t", 0).startswith("1 "), "it is on the move"
    assert cluster.state("t", 1).startswith("2 ")
    elected = elect(cluster, [T0], PREFERRED)
    assert elected == {T0: ElectionResult(ErrorCode.NONE, None, 2)}, "unless it is asked for"


def test_allowing_unclean_elections_tries_at_once() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.kill(3)
    cluster.kill(2)
    cluster.restart(3)
    cluster.submit(UncleanElectionEnabled("t"))
    assert cluster.state("t").startswith("-1 ")
    cluster.brokers[1].config.unclean_leader_election_enable = True
    cluster.submit(UncleanElectionEnabled())
    assert cluster.state("t").startswith("3 [3] ")
