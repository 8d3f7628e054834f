"""Reassignment step by step: the documented example, every other way, and a death at each step."""

from __future__ import annotations

from dataclasses import replace

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
from kafkapy.zk.stores.znodes import encode_partition_state, encode_partitions
from kafkapy.zk.zookeeper import NoNode
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0 = TopicPartition("t", 0)
BEGUN = ReassignmentResult(ErrorCode.NONE)
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


def test_the_documented_example_in_the_documented_order() -> None:
    """KIP-455's table, OAR {1,2,3} to RAR {4,5,6}: what ZooKeeper says after each write."""
    cluster = prepared(0, 1, 2, 3, 4, 5, 6)
    seen: list[tuple[str, str]] = []

    def observe() -> None:
        now = assignment(cluster), " ".join(cluster.state("t").split()[:2])
        if not seen or seen[-1] != now:
            seen.append(now)

    cluster.observers.append(observe)
    assert reassign(cluster, (4, 5, 6)) == BEGUN
    cluster.catch_up()
    assert seen == [
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "1 [1,2,3]"),
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "1 [1,2,3,4,5,6]"),
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "4 [1,2,3,4,5,6]"),
        # Kafka too takes the leaving replicas out one after the other.
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "4 [2,3,4,5,6]"),
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "4 [3,4,5,6]"),
        ("4,5,6,1,2,3 +4,5,6 -1,2,3", "4 [4,5,6]"),
        ("4,5,6", "4 [4,5,6]"),
    ]
    assert holders(cluster) == [4, 5, 6]


def update(leader: int, brokers: str = "0123456") -> list[str]:
    return [f"{b} UpdateMetadata live=0,1,2,3,4,5,6 t-0:{leader}" for b in brokers]


def test_what_brokers_are_told_in_order() -> None:
    cluster = prepared(0, 1, 2, 3, 4, 5, 6)
    reassign(cluster, (4, 5, 6))
    row = "LeaderAndIsr t-0 leader=1 isr=1,2,3 epoch=1 version=1 replicas=4,5,6,1,2,3"
    assert cluster.take() == [
        # A1: the leader epoch grows; everybody hears of the new replicas.
        *(f"{b} {row}" for b in (1, 2, 3)),
        *(f"{b} {row} new" for b in (4, 5, 6)),
        *update(1),
        # A2
        *(f"{b} {row} new" for b in (4, 5, 6)),
        *update(1),
    ]
    cluster.alter_isr("t", (1, 2, 3, 4))
    assert cluster.take() == update(1), "5 and 6 are awaited"
    cluster.alter_isr("t", (1, 2, 3, 4, 5, 6))
    elected = "LeaderAndIsr t-0 leader=4 isr=1,2,3,4,5,6 epoch=2 version=4 replicas=4,5,6"
    shrunk = "LeaderAndIsr t-0 leader=4 isr=4,5,6 epoch=5 version=7 replicas=4,5,6"
    assert cluster.take() == [
        *update(1),
        # B3: a leader among the targets, who only know each other from now on.
        *(f"{b} {elected}" for b in (4, 5, 6)),
        *update(4),
        # B4: the others leave the ISR and stop.
        *(f"{b} {shrunk}" for b in (4, 5, 6)),
        *update(4),
        "1 StopReplica t-0 epoch=2",
        "2 StopReplica t-0 epoch=3",
        "3 StopReplica t-0 epoch=4",
        # B5: and delete.
        *(f"{b} StopReplica t-0 epoch=5 delete" for b in (1, 2, 3)),
        # B8
        *update(4),
    ]
    replies: list[object] = []
    cluster.submit(ElectLeaders([T0], ElectionType.PREFERRED, replies.append))
    assert "ELECTION_NOT_NEEDED" in str(replies)


