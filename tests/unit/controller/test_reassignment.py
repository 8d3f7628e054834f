"""Reassignments whose controller dies after any step, and what a controller has in memory."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    AlterPartitionReassignments,
    ElectionType,
    ElectLeaders,
    ReassignmentResult,
)
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.zk.zookeeper import NoNode
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0 = TopicPartition("t", 0)
Target = tuple[int, ...] | None


def prepared(*broker_ids: int, replicas: tuple[int, ...] = (1, 2, 3)) -> Cluster:
    cluster = Cluster(*broker_ids)
    cluster.create_topic("t", {0: replicas})
    cluster.take()
    return cluster


def reassign(cluster: Cluster, target: Target, index: int = 0) -> ReassignmentResult | None:
    """The controller's answer; None if it died without one."""
    replies: list[object] = []
    partition = TopicPartition("t", index)
    cluster.submit(AlterPartitionReassignments({partition: target}, replies.append))
    assert len(replies) <= 1
    if not replies:
        return None
    assert isinstance(replies[0], dict), replies
    result = replies[0][partition]
    assert isinstance(result, ReassignmentResult)
    return result


def assignment(cluster: Cluster) -> str:
    """`replicas +adding -removing` of t-0, from ZooKeeper."""
    topic = run(cluster.store.topics.get("t"))
    assert topic is not None
    rows = (topic.assignment[0], topic.adding_replicas.get(0), topic.removing_replicas.get(0))
    return " ".join(
        sign + ",".join(map(str, row))
        for sign, row in zip(("", "+", "-"), rows, strict=True)
        if row
    )


def holders(cluster: Cluster) -> list[int]:
    """The brokers that have a replica of t-0."""
    return [b for b, broker in cluster.brokers.items() if T0 in broker.replicas]


def no_leader_is_lost(cluster: Cluster) -> None:
    assert not cluster.state("t").startswith("-1 ")


def test_states_in_memory_when_all_is_done() -> None:
    cluster = prepared(0, 1, 2, 3, 4)
    reassign(cluster, (4, 2))
    cluster.catch_up()
    context = cluster.controller.context
    known = {r.replica: s for r, s in context.replica_states.items() if r.topic == "t"}
    existing = {b: s for b, s in known.items() if s is not ReplicaState.NON_EXISTENT}
    assert existing == {2: ReplicaState.ONLINE, 4: ReplicaState.ONLINE}
    assert context.partition_states[T0] is PartitionState.ONLINE


def test_partitions_added_at_the_same_time_are_not_lost() -> None:
    """The controller writes its own partition only: it may not have seen the newest ones."""
    cluster = prepared(0, 1, 2, replicas=(1,))
    topic = run(cluster.store.topics.get("t"))
    assert topic is not None
    topic.assignment[1] = (2,)
    run(cluster.store.topics.update(topic))
    events = cluster.brokers[0].events
    events.appendleft(AlterPartitionReassignments({T0: (2,)}, lambda _: None))
    cluster.settle()
    cluster.catch_up()
    assert assignment(cluster) == "2"
    assert cluster.state("t", 1).startswith("2 [2] ")


def test_a_replica_that_leads_as_soon_as_it_is_added_exists() -> None:
    """Else its topic could not be deleted, nor the broker sent the partition after a restart."""
    cluster = prepared(3, 1, 2, replicas=(1,))
    cluster.brokers[3].config.unclean_leader_election_enable = True
    cluster.kill(1)
    reassign(cluster, (1, 2))
    assert cluster.state("t").startswith("2 [2] ")
    cluster.restart(2)
    assert 2 in {b for b in holders(cluster) if cluster.brokers[b].replicas[T0] >= 0}
    cluster.delete_topic("t")
    cluster.restart(1)
    assert run(cluster.store.topics.names()) == []


def test_a_replica_that_lacked_descriptors_is_added_again_after_it_was_removed() -> None:
    """Else the reassignment would never end: only an event of the broker sends it the partition."""
    cluster = prepared(1, 2, 3, 4)
    cluster.errors[3, T0] = ErrorCode.KAFKA_STORAGE_ERROR
    run(cluster.store.requests.notify_log_dir_failure(3))
    cluster.settle()
    reassign(cluster, (1, 2, 4))
    cluster.catch_up()
    reassign(cluster, (1, 2, 3))
    assert assignment(cluster) == "1,2,3,4 +3 -4"
    cluster.errors.clear()
    cluster.take()
    run(cluster.store.requests.notify_log_dir_failure(3))
    cluster.settle()
    assert cluster.take_of("3 LeaderAndIsr t-0")


MOVES: dict[str, tuple[tuple[Target, ...], Target, str]] = {
    # what happened before, the request that is interrupted, where everything ends
    "move": ((), (4, 5, 6), "4,5,6"),
    "shrink": ((), (3,), "3"),
    "grow": ((), (1, 2, 3, 4, 5), "1,2,3,4,5"),
    "cancel": (((4, 5, 6),), None, "1,2,3"),
    "redirect": (((4, 5),), (5, 6, 1), "5,6,1"),
}


def interrupted(move: str, controller: int, dies_after: int | None) -> tuple[Cluster, int]:
    """Do one of MOVES while the controller dies after so many steps; how many there were."""
    before, target, _ = MOVES[move]
    others = [broker_id for broker_id in range(7) if broker_id != controller]
    cluster = prepared(controller, *others)
    for earlier in before:
        reassign(cluster, earlier)
        # 4 gets as far as leading, when it may, so that it has something to give back.
        cluster.alter_isr("t", (1, 2, 3, 4))
        cluster.submit(ElectLeaders([T0], ElectionType.PREFERRED, lambda _: None))
    if controller == 0:
        # It holds no replica, so its death is no reason for anybody to lose the lead.
        cluster.observers.append(lambda: no_leader_is_lost(cluster))
    first = cluster.brokers[controller]
    start = first.steps
    if dies_after is not None:
        first.dies_after = start + dies_after
    answered = reassign(cluster, target)
    if before and answered is None:
        # Without an answer an admin asks again; the first request may or may not have been done.
        reassign(cluster, target)
    cluster.catch_up()
    steps = first.steps - start
    if dies_after is not None:
        assert first.dies_after is None, "it died"
        cluster.restart(controller)
        cluster.catch_up()
    return cluster, steps


@pytest.mark.parametrize("controller", [0, 1, 4])
@pytest.mark.parametrize("move", MOVES)
def test_a_controller_that_dies_after_any_step_is_replaced(move: str, controller: int) -> None:
    wanted = MOVES[move][2]
    whole, steps = interrupted(move, controller, None)
    assert assignment(whole) == wanted
    assert steps > 10
    for n in range(1, steps + 1):
        cluster, _ = interrupted(move, controller, n)
        where = f"death after step {n} of {steps}"
        assert assignment(cluster) == wanted, where
        leader, isr = cluster.state("t").split()[:2]
        assert sorted(isr.strip("[]").split(",")) == sorted(wanted.split(",")), where
        assert leader in wanted.split(","), where
        # A dead broker cannot be told to delete: what it holds is its own then, as in Kafka.
        held = {str(b) for b in holders(cluster)} - {str(controller)}
        assert held == set(wanted.split(",")) - {str(controller)}, where
        with pytest.raises(NoNode):
            run(cluster.store.zookeeper.get("/admin/reassign_partitions"))
        assert cluster.controller.context.leadership[T0].leader == int(leader), where
