"""Election, fencing and resignation of controllers over one ZooKeeper."""

from __future__ import annotations

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import ErrorCode
from kafkapy.controller import events
from kafkapy.controller.controller import NO_CONTROLLER
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run


def test_the_first_broker_is_elected_and_writes_kafkas_nodes() -> None:
    cluster = Cluster(1, 2)
    assert [b.controller.is_active for b in cluster.brokers.values()] == [True, False]
    assert [b.controller.controller_id for b in cluster.brokers.values()] == [1, 1]
    assert cluster.data("/controller") == (
        '{"version":2,"brokerid":1,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    )
    assert cluster.data("/controller_epoch") == "1"
    assert cluster.data("/feature") == '{"version":2,"status":1,"features":{}}'


def test_a_controller_whose_session_expired_resigns_and_may_win_again() -> None:
    cluster = Cluster(1)
    broker = cluster.brokers[1]
    broker.die()
    assert broker.controller.controller_id == NO_CONTROLLER
    assert broker.controller.context.live_brokers == {}
    cluster.restart(1)
    assert broker.controller.is_active
    assert cluster.data("/controller_epoch") == "2"


def test_a_stale_controller_writes_nothing_and_resigns() -> None:
    """A paused process: its session expires, another wins, then it acts on an old event."""
    cluster = Cluster(1, 2)
    stale = cluster.brokers[1]
    run(cluster.store.zookeeper.delete("/controller"))
    run(cluster.brokers[2].controller.handle(events.ControllerChange()))
    assert cluster.brokers[2].controller.is_active
    assert stale.controller.is_active, "it has not heard yet"
    stale.events.clear()
    cluster.take()

    topic = TopicDescription("t", topic_id(1), {0: (1, 2)})
    run(cluster.store.topics.create(topic))
    run(stale.controller.handle(events.TopicChange()))

    assert not stale.controller.is_active
    assert cluster.paths("/brokers/topics/t/") == []
    assert cluster.take_of("LeaderAndIsr") == []
    cluster.settle()
    assert cluster.state("t") == "1 [1,2] epoch=0 version=0"
    assert '"controller_epoch":2' in cluster.data("/brokers/topics/t/partitions/0/state")


def test_events_for_a_controller_reach_only_the_active_one() -> None:
    cluster = Cluster(1, 2)
    replies: list[object] = []
    idle = cluster.brokers[2].controller
    run(idle.handle(events.AlterPartition(2, 0, [], replies.append)))
    run(idle.handle(events.ControlledShutdown(2, -1, replies.append)))
    run(idle.handle(events.ElectLeaders(None, events.ElectionType.PREFERRED, replies.append)))
    assert replies == [
        events.AlterPartitionResult(ErrorCode.NOT_CONTROLLER),
        events.ControlledShutdownResult(ErrorCode.STALE_CONTROLLER_EPOCH),
        ErrorCode.NOT_CONTROLLER,
    ]


def test_a_controller_that_cannot_take_over_steps_down() -> None:
    cluster = Cluster(1)
    cluster.kill(1)
    cluster.brokers[1].restart()
    run(cluster.store.zookeeper.delete("/log_dir_event_notification"))
    broker = cluster.brokers[1]
    run(broker.controller.handle(broker.events.popleft()))
    assert not broker.controller.is_active
    assert "/controller" not in cluster.server.tree.nodes
    run(cluster.store.zookeeper.create("/log_dir_event_notification", b""))
    cluster.settle()
    assert broker.controller.is_active


def test_shutdown_resigns() -> None:
    cluster = Cluster(1)
    run(cluster.brokers[1].controller.handle(events.Shutdown()))
    assert not cluster.brokers[1].controller.is_active


def test_another_broker_takes_over_before_the_session_of_the_stopping_one_ends() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    stopping, other = cluster.brokers[1], cluster.brokers[2]
    cluster.submit(events.ControlledShutdown(1, stopping.broker_epoch, lambda _: None))
    run(stopping.controller.handle(events.Shutdown()))
    stopping.events.clear()
    cluster.settle()
    assert not stopping.controller.is_active
    assert other.controller.is_active
    assert run(cluster.store.brokers.ids()) == [1, 2]
    assert cluster.state("t") == "2 [2] epoch=1 version=1"


def test_a_stopping_controller_that_was_replaced_leaves_the_next_one_in_office() -> None:
    cluster = Cluster(1, 2)
    stale = cluster.brokers[1]
    run(cluster.store.zookeeper.delete("/controller"))
    run(cluster.brokers[2].controller.handle(events.ControllerChange()))
    run(stale.controller.handle(events.Shutdown()))
    assert not stale.controller.is_active
    assert run(cluster.store.election.controller_id()) == 2