def test_more_and_fewer_replicas() -> None:
    cluster = prepared(0, 1, 2, 3, replicas=(1,))
    reassign(cluster, (1, 2, 3))
    assert assignment(cluster) == "1,2,3 +2,3"
    cluster.catch_up()
    assert (assignment(cluster), holders(cluster)) == ("1,2,3", [1, 2, 3])
    assert cluster.state("t").startswith("1 [1,2,3] ")
    cluster.take()
    reassign(cluster, (3,))
    assert (assignment(cluster), holders(cluster)) == ("3", [3])
    assert cluster.state("t").startswith("3 [3] ")


def test_a_leader_that_stays_gets_a_new_epoch_but_no_election() -> None:
    cluster = prepared(0, 1, 2, 3)
    reassign(cluster, (3, 1))
    assert cluster.state("t").startswith("1 [1,3] epoch=2")
    assert cluster.take_of("epoch=1 version=1") == [
        f"{b} LeaderAndIsr t-0 leader=1 isr=1,2,3 epoch=1 version=1 replicas=3,1" for b in (1, 3)
    ]
    reassign(cluster, (1, 3))
    assert assignment(cluster) == "1,3", "another order is another preferred leader, no more"
    assert holders(cluster) == [1, 3]


def test_cancelling_goes_back_and_leaves_nothing_behind() -> None:
    cluster = prepared(0, 1, 2, 3, 4, 5, 6)
    reassign(cluster, (4, 5, 6))
    cluster.alter_isr("t", (1, 2, 3, 4))
    assert reassign(cluster, None) == BEGUN
    assert (assignment(cluster), holders(cluster)) == ("1,2,3", [1, 2, 3])
    assert cluster.state("t").startswith("1 [1,2,3] ")
    result = reassign(cluster, None)
    assert result is not None
    assert result.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_target_meanwhile_keeps_the_origin() -> None:
    cluster = prepared(0, 1, 2, 3, 4, 5, 6)
    reassign(cluster, (4, 5))
    cluster.alter_isr("t", (1, 2, 3, 4))
    assert reassign(cluster, (6, 2, 5)) == BEGUN
    assert assignment(cluster) == "6,2,5,1,3 +6,5 -1,3"
    assert holders(cluster) == [1, 2, 3, 5, 6], "4 is not wanted any more"
    assert cluster.state("t").startswith("1 [1,2,3] ")
    reassign(cluster, None)
    # The znode has no place for the original order: 2 comes first, as it did on the way.
    assert (assignment(cluster), holders(cluster)) == ("2,1,3", [1, 2, 3])


def led_by_an_arriving_replica() -> Cluster:
    """t-0 on its way from 1 and 2 to 4 and 5, and 4, in sync, leads already."""
    cluster = prepared(0, 1, 2, 4, 5, 6, replicas=(1, 2))
    reassign(cluster, (4, 5))
    cluster.alter_isr("t", (1, 2, 4))
    cluster.submit(ElectLeaders([T0], ElectionType.PREFERRED, lambda _: None))
    assert cluster.state("t").startswith("4 [1,2,4] ")
    return cluster


@pytest.mark.parametrize("target", [None, (5, 6)])
def test_a_leader_that_is_not_wanted_any_more_hands_over_first(target: Target) -> None:
    cluster = led_by_an_arriving_replica()
    cluster.observers.append(lambda: no_leader_is_lost(cluster))
    assert reassign(cluster, target) == BEGUN
    assert cluster.state("t").startswith("1 [1,2] ")
    assert 4 not in holders(cluster)


def no_leader_is_lost(cluster: Cluster) -> None:
    assert not cluster.state("t").startswith("-1 ")


@pytest.mark.parametrize("target", [None, (5, 6)])
def test_the_last_replica_in_sync_is_kept(target: Target) -> None:
    cluster = led_by_an_arriving_replica()
    cluster.alter_isr("t", (4,))
    cluster.take()
    before = assignment(cluster), cluster.state("t"), holders(cluster)
    result = reassign(cluster, target)
    assert result == ReassignmentResult(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unable to change the reassignment of t-0: of its replicas in sync (4) none that is live"
        " would be left.",
    )
    assert (assignment(cluster), cluster.state("t"), holders(cluster)) == before
    cluster.catch_up()
    assert (assignment(cluster), holders(cluster)) == ("4,5", [4, 5])


