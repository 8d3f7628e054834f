"""Replicas: what each transition sends and writes."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import PartitionReplica, ReplicaAssignment
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.replica_states import ReplicaState
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0 = TopicPartition("t", 0)
R2, R3 = PartitionReplica(T0, 2), PartitionReplica(T0, 3)


def prepared() -> tuple[Cluster, ReplicaStateMachine]:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.take()
    broker = cluster.brokers[1]
    context = cluster.controller.context
    return cluster, ReplicaStateMachine(broker.config, context, broker.store, broker)


def test_a_new_replica_follows_the_leader_there_is() -> None:
    cluster, machine = prepared()
    run(machine.handle([R3], ReplicaState.NEW))
    assert cluster.take_of("LeaderAndIsr") == [
        "3 LeaderAndIsr t-0 leader=1 isr=1,2 epoch=0 version=0 replicas=1,2 new"
    ]
    run(machine.handle([R3], ReplicaState.ONLINE))
    assert cluster.take() == []
    assert cluster.controller.context.assignment(T0).replicas == (1, 2, 3)


def test_a_leader_cannot_become_a_new_replica() -> None:
    cluster, machine = prepared()
    leader = PartitionReplica(T0, 1)
    cluster.controller.context.replica_states[leader] = ReplicaState.NON_EXISTENT
    run(machine.handle([leader], ReplicaState.NEW))
    assert cluster.take() == []
    assert cluster.controller.context.replica_states[leader] is ReplicaState.NON_EXISTENT


def test_an_offline_replica_stops_leaves_the_isr_and_the_others_hear() -> None:
    cluster, machine = prepared()
    run(machine.handle([R2], ReplicaState.OFFLINE))
    assert cluster.state("t") == "1 [1] epoch=1 version=1"
    assert cluster.take() == [
        "1 LeaderAndIsr t-0 leader=1 isr=1 epoch=1 version=1 replicas=1,2",
        "1 UpdateMetadata live=1,2,3 t-0:1",
        "2 UpdateMetadata live=1,2,3 t-0:1",
        "3 UpdateMetadata live=1,2,3 t-0:1",
        "2 StopReplica t-0 epoch=0",
    ]
    run(machine.handle([R2], ReplicaState.OFFLINE))
    assert cluster.state("t") == "1 [1] epoch=1 version=1", "not in the ISR: nothing to write"
    assert len(cluster.take_of("LeaderAndIsr")) == 1


def test_members_that_are_gone_leave_the_isr_together() -> None:
    """Seed 24102537: a controller ended between the two writes. Its successor had the leader go on
    that had restarted, without the end of its log."""
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2, 3)})
    broker, context = cluster.brokers[1], cluster.controller.context
    for broker_id in (1, 2):
        context.remove_broker(broker_id)
    machine = ReplicaStateMachine(broker.config, context, broker.store, broker)
    run(machine.handle([R2], ReplicaState.OFFLINE))
    assert cluster.state("t") == "-1 [3] epoch=1 version=1"


def test_deletion_states() -> None:
    cluster, machine = prepared()
    states = cluster.controller.context.replica_states
    run(machine.handle([R2], ReplicaState.DELETION_STARTED))
    assert states[R2] is ReplicaState.ONLINE, "only an offline replica is deleted"
    run(machine.handle([R2], ReplicaState.OFFLINE))
    cluster.take()
    run(machine.handle([R2], ReplicaState.DELETION_STARTED))
    assert cluster.take() == ["2 StopReplica t-0 epoch=1 delete"]
    run(machine.handle([R2], ReplicaState.DELETION_SUCCESSFUL))
    run(machine.handle([R2], ReplicaState.NON_EXISTENT))
    assert R2 not in states
    assert cluster.controller.context.assignment(T0) == ReplicaAssignment((1,))
    assert cluster.take() == []


def test_startup_tells_live_replicas_and_takes_dead_ones_out() -> None:
    cluster, _ = prepared()
    cluster.brokers[2].die()
    cluster.kill(1)
    states = cluster.controller.context.replica_states
    assert states == {
        PartitionReplica(T0, 1): ReplicaState.OFFLINE,
        R2: ReplicaState.OFFLINE,
    }
    assert cluster.state("t") == "-1 [2] epoch=2 version=2", "the last one to go stays"
