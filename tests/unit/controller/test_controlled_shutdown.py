"""A broker that stops politely hands its leaders over first."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import ControlledShutdown, ControlledShutdownResult
from tests.harness.cores.controllers import Cluster


def shut_down(cluster: Cluster, broker_id: int, epoch: int = -1) -> ControlledShutdownResult:
    replies: list[ControlledShutdownResult] = []
    cluster.submit(ControlledShutdown(broker_id, epoch, replies.append))
    assert len(replies) == 1
    return replies[0]


def test_leaders_move_and_followed_isrs_shrink() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3), 1: (3, 2), 2: (2,)})
    cluster.take()
    assert shut_down(cluster, 2) == ControlledShutdownResult()
    assert cluster.state("t", 0) == "3 [3] epoch=1 version=1"
    assert cluster.state("t", 1) == "3 [3] epoch=1 version=1"
    assert cluster.state("t", 2) == "2 [2] epoch=0 version=0", "nobody else has it"
    sent = cluster.take()
    assert "2 LeaderAndIsr t-0 leader=3 isr=3 epoch=1 version=1 replicas=2,3" in sent
    assert "2 StopReplica t-1 epoch=0" in sent
    assert sent[-2] == "3 UpdateMetadata live=1,2,3 t-1:3", "it is live until it goes"


def test_what_cannot_move_is_named() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.kill(3)
    assert shut_down(cluster, 2).remaining == [TopicPartition("t", 0)]
    cluster.restart(3)
    assert shut_down(cluster, 2).remaining == [TopicPartition("t", 0)], "3 is not in sync"


def test_it_comes_back_as_a_whole_broker() -> None:
    cluster = Cluster(1, 2)
    shut_down(cluster, 2)
    assert cluster.controller.context.shutting_down == {2}
    cluster.kill(2)
    assert cluster.controller.context.shutting_down == set()


def test_strangers_and_ghosts() -> None:
    cluster = Cluster(1, 2)
    assert shut_down(cluster, 9).error is ErrorCode.BROKER_NOT_AVAILABLE
    stale = cluster.brokers[2].broker_epoch - 1
    assert shut_down(cluster, 2, stale).error is ErrorCode.STALE_BROKER_EPOCH
    assert cluster.controller.context.shutting_down == set()
