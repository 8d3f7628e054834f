"""The controller's lines of state-change.log, letter for letter."""

from __future__ import annotations

import logging

import pytest

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.controller.state_change_log import TRACE, StateChangeLog
from tests.harness.cores.controllers import Cluster


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(TRACE, "state.change.logger")
    return caplog


def test_a_topic_is_created_and_loses_its_leader(lines: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(1, 2)
    lines.clear()
    cluster.create_topic("t", {0: (2, 1)})
    cluster.kill(2)
    said = [record.getMessage() for record in lines.records if record.levelno >= logging.INFO]
    prefix = "[Controller id=1 epoch=1] "
    assert [line.removeprefix(prefix) for line in said[:6]] == [
        "Changed partition t-0 state from NonExistentPartition to NewPartition with assigned"
        " replicas 2,1",
        "Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr("
        "leader=2, leaderEpoch=0, isrWithBrokerEpoch=List(BrokerState(brokerId=2, brokerEpoch=-1),"
        " BrokerState(brokerId=1, brokerEpoch=-1)), leaderRecoveryState=RECOVERED,"
        " partitionEpoch=0)",
        "Sending LeaderAndIsr request to broker 1 with 0 become-leader and 1 become-follower"
        " partitions",
        "Sending LeaderAndIsr request to broker 2 with 1 become-leader and 0 become-follower"
        " partitions",
        "Sending UpdateMetadata request to brokers HashSet(1, 2) for 1 partitions",
        "Changed partition t-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr("
        "leader=1, leaderEpoch=1, isrWithBrokerEpoch=List(BrokerState(brokerId=1, brokerEpoch=-1))"
        ", leaderRecoveryState=RECOVERED, partitionEpoch=1)",
    ]


def test_a_follower_leaves_the_isr(lines: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    lines.clear()
    cluster.kill(2)
    assert (
        "[Controller id=1 epoch=1] Partition t-0 state changed to (Leader:1,ISR:1,"
        "LeaderRecoveryState:RECOVERED,LeaderEpoch:1,ZkVersion:1,ControllerEpoch:1) after removing"
        " replica 2 from the ISR as part of transition to OfflineReplica"
    ) in lines.messages
    assert (
        "[Controller id=1 epoch=1] Changed state of replica 2 for partition t-0 from OnlineReplica"
        " to OfflineReplica"
    ) in lines.messages


def test_failures_name_partition_and_states(lines: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", {0: (9,)})
    (failure,) = [r.getMessage() for r in lines.records if r.levelno == logging.ERROR]
    assert failure == (
        "[Controller id=1 epoch=1] Controller 1 epoch 1 failed to change state for partition t-0"
        " from NewPartition to OnlinePartition: assigned replicas are [9], live brokers are [1]."
        " No assigned replica is alive."
    )


def test_the_replicas_of_a_partition_on_the_move_are_told(
    lines: pytest.LogCaptureFixture,
) -> None:
    state = LeaderAndIsr(1, 5, (1, 2), 6, 3, leader_recovery_state=1)
    assignment = ReplicaAssignment((1, 2, 3), adding=(3,), removing=(1,))
    StateChangeLog(4, 3).reassigning(TopicPartition("t", 0), state, assignment)
    assert lines.messages == [
        "[Controller id=4 epoch=3] Sent LeaderAndIsr request (Leader:1,ISR:1,2,LeaderRecoveryState:"
        "RECOVERING,LeaderEpoch:5,ZkVersion:6,ControllerEpoch:3) with new replica assignment"
        " ReplicaAssignment(replicas=1,2,3, addingReplicas=3, removingReplicas=1) to leader 1 for"
        " partition being reassigned t-0"
    ]
