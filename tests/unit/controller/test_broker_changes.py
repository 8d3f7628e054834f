"""Endpoints that change, late answers, and broken znodes of brokers."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import BrokerInfo, CommandResult, Endpoint
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    AlterPartitionResult,
    LeaderAndIsrResponse,
)
from kafkapy.zk.stores.broker_store import BrokerStore, Registration
from kafkapy.zk.zookeeper import Watch
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run


def test_changed_endpoints_are_told_to_everybody() -> None:
    cluster = Cluster(1, 2)
    moved = BrokerInfo(2, (Endpoint("PLAINTEXT", "elsewhere", 9099),))
    for _ in range(2):
        cluster.take()
        run(cluster.brokers[2].store.brokers.update(moved, 0))
        cluster.settle()
        assert cluster.brokers[1].metadata.image.brokers[2] == moved
    assert cluster.take() == [], "the second time nothing changed"


@pytest.mark.parametrize("is_new_controller", [False, True])
def test_clients_get_an_address_that_changed_before_the_controller_watched_it(
    monkeypatch: pytest.MonkeyPatch, is_new_controller: bool
) -> None:
    """They got the old one until the broker restarted. It registers the new address right after
    its registration, or while a new controller reads thousands of topics."""
    cluster = Cluster(1, 2)
    moved = BrokerInfo(2, (Endpoint("PLAINTEXT", "elsewhere", 9099),))
    if is_new_controller:
        cluster.brokers[1].die()
        cluster.brokers[1].restart()
    else:
        cluster.kill(2)
        cluster.brokers[2].restart()
    real = BrokerStore.get_all

    async def overtaken(store: BrokerStore, watch: Watch | None = None) -> dict[int, Registration]:
        found = await real(store, watch)
        if 2 in found:
            monkeypatch.undo()
            await cluster.brokers[2].store.brokers.update(moved, 0)
        return found

    monkeypatch.setattr(BrokerStore, "get_all", overtaken)
    cluster.settle()
    assert cluster.brokers[1].metadata.image.brokers[2] == moved


def test_an_answer_from_an_earlier_life_of_a_broker_marks_nothing() -> None:
    """The broker failed a directory, was restarted on a sound disk, and leads again; the answer of
    the life before is handled only after the change of its registration."""
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    failed = TopicPartition("t", 0)
    earlier_epoch = cluster.brokers[2].broker_epoch
    cluster.kill(2)
    cluster.restart(2)
    cluster.catch_up()
    cluster.kill(1)
    cluster.restart(1)
    assert cluster.state("t").startswith("2 [2] ")
    result = CommandResult(partition_errors={failed: ErrorCode.KAFKA_STORAGE_ERROR})
    cluster.submit(LeaderAndIsrResponse(2, earlier_epoch, result))
    assert cluster.controller.context.is_replica_online(2, failed)
    assert cluster.state("t").startswith("2 [2] "), "the healthy replica keeps its partition"
    cluster.submit(LeaderAndIsrResponse(2, cluster.brokers[2].broker_epoch, result))
    assert not cluster.controller.context.is_replica_online(2, failed)


def test_a_member_that_restarted_since_it_was_proposed_is_refused() -> None:
    """The leader's proposal was sent again and again until there was a controller. Meanwhile the
    follower lost power, and the end of its log: elected now, it would lose what was acknowledged.
    """
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.alter_isr("t", (2,))
    state = cluster.controller.context.leadership[TopicPartition("t", 0)]
    earlier_epoch = cluster.brokers[3].broker_epoch
    cluster.kill(3)
    cluster.restart(3)
    now = cluster.controller.context.leadership[TopicPartition("t", 0)]
    assert now == state, "it was no member: its restart left the state as it was"

    def propose(*epochs: int) -> ErrorCode:
        key = ("t", topic_id(0), 0)
        item = AlterPartitionItem(
            *key, state.leader_epoch, (2, 3), 0, state.partition_epoch, (-1, *epochs)
        )
        answers: list[AlterPartitionResult] = []
        epoch = cluster.brokers[2].broker_epoch
        cluster.submit(AlterPartition(2, epoch, [item], answers.append))
        return answers[0].rows[0][1]

    assert propose(earlier_epoch) is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.state("t").startswith("2 [2] ")
    assert propose(cluster.brokers[3].broker_epoch) is ErrorCode.NONE
    assert cluster.state("t").startswith("2 [2,3] ")


def test_a_replica_that_is_sound_again_leads_at_once() -> None:
    """Its broker had no descriptor left. Nobody led until some broker came or went."""
    cluster = Cluster(1)
    cluster.create_topic("t", {0: (1,)})
    partition = TopicPartition("t", 0)
    epoch = cluster.brokers[1].broker_epoch

    def answer(code: ErrorCode) -> None:
        result = CommandResult(partition_errors={partition: code})
        cluster.submit(LeaderAndIsrResponse(1, epoch, result))

    answer(ErrorCode.KAFKA_STORAGE_ERROR)
    assert cluster.state("t").startswith("-1 [1] ")
    answer(ErrorCode.NONE)
    assert cluster.state("t").startswith("1 [1] ")


def test_the_late_answer_of_a_removed_replica_marks_nothing() -> None:
    """The replica may be added again; the broker's next error would be no news."""
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1,)})
    partition = TopicPartition("t", 0)
    result = CommandResult(partition_errors={partition: ErrorCode.KAFKA_STORAGE_ERROR})
    cluster.submit(LeaderAndIsrResponse(2, cluster.brokers[2].broker_epoch, result))
    assert cluster.controller.context.is_replica_online(2, partition)


def test_a_broker_whose_znode_is_broken_is_not_admitted() -> None:
    cluster = Cluster(1)
    run(cluster.store.zookeeper.create("/brokers/ids/9", b"[]"))
    cluster.settle()
    assert cluster.controller.context.broker_ids == [1]
    assert cluster.controller.is_active
