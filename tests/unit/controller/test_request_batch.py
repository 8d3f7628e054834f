"""Requests of a batch: their content, their order, and the brokers that receive them."""

from __future__ import annotations

from kafkapy.common.cluster_state import LeaderAndIsr, LeaderAndIsrCommand
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.request_batch import RequestBatch
from tests.harness.cores.controllers import Cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def prepared() -> tuple[Cluster, RequestBatch]:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.take()
    return cluster, RequestBatch(1, cluster.controller.context, cluster.brokers[1])


def state(leader: int, leader_epoch: int = 3) -> LeaderAndIsr:
    return LeaderAndIsr(leader, leader_epoch, (1, 2), 4, 1)


def test_leader_and_isr_goes_first_and_its_partitions_go_to_all_brokers() -> None:
    cluster, batch = prepared()
    batch.add_stop_replica(1, T1)
    batch.add_leader_and_isr([2, 7, -1], T0, state(1))
    batch.send()
    assert cluster.take() == [
        "2 LeaderAndIsr t-0 leader=1 isr=1,2 epoch=3 version=4 replicas=1,2",
        "1 UpdateMetadata live=1,2 t-0:1",
        "2 UpdateMetadata live=1,2 t-0:1",
        "1 StopReplica t-1 epoch=0",
    ]


def test_the_last_state_wins_but_new_and_delete_stay() -> None:
    cluster, batch = prepared()
    batch.add_leader_and_isr([1], T0, state(1), is_new=True)
    batch.add_leader_and_isr([1], T0, state(2, 4))
    batch.add_stop_replica(2, T1, delete=True)
    batch.add_stop_replica(2, T1)
    batch.send()
    sent = cluster.take()
    assert sent[0] == "1 LeaderAndIsr t-0 leader=2 isr=1,2 epoch=4 version=4 replicas=1,2 new"
    assert sent[-1] == "2 StopReplica t-1 epoch=0 delete"


def test_topics_being_deleted_have_leader_minus_two_and_no_fencing() -> None:
    cluster, batch = prepared()
    cluster.controller.context.topics_to_delete.add("t")
    batch.add_update_metadata([1], [T0])
    batch.add_stop_replica(1, T0, delete=True)
    batch.send()
    assert cluster.take() == [
        "1 UpdateMetadata live=1,2 t-0:-2",
        "1 StopReplica t-0 epoch=-2 delete",
    ]


def test_an_empty_batch_sends_nothing() -> None:
    cluster, batch = prepared()
    batch.send()
    assert cluster.take() == []


def test_each_broker_gets_its_own_epoch_and_the_leaders_of_its_rows() -> None:
    cluster, batch = prepared()
    seen: list[tuple[int, int, list[int]]] = []

    def note(broker_id: int, command: LeaderAndIsrCommand) -> None:
        leaders = [broker.broker_id for broker in command.live_leaders]
        seen.append((broker_id, command.broker_epoch, leaders))

    cluster.brokers[1].send_leader_and_isr = note  # type: ignore[method-assign]
    batch.add_leader_and_isr([1, 2], T0, state(2))
    batch.send()
    epochs = cluster.controller.context.broker_epochs
    assert seen == [(1, epochs[1], [2]), (2, epochs[2], [2])]
    assert epochs == {b: cluster.brokers[b].broker_epoch for b in (1, 2)}
