"""AlterPartition: every check in order, the write, and its repetition."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import RECOVERED, RECOVERING, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.controller.events import AlterPartition, AlterPartitionItem, AlterPartitionResult
from kafkapy.zk.stores.znodes import encode_partition_state, encode_partitions
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run


def item(
    isr: tuple[int, ...] = (1,),
    *,
    topic: str = "t",
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    recovery: int = RECOVERED,
) -> AlterPartitionItem:
    return AlterPartitionItem(topic, ZERO_UUID, 0, leader_epoch, isr, recovery, partition_epoch)


def prepared() -> Cluster:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2, 3)})
    cluster.take()
    return cluster


def alter(
    cluster: Cluster, wanted: AlterPartitionItem, broker_epoch: int | None = None
) -> AlterPartitionResult:
    replies: list[AlterPartitionResult] = []
    epoch = cluster.brokers[1].broker_epoch if broker_epoch is None else broker_epoch
    cluster.submit(AlterPartition(1, epoch, [wanted], replies.append))
    assert len(replies) == 1
    return replies[0]


def test_a_shrink_is_written_and_told_without_a_new_leader_epoch() -> None:
    cluster = prepared()
    result = alter(cluster, item((1, 3)))
    assert result.rows == [(item((1, 3)), ErrorCode.NONE, LeaderAndIsr(1, 0, (1, 3), 1, 1))]
    assert cluster.state("t") == "1 [1,3] epoch=0 version=1"
    assert cluster.take() == [f"{b} UpdateMetadata live=1,2,3 t-0:1" for b in (1, 2, 3)]


def test_repeating_it_succeeds_without_a_write() -> None:
    cluster = prepared()
    alter(cluster, item((1, 3)))
    cluster.take()
    result = alter(cluster, item((1, 3)))
    assert result.rows[0][1:] == (ErrorCode.NONE, LeaderAndIsr(1, 0, (1, 3), 1, 1))
    assert cluster.state("t") == "1 [1,3] epoch=0 version=1"
    assert cluster.take() == []


def test_by_topic_id() -> None:
    cluster = prepared()
    by_id = item((1, 2))._replace(topic="", topic_id=topic_id(7))
    assert alter(cluster, by_id).rows[0][1] is ErrorCode.NONE
    unknown = by_id._replace(topic_id=topic_id(8))
    assert alter(cluster, unknown).rows[0][1] is ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (item(topic="x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (item(partition_epoch=1), ErrorCode.NOT_CONTROLLER),
        (item(leader_epoch=1), ErrorCode.NOT_CONTROLLER),
        (item(leader_epoch=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (item(partition_epoch=-1), ErrorCode.INVALID_UPDATE_VERSION),
        (item((1, 2), recovery=RECOVERING), ErrorCode.INVALID_REQUEST),
        (item((1,), recovery=RECOVERING), ErrorCode.INVALID_REQUEST),
        (item(()), ErrorCode.INVALID_REQUEST),
        (item((1, 9)), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_refusals(wanted: AlterPartitionItem, error: ErrorCode) -> None:
    cluster = prepared()
    assert alter(cluster, wanted).rows == [(wanted, error, None)]
    assert cluster.state("t") == "1 [1,2,3] epoch=0 version=0"


def test_a_broker_of_an_earlier_life_is_refused_as_a_whole() -> None:
    cluster = prepared()
    result = alter(cluster, item(), cluster.brokers[1].broker_epoch - 1)
    assert result == AlterPartitionResult(ErrorCode.STALE_BROKER_EPOCH)


def test_a_broker_that_is_shutting_down_is_not_eligible() -> None:
    cluster = prepared()
    cluster.controller.context.shutting_down.add(3)
    assert alter(cluster, item((1, 3))).rows[0][1] is ErrorCode.INELIGIBLE_REPLICA


def test_a_write_that_lost_the_race_is_an_invalid_version() -> None:
    cluster = prepared()
    path = "/brokers/topics/t/partitions/0/state"
    other = encode_partition_state(LeaderAndIsr(1, 0, (1, 2), 0, 1))
    run(cluster.store.zookeeper.set(path, other))
    assert alter(cluster, item((1, 3))).rows[0][1] is ErrorCode.INVALID_UPDATE_VERSION


def test_what_an_older_leader_wrote_itself_is_read_and_told() -> None:
    cluster = prepared()
    path = "/brokers/topics/t/partitions/0/state"
    run(cluster.store.zookeeper.set(path, encode_partition_state(LeaderAndIsr(1, 0, (1, 2), 0, 1))))
    changed = encode_partitions([TopicPartition("t", 0), TopicPartition("gone", 0)])
    run(cluster.store.zookeeper.create("/isr_change_notification/isr_change_0", changed))
    cluster.settle()
    assert cluster.controller.context.leadership[TopicPartition("t", 0)].isr == (1, 2)
    assert cluster.take() == [f"{b} UpdateMetadata live=1,2,3 t-0:1" for b in (1, 2, 3)]
    assert cluster.paths("/isr_change_notification/") == []
