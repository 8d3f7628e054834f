"""Partitions: transitions with their writes, conflicts and refusals."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.partition_state_machine import PartitionStateMachine, Strategy
from kafkapy.controller.partition_states import PartitionState
from kafkapy.zk.stores.store import ControllerMoved, Fence
from kafkapy.zk.stores.znodes import encode_partition_state
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0 = TopicPartition("t", 0)
STATE_PATH = "/brokers/topics/t/partitions/0/state"


def prepared() -> tuple[Cluster, PartitionStateMachine]:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.take()
    broker = cluster.brokers[1]
    context = cluster.controller.context
    return cluster, PartitionStateMachine(broker.config, context, broker.store, broker)


def test_an_illegal_transition_is_skipped() -> None:
    cluster, machine = prepared()
    assert run(machine.handle([T0], PartitionState.NEW)) == {}
    assert cluster.controller.context.partition_states[T0] is PartitionState.ONLINE


def test_a_state_that_moved_on_meanwhile_is_read_again() -> None:
    """A leader of an older version shrank the ISR itself: the election must not undo that."""
    cluster, machine = prepared()
    written = encode_partition_state(LeaderAndIsr(1, 0, (2,), 0, 1))
    original = machine._store.topics.states

    async def read_then_change(partitions):  # type: ignore[no-untyped-def]
        machine._store.topics.states = original  # type: ignore[method-assign]
        found = await original(partitions)
        await cluster.store.zookeeper.set(STATE_PATH, written)
        return found

    machine._store.topics.states = read_then_change  # type: ignore[method-assign]
    outcome = run(machine.handle([T0], PartitionState.ONLINE, Strategy.OFFLINE))[T0]
    assert outcome == LeaderAndIsr(2, 1, (2,), 2, 1)
    assert cluster.state("t") == "2 [2] epoch=1 version=2"


def test_a_state_of_a_newer_controller_ends_the_older_one() -> None:
    """Nothing of it is sent: other states that it knows may be old, too."""
    cluster, machine = prepared()
    newer = encode_partition_state(LeaderAndIsr(2, 4, (2,), 0, 99))
    run(cluster.store.zookeeper.set(STATE_PATH, newer))
    with pytest.raises(ControllerMoved, match=r"t-0 was written by .* with epoch 99"):
        run(machine.handle([T0], PartitionState.ONLINE, Strategy.OFFLINE))
    assert cluster.data(STATE_PATH).encode() == newer
    assert cluster.take_of("LeaderAndIsr") == []


def test_a_new_partition_whose_state_exists_already_fails() -> None:
    cluster, machine = prepared()
    other = encode_partition_state(LeaderAndIsr(2, 1, (2,), 0, 1))
    run(cluster.store.zookeeper.set(STATE_PATH, other))
    context = cluster.controller.context
    context.partition_states[T0] = PartitionState.NEW
    outcome = run(machine.handle([T0], PartitionState.ONLINE))[T0]
    assert isinstance(outcome, str)
    assert outcome.startswith("cannot create its state")
    assert context.partition_states[T0] is PartitionState.NEW


def test_a_partition_without_state_cannot_be_elected() -> None:
    cluster, machine = prepared()
    run(cluster.store.zookeeper.delete(STATE_PATH))
    outcome = run(machine.handle([T0], PartitionState.ONLINE, Strategy.PREFERRED))[T0]
    assert outcome == "its state is not in ZooKeeper"


def test_reassign_leaves_the_replicas_on_their_way_out() -> None:
    cluster, machine = prepared()
    context = cluster.controller.context
    moving = context.assignment(T0)._replace(removing=(1,))
    context.set_assignment(T0, moving)
    outcome = run(machine.handle([T0], PartitionState.ONLINE, Strategy.REASSIGN))[T0]
    assert isinstance(outcome, LeaderAndIsr)
    assert outcome.leader == 2


def test_configs_that_cannot_be_read_cost_no_other_topic_its_leader() -> None:
    cluster, machine = prepared()
    cluster.create_topic("u", {0: (1, 2)})
    cluster.create_topic("v", {0: (1,)})
    run(cluster.store.zookeeper.create("/config/topics/v", b"broken"))
    cluster.controller.context.remove_broker(1)
    machine._config.unclean_leader_election_enable = True
    u0, v0 = TopicPartition("u", 0), TopicPartition("v", 0)
    outcomes = run(machine.handle([T0, u0, v0], PartitionState.ONLINE))
    assert outcomes[T0] == LeaderAndIsr(2, 1, (2,), 1, 1)
    assert outcomes[u0] == LeaderAndIsr(2, 1, (2,), 1, 1)
    assert isinstance(outcomes[v0], str)


def test_a_fence_that_does_not_hold_stops_everything() -> None:
    cluster, machine = prepared()
    cluster.controller.context.fence = Fence(1, 0)
    with pytest.raises(ControllerMoved):
        run(machine.handle([T0], PartitionState.ONLINE, Strategy.OFFLINE))
    assert cluster.take() == []
    assert cluster.state("t") == "1 [1,2] epoch=0 version=0"
