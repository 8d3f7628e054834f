"""Notifications that a new controller finds."""

from __future__ import annotations

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.controller.events import AlterPartition, AlterPartitionItem
from kafkapy.zk.stores.znodes import (
    encode_log_dir_event,
    encode_partition_state,
    encode_partitions,
)
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run


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


def test_a_controller_that_finds_a_newer_ones_state_sends_nothing() -> None:
    """It was replaced while it read. What it knows would make a leader that has restarted lead on
    in its epoch, and write other records at the offsets of those that it lost.
    """
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.alter_isr("t", (2,))
    cluster.kill(2)
    state = "/brokers/topics/t/partitions/0/state"
    run(cluster.store.zookeeper.set(state, encode_partition_state(LeaderAndIsr(2, 0, (2,), 0, 9))))
    cluster.restart(2)
    cluster.brokers[1].die()
    cluster.take()
    cluster.settle()
    led = [line for line in cluster.take_of("LeaderAndIsr") if "epoch=0" in line]
    assert led == []


def test_after_the_epoch_was_deleted_partitions_get_leaders_again() -> None:
    """Each election begins a later one, until no state has a later one still."""
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    state = "/brokers/topics/t/partitions/0/state"
    run(cluster.store.zookeeper.set(state, encode_partition_state(LeaderAndIsr(-1, 3, (2,), 0, 5))))
    cluster.brokers[1].die()
    run(cluster.store.zookeeper.delete("/controller_epoch"))
    cluster.settle()
    assert cluster.state("t").startswith("2 [2] epoch=4")
    assert cluster.controller.context.epoch == 5


def test_a_write_for_another_reason_hides_no_restart() -> None:
    """The follower registered again before the write, but the controller ended before it knew. It
    may have lost records that the leader takes for replicated.
    """
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3, 1)})
    first, follower = cluster.brokers[1], cluster.brokers[3]
    wish = AlterPartitionItem("t", ZERO_UUID, 0, 0, (2, 3), 0, 0)
    epoch = cluster.brokers[2].broker_epoch
    first.events.append(AlterPartition(2, epoch, [wish], lambda _: None))
    follower.die()
    follower.restart()
    cluster.step(first)
    assert cluster.state("t").startswith("2 [2,3] epoch=0")
    first.die()
    cluster.settle()
    assert cluster.state("t").startswith("2 [2] epoch=1")


def test_a_restart_that_was_handled_costs_no_election_at_the_next_failover() -> None:
    """Also of a broker that was the last in sync, and was elected when it came back."""
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.kill(2)
    cluster.kill(3)
    cluster.restart(3)
    before = cluster.state("t")
    cluster.kill(1)
    assert cluster.state("t") == before
