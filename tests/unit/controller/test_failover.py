"""A new controller's steps, in order."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores.znodes import encode_log_dir_event, encode_partitions
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run


def test_brokers_learn_who_is_live_before_anything_else() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (3, 1, 2), 1: (2, 3, 1)})
    cluster.take()
    cluster.kill(1)
    assert cluster.take() == [
        "1 remove",
        "2 remove",
        "3 remove",
        "2 add",
        "3 add",
        "2 UpdateMetadata live=2,3",
        "3 UpdateMetadata live=2,3",
        # Every live replica is told its leader.
        "2 LeaderAndIsr t-0 leader=3 isr=3,1,2 epoch=0 version=0 replicas=3,1,2",
        "2 LeaderAndIsr t-1 leader=2 isr=2,3,1 epoch=0 version=0 replicas=2,3,1",
        "3 LeaderAndIsr t-0 leader=3 isr=3,1,2 epoch=0 version=0 replicas=3,1,2",
        "3 LeaderAndIsr t-1 leader=2 isr=2,3,1 epoch=0 version=0 replicas=2,3,1",
        "2 UpdateMetadata live=2,3 t-0:3 t-1:2",
        "3 UpdateMetadata live=2,3 t-0:3 t-1:2",
        # Those on the dead broker leave the ISRs.
        "2 LeaderAndIsr t-0 leader=3 isr=3,2 epoch=1 version=1 replicas=3,1,2",
        "2 LeaderAndIsr t-1 leader=2 isr=2,3 epoch=1 version=1 replicas=2,3,1",
        "3 LeaderAndIsr t-0 leader=3 isr=3,2 epoch=1 version=1 replicas=3,1,2",
        "3 LeaderAndIsr t-1 leader=2 isr=2,3 epoch=1 version=1 replicas=2,3,1",
        "2 UpdateMetadata live=2,3 t-0:3 t-1:2",
        "3 UpdateMetadata live=2,3 t-0:3 t-1:2",
    ]


def test_a_partition_without_leader_gets_one() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (1, 2, 3)})
    cluster.kill(1)
    assert cluster.state("t").startswith("2 [2,3] ")


def unnoticed_restart(cluster: Cluster, broker_id: int) -> None:
    """The controller, broker 1, goes, and another broker restarts before the next is elected."""
    cluster.brokers[1].die()
    cluster.brokers[broker_id].die()
    cluster.brokers[broker_id].restart()
    cluster.settle()


def test_a_leader_that_restarted_between_two_controllers_does_not_keep_its_epoch() -> None:
    """It may have lost the end of its log. At the same epoch it would write other records where
    its followers have the lost ones, and nobody could tell."""
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3, 1)})
    unnoticed_restart(cluster, 2)
    assert cluster.state("t") == "3 [3] epoch=1 version=1"


def test_a_follower_that_restarted_between_two_controllers_leaves_the_isr() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3, 1)})
    unnoticed_restart(cluster, 3)
    assert cluster.state("t") == "2 [2] epoch=1 version=1"


def test_the_only_live_member_of_the_isr_leads_on_after_a_restart_at_a_new_epoch() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 1), 1: (2,)})
    unnoticed_restart(cluster, 2)
    assert cluster.state("t", 0).startswith("2 [2] ")
    assert "epoch=0" not in cluster.state("t", 0)
    assert cluster.state("t", 1) == "2 [2] epoch=0 version=0", "nobody else could differ"


def test_old_notifications_are_dropped_and_waiting_elections_done() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.kill(2)
    cluster.restart(2)
    zookeeper = cluster.store.zookeeper
    cluster.brokers[1].die()
    run(zookeeper.create("/log_dir_event_notification/log_dir_event_7", encode_log_dir_event(2)))
    run(zookeeper.create("/isr_change_notification/isr_change_7", b"broken"))
    wanted = encode_partitions([TopicPartition("t", 0)])
    run(zookeeper.create("/admin/preferred_replica_election", wanted))
    cluster.settle()
    assert cluster.paths("/log_dir_event_notification/") == []
    assert cluster.paths("/isr_change_notification/") == []
    assert "/admin/preferred_replica_election" not in cluster.server.tree.nodes
    assert cluster.controller.is_active


def test_the_new_controller_watches_everything() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("before", {0: (2, 3)})
    cluster.kill(1)
    cluster.create_topic("after", {0: (3, 2)}, 8)
    assert cluster.state("after") == "3 [3,2] epoch=0 version=0"
    cluster.kill(3)
    assert cluster.state("after").startswith("2 [2] ")
    cluster.restart(3)
    cluster.delete_topic("before")
    assert not cluster.controller.context.has_topic("before")