def test_a_target_that_was_away_is_taken_up_when_it_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = prepared(0, 1, 2, 3, 4)
    reassign(cluster, (4, 1))
    cluster.kill(4)
    cluster.catch_up()
    assert assignment(cluster) == "4,1,2,3 +4 -2,3"
    cluster.kill(3)
    before = cluster.state("t")
    cluster.restart(3)
    assert cluster.state("t") == before, "3 is no target"
    cluster.restart(4)
    assert cluster.state("t") != before, "a new leader epoch, for which 4 is new again"
    assert "illegal transition" not in caplog.text
    cluster.catch_up()
    assert (assignment(cluster), holders(cluster)) == ("4,1", [1, 4])


def test_a_replica_that_leaves_while_its_broker_is_dead() -> None:
    cluster = prepared(0, 1, 2, 3)
    cluster.kill(1)
    assert reassign(cluster, (2, 3)) == BEGUN
    assert assignment(cluster) == "2,3"
    assert cluster.state("t").startswith("2 [2,3] ")
    cluster.take()
    cluster.restart(1)
    assert cluster.take_of("LeaderAndIsr") == [], "it is told nothing of a partition it lost"


def test_a_partition_that_never_had_a_leader() -> None:
    cluster = Cluster(0, 1, 2)
    cluster.kill(1)
    cluster.create_topic("t", {0: (1,)})
    assert reassign(cluster, (2,)) == BEGUN
    assert assignment(cluster) == "2"
    assert cluster.state("t").startswith("2 [2] ")
    assert holders(cluster) == [2]


def test_nothing_to_do_is_done_at_once() -> None:
    cluster = prepared(0, 1, 2, 3)
    assert reassign(cluster, (1, 2, 3)) == BEGUN
    assert (assignment(cluster), holders(cluster)) == ("1,2,3", [1, 2, 3])
    assert cluster.state("t") == "1 [1,2,3] epoch=1 version=1"


def write_isr(cluster: Cluster, isr: tuple[int, ...]) -> None:
    """Writes the ISR as a leader with inter.broker.protocol.version below 2.7 does."""
    state = replace(cluster.controller.context.leadership[T0], isr=isr)
    path = "/brokers/topics/t/partitions/0/state"
    run(cluster.store.zookeeper.set(path, encode_partition_state(state)))
    notice = "/isr_change_notification/isr_change_0000000001"
    run(cluster.store.zookeeper.create(notice, encode_partitions([T0])))
    cluster.settle()


def test_an_isr_that_an_older_leader_wrote_ends_it_too() -> None:
    cluster = prepared(0, 1, 2, replicas=(1,))
    reassign(cluster, (2,))
    write_isr(cluster, (1, 2))
    assert (assignment(cluster), holders(cluster)) == ("2", [2])


def test_a_target_that_is_dead_though_in_the_isr_ends_nothing() -> None:
    cluster = prepared(0, 1, 2, replicas=(1,))
    reassign(cluster, (2,))
    cluster.kill(2)
    write_isr(cluster, (1, 2))
    assert cluster.state("t").startswith("1 [1,2] "), "the leader stays, for there is no other"
    assert assignment(cluster) == "2,1 +2 -1"
    cluster.restart(2)
    assert assignment(cluster) == "2"
    assert cluster.state("t").startswith("2 [2] ")


