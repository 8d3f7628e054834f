"""The controller's context: topics, assignments, replicas, and their removal."""

from __future__ import annotations

from kafkapy.common.cluster_state import BrokerInfo, LeaderAndIsr, TopicDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ControllerContext, PartitionReplica, ReplicaAssignment
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.replica_states import ReplicaState
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.controllers import topic_id

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def prepared() -> ControllerContext:
    context = ControllerContext()
    for broker_id in (3, 1, 2):
        context.add_broker(BrokerInfo(broker_id, ()), broker_id * 10)
    context.add_topic(TopicDescription("t", topic_id(1), {1: (2, 1), 0: (1, 3)}, {0: (3,)}))
    return context


def test_topics_grow_but_known_partitions_stay() -> None:
    context = prepared()
    context.set_assignment(T0, ReplicaAssignment((1,)))
    grown = TopicDescription("t", topic_id(1), {0: (2,), 1: (2,), 2: (3,)})
    assert context.add_topic(grown) == [TopicPartition("t", 2)]
    assert context.assignment(T0) == ReplicaAssignment((1,))


def test_everything_comes_sorted() -> None:
    context = prepared()
    context.add_topic(TopicDescription("a", topic_id(2), {0: (3, 2)}))
    assert context.broker_ids == [1, 2, 3]
    assert context.topics == ["a", "t"]
    assert list(context.partitions()) == [TopicPartition("a", 0), T0, T1]
    assert context.replicas_on({3}) == [
        PartitionReplica(TopicPartition("a", 0), 3),
        PartitionReplica(T0, 3),
    ]


def test_an_assignment_on_the_move_knows_both_ends() -> None:
    start = ReplicaAssignment((1, 2, 3))
    assert (start.origin, start.target) == ((1, 2, 3), (1, 2, 3))
    moving = start.reassign_to((4, 1))
    assert moving == ReplicaAssignment((4, 1, 2, 3), (4,), (2, 3))
    assert (moving.origin, moving.target) == ((1, 2, 3), (4, 1))
    redirected = moving.reassign_to((5,))
    assert redirected == ReplicaAssignment((5, 1, 2, 3), (5,), (1, 2, 3))
    assert moving.reassign_to(moving.origin) == start
    assert str(moving) == (
        "ReplicaAssignment(replicas=4,1,2,3, addingReplicas=4, removingReplicas=2,3)"
    )


def test_partitions_on_the_move() -> None:
    context = prepared()
    assert context.reassigning_partitions() == [T0]
    context.set_assignment(T0, ReplicaAssignment((1,)))
    assert context.reassigning_partitions() == []


def test_liveness_of_replicas() -> None:
    context = prepared()
    context.shutting_down.add(2)
    context.offline_dirs[1] = {T0}
    assert not context.is_replica_online(9, T0)
    assert not context.is_replica_online(1, T0)
    assert context.is_replica_online(1, T1)
    assert not context.is_replica_online(2, T1)
    assert context.is_replica_online(2, T1, include_shutting_down=True)


def test_removing_a_topic_leaves_no_trace() -> None:
    context = prepared()
    context.leadership[T0] = LeaderAndIsr(1, 0, (1,), 0, 1)
    context.partition_states[T0] = PartitionState.ONLINE
    context.replica_states[PartitionReplica(T0, 1)] = ReplicaState.ONLINE
    context.offline_dirs[1] = {T0}
    context.topics_to_delete.add("t")
    context.topics_ineligible.add("t")
    context.remove_topic("t")
    bare = ControllerContext()
    for broker_id in (3, 1, 2):
        bare.add_broker(BrokerInfo(broker_id, ()), broker_id * 10)
    bare.offline_dirs[1] = set()
    assert vars(context) == vars(bare)


def test_reassignments_survive_in_the_description() -> None:
    context = prepared()
    assert context.is_being_reassigned("t")
    assert context.describe_topic("t") == TopicDescription(
        "t", topic_id(1), {0: (1, 3), 1: (2, 1)}, {0: (3,)}
    )
    moving = ReplicaAssignment((1, 2, 3), (3,), (1,))
    assert moving.without_replica(3) == ReplicaAssignment((1, 2), (), (1,))


def test_partitions_with_offline_leader_skips_topics_being_deleted() -> None:
    context = prepared()
    context.leadership[T0] = LeaderAndIsr(9, 0, (9,), 0, 1)
    context.leadership[T1] = LeaderAndIsr(2, 0, (2,), 0, 1)
    assert context.partitions_with_offline_leader() == [T0]
    context.topics_to_delete.add("t")
    assert context.partitions_with_offline_leader() == []


def test_a_target_of_many_replicas_is_compared_by_look_ups() -> None:
    """Compared each with each, the replicas of one small request kept the controller for 768 ms."""
    Replica = counting_comparisons(int)
    target = [Replica(i) for i in range(1000)]
    moved = ReplicaAssignment((1, 2, 3)).reassign_to(target)
    assert (len(moved.replicas), len(moved.adding), moved.removing) == (1000, 997, ())
    assert 0 < Replica.times < 10_000
