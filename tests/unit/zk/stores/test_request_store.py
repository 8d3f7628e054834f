"""Requests for the controller and their removal."""

from __future__ import annotations

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores.fencing import ControllerMoved, Fence
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import encode_partitions, encode_reassignments
from kafkapy.zk.zookeeper import NodeExists, WatchEvent
from tests.harness.cores.znodes import run, server

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def prepared() -> tuple[ZkStore, Fence]:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    return store, run(store.election.elect(1, 0))


def test_topic_deletions() -> None:
    store, fence = prepared()
    seen: list[WatchEvent] = []
    assert run(store.requests.topic_deletions(seen.append)) == []
    run(store.requests.request_topic_deletion("t"))
    run(store.requests.request_topic_deletion("a"))
    with pytest.raises(NodeExists):
        run(store.requests.request_topic_deletion("t"))
    assert len(seen) == 1
    assert run(store.requests.topic_deletions()) == ["a", "t"]
    assert run(store.requests.is_queued_for_deletion("t"))
    run(store.requests.remove_topic_deletions(["t", "gone"], fence))
    assert not run(store.requests.is_queued_for_deletion("t"))


def test_preferred_elections() -> None:
    store, fence = prepared()
    seen: list[WatchEvent] = []
    assert run(store.requests.preferred_elections(seen.append)) is None
    path = "/admin/preferred_replica_election"
    run(store.zookeeper.create(path, encode_partitions([T0])))
    assert len(seen) == 1
    assert run(store.requests.preferred_elections()) == [T0]
    run(store.requests.remove_preferred_elections(fence))
    assert run(store.zookeeper.exists(path)) is None


def test_an_empty_preferred_election_is_not_none() -> None:
    store, _ = prepared()
    path = "/admin/preferred_replica_election"
    run(store.zookeeper.create(path, encode_partitions([])))
    assert run(store.requests.preferred_elections()) == []
    run(store.zookeeper.set(path, b"broken"))
    assert run(store.requests.preferred_elections()) is None


def test_reassignments() -> None:
    store, fence = prepared()
    seen: list[WatchEvent] = []
    assert run(store.requests.reassignments(seen.append)) == {}
    run(store.requests.remove_reassignments(lambda row, target: True, fence))
    path, targets = "/admin/reassign_partitions", {T0: (1, 2), T1: (2,)}
    run(store.zookeeper.create(path, encode_reassignments(targets)))
    assert len(seen) == 1
    assert run(store.requests.reassignments()) == targets
    run(store.requests.remove_reassignments(lambda row, target: target == (9,), fence))
    stat = run(store.zookeeper.exists(path))
    assert stat is not None
    assert stat.version == 0, "nothing to write"
    with pytest.raises(ControllerMoved):
        run(store.requests.remove_reassignments(lambda row, target: True, Fence(0, 0)))
    run(store.requests.remove_reassignments(lambda row, target: row == T0, fence))
    assert run(store.requests.reassignments()) == {T1: (2,)}
    run(store.requests.remove_reassignments(lambda row, target: target == (2,), fence))
    assert run(store.zookeeper.exists(path)) is None


def test_a_reassignment_that_is_added_meanwhile_is_kept() -> None:
    store, fence = prepared()
    path = "/admin/reassign_partitions"
    before = {T0: (1,), T1: (2,)}
    added = {**before, TopicPartition("u", 0): (3,)}
    run(store.zookeeper.create(path, encode_reassignments(before)))

    def is_over(row: TopicPartition, _: tuple[int, ...]) -> bool:
        if run(store.requests.reassignments()) != added:
            run(store.zookeeper.set(path, encode_reassignments(added)))
        return row == T0

    run(store.requests.remove_reassignments(is_over, fence))
    assert run(store.requests.reassignments()) == {T1: (2,), TopicPartition("u", 0): (3,)}


def test_notifications_are_taken_once() -> None:
    store, fence = prepared()
    for broker_id in (3, 1, 3):
        run(store.requests.notify_log_dir_failure(broker_id))
    run(store.zookeeper.create("/log_dir_event_notification/log_dir_event_x", b"broken"))
    assert run(store.requests.take_log_dir_events(fence)) == [1, 3]
    assert run(store.requests.take_log_dir_events(fence)) == []
    node = "/isr_change_notification/isr_change_0000000000"
    run(store.zookeeper.create(node, encode_partitions([T0, T0])))
    assert run(store.requests.take_isr_changes(fence)) == [T0]
    assert run(store.zookeeper.children("/isr_change_notification")) == []


def test_removals_are_fenced() -> None:
    store, _ = prepared()
    stale = Fence(0, 0)
    run(store.requests.request_topic_deletion("t"))
    run(store.requests.notify_log_dir_failure(1))
    with pytest.raises(ControllerMoved):
        run(store.requests.remove_topic_deletions(["t"], stale))
    with pytest.raises(ControllerMoved):
        run(store.requests.take_log_dir_events(stale))
    assert run(store.requests.topic_deletions()) == ["t"]


def test_a_tools_wishes_are_what_the_controller_reads() -> None:
    requests = ZkStore(server().connect()).requests
    wish = {TopicPartition("t", 0): (1, 2)}
    run(requests.request_reassignments(wish))
    assert run(requests.reassignments()) == wish
    with pytest.raises(NodeExists):
        run(requests.request_reassignments(wish))
    run(requests.request_preferred_elections(list(wish)))
    assert run(requests.preferred_elections()) == list(wish)
    with pytest.raises(NodeExists):
        run(requests.request_preferred_elections(list(wish)))
