"""Notifications that a new controller finds."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores.znodes import encode_log_dir_event, encode_partitions
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
