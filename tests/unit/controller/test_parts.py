"""Watches queue events, once."""

from __future__ import annotations

from kafkapy.controller.events import TopicChange
from kafkapy.zk.zookeeper import WatchEvent, WatchEventType
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run


def test_a_watch_set_twice_queues_one_event() -> None:
    cluster = Cluster(1)
    broker = cluster.brokers[1]
    parts = broker.controller._parts
    assert parts.watch(TopicChange()) == parts.watch(TopicChange())
    for _ in range(2):
        run(broker.store.topics.names(parts.watch(TopicChange())))
    run(cluster.store.zookeeper.create("/brokers/topics/t", b"{}"))
    assert list(broker.events) == [TopicChange()]
    parts.watch(TopicChange())(WatchEvent(WatchEventType.CREATED, "/x"))
    assert list(broker.events) == [TopicChange(), TopicChange()]


def test_update_metadata_without_partitions_still_names_the_live_brokers() -> None:
    cluster = Cluster(1, 2)
    cluster.brokers[1].controller._parts.send_update_metadata([2])
    assert cluster.take() == ["2 UpdateMetadata live=1,2"]
