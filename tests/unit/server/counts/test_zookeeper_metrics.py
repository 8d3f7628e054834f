"""Counts of a ZooKeeper session's state changes, by its states."""

from __future__ import annotations

from kafkapy.server.counts.zookeeper_metrics import STATES, ZooKeeperMetrics
from kafkapy.zk.kazoo.session import ConnectionState


def test_the_states_are_those_of_the_session() -> None:
    assert list(STATES) == [state.value for state in ConnectionState]


def test_a_session_that_is_lost_and_made_again() -> None:
    metrics = ZooKeeperMetrics()
    assert metrics.state is None
    story = "CONNECTING CONNECTED CONNECTING CONNECTING CONNECTED CONNECTING EXPIRED AUTH_FAILED"
    for state in story.split():
        metrics.set_state(state)
    assert metrics.counts == {
        "zookeeperdisconnects": 2,
        "zookeepersyncconnects": 2,
        "zookeeperexpires": 1,
        "zookeeperauthfailures": 1,
    }
    metrics.set_state("CLOSED")
    assert metrics.state == "CLOSED"