def test_states_in_memory_when_all_is_done() -> None:
    cluster = prepared(0, 1, 2, 3, 4)
    reassign(cluster, (4, 2))
    cluster.catch_up()
    context = cluster.controller.context
    known = {r.replica: s for r, s in context.replica_states.items() if r.topic == "t"}
    existing = {b: s for b, s in known.items() if s is not ReplicaState.NON_EXISTENT}
    assert existing == {2: ReplicaState.ONLINE, 4: ReplicaState.ONLINE}
    assert context.partition_states[T0] is PartitionState.ONLINE


def test_a_failure_at_the_end_is_tried_again() -> None:
    cluster = prepared(0, 1, 2, 3, replicas=(1, 2))
    reassign(cluster, (3, 2))
    path = "/brokers/topics/t"
    data = run(cluster.store.zookeeper.get(path)).data
    run(cluster.store.zookeeper.set(path, b"broken"))
    cluster.alter_isr("t", (1, 2, 3))
    run(cluster.store.zookeeper.set(path, data))
    cluster.settle()
    assert assignment(cluster) == "3,2,1 +3 -1"
    cluster.kill(3)
    cluster.restart(3)
    cluster.catch_up()
    assert (assignment(cluster), holders(cluster)) == ("3,2", [2, 3])


def test_once_its_deletion_began_a_topic_moves_no_more() -> None:
    cluster = prepared(0, 1, 2, 4, replicas=(1, 2))
    reassign(cluster, (4, 2))
    cluster.delete_topic("t")
    cluster.silent = {1, 2, 4}
    cluster.kill(2)
    cluster.restart(2)
    assert cluster.controller.context.topics_deletion_started == {"t"}
    cluster.kill(4)
    cluster.take()
    cluster.restart(4)
    assert cluster.take_of("1 LeaderAndIsr", "2 LeaderAndIsr") == []


def test_deletion_waits_for_the_reassignment() -> None:
    cluster = prepared(0, 1, 2, 3, 4)
    reassign(cluster, (4, 2))
    cluster.delete_topic("t")
    assert cluster.controller.context.topics_ineligible == {"t"}
    assert reassign(cluster, (1,)) == ReassignmentResult(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
    )
    assert holders(cluster) == [1, 2, 3, 4]
    cluster.catch_up()
    assert not cluster.controller.context.has_topic("t")
    assert holders(cluster) == []


def test_deletion_waits_for_every_partition(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(0, 1, 2)
    cluster.create_topic("t", {0: (1,), 1: (1,)})
    reassign(cluster, (2,), 0)
    reassign(cluster, (2,), 1)
    cluster.delete_topic("t")
    cluster.alter_isr("t", (1, 2), 0)
    assert cluster.state("t", 0).startswith("2 [2] ")
    assert cluster.controller.context.topics_ineligible == {"t"}
    cluster.alter_isr("t", (1, 2), 1)
    assert not cluster.controller.context.has_topic("t")
    assert "illegal transition" not in caplog.text, "what the reassignment deleted is not counted"


def test_a_leader_lost_while_the_topic_waits_for_deletion_does_not_block_it() -> None:
    cluster = prepared(0, 1, 2, 4, replicas=(1, 2))
    reassign(cluster, (4, 2))
    cluster.delete_topic("t")
    cluster.kill(1)
    assert cluster.state("t").startswith("-1 [2] "), "elections are over for this topic"
    cluster.brokers[0].die()
    cluster.brokers[1].restart()
    cluster.settle()
    assert cluster.state("t").startswith("2 [2] ")
    cluster.catch_up()
    assert not cluster.controller.context.has_topic("t")


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


def test_a_topic_that_cannot_be_read_is_an_error_and_nothing_changes() -> None:
    cluster = prepared(0, 1, 2, replicas=(1,))
    before = cluster.controller.context.assignment(T0)
    run(cluster.store.zookeeper.set("/brokers/topics/t", b"broken"))
    result = reassign(cluster, (2,))
    assert result is not None
    assert result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "/brokers/topics/t" in str(result.message)
    assert cluster.controller.context.assignment(T0) == before


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
