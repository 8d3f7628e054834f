"""Brokers die, return, bounce and lose log directories."""

from __future__ import annotations

from kafkapy.common.cluster_state import BrokerInfo, CommandResult, Endpoint
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import LeaderAndIsrResponse
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run


def test_leaders_move_to_the_next_live_isr_member_in_assignment_order() -> None:
    cluster = Cluster(1, 2, 3, 4)
    cluster.create_topic("t", {0: (2, 4, 3), 1: (3, 2, 4)})
    cluster.take()
    cluster.kill(2)
    assert cluster.state("t", 0) == "4 [4,3] epoch=1 version=1"
    assert cluster.state("t", 1) == "3 [3,4] epoch=1 version=1"
    assert cluster.take() == [
        "2 remove",
        # The election: the ISR loses its dead members at once.
        "3 LeaderAndIsr t-0 leader=4 isr=4,3 epoch=1 version=1 replicas=2,4,3",
        "4 LeaderAndIsr t-0 leader=4 isr=4,3 epoch=1 version=1 replicas=2,4,3",
        "1 UpdateMetadata live=1,3,4 t-0:4",
        "3 UpdateMetadata live=1,3,4 t-0:4",
        "4 UpdateMetadata live=1,3,4 t-0:4",
        # The dead replica goes Offline.
        "3 LeaderAndIsr t-0 leader=4 isr=4,3 epoch=1 version=1 replicas=2,4,3",
        "3 LeaderAndIsr t-1 leader=3 isr=3,4 epoch=1 version=1 replicas=3,2,4",
        "4 LeaderAndIsr t-0 leader=4 isr=4,3 epoch=1 version=1 replicas=2,4,3",
        "4 LeaderAndIsr t-1 leader=3 isr=3,4 epoch=1 version=1 replicas=3,2,4",
        "1 UpdateMetadata live=1,3,4 t-0:4 t-1:3",
        "3 UpdateMetadata live=1,3,4 t-0:4 t-1:3",
        "4 UpdateMetadata live=1,3,4 t-0:4 t-1:3",
    ]


def test_without_an_eligible_replica_there_is_no_leader_and_the_last_isr_member_stays() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3)})
    cluster.kill(3)
    cluster.kill(2)
    assert cluster.state("t").startswith("-1 [2] ")
    assert cluster.brokers[1].metadata.image.topics["t"].partitions[0].leader == -1

    cluster.restart(3)
    assert cluster.state("t").startswith("-1 [2] "), "3 is not in sync and may not lead"
    cluster.restart(2)
    assert cluster.state("t").startswith("2 [2] ")


def test_a_returning_broker_hears_all_partitions_and_follows() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.kill(2)
    cluster.take()
    cluster.restart(2)
    assert cluster.state("t").startswith("1 [1] ")
    assert cluster.take() == [
        "2 add",
        "1 UpdateMetadata live=1,2",
        "2 UpdateMetadata live=1,2 t-0:1",
        "2 LeaderAndIsr t-0 leader=1 isr=1 epoch=1 version=1 replicas=2,1",
        "1 UpdateMetadata live=1,2 t-0:1",
        "2 UpdateMetadata live=1,2 t-0:1",
    ]


def test_a_broker_that_was_gone_only_between_two_looks_has_bounced() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.take()
    cluster.brokers[2].die()
    cluster.brokers[2].restart()
    cluster.settle()
    assert cluster.state("t").startswith("1 [1] ")
    sent = cluster.take()
    assert sent[:2] == ["2 remove", "2 add"]
    assert "2 LeaderAndIsr t-0 leader=1 isr=1 epoch=1 version=1 replicas=2,1" in sent


def test_unclean_election_only_where_the_topic_allows_it() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("safe", {0: (2, 3)}, 1)
    cluster.create_topic("loose", {0: (2, 3)}, 2)
    configs = {"unclean.leader.election.enable": "true"}
    run(cluster.store.configs.set("topics", "loose", configs))
    cluster.kill(3)
    cluster.kill(2)
    cluster.restart(3)
    assert cluster.state("safe").startswith("-1 [2] ")
    assert cluster.state("loose").startswith("3 [3] ")
    assert cluster.controller.context.unclean_elections == 1
    assert '"leader_recovery_state":1' in cluster.data("/brokers/topics/loose/partitions/0/state")


def test_changed_endpoints_are_told_to_everybody() -> None:
    cluster = Cluster(1, 2)
    moved = BrokerInfo(2, (Endpoint("PLAINTEXT", "elsewhere", 9099),))
    for _ in range(2):
        cluster.take()
        run(cluster.brokers[2].store.brokers.update(moved, 0))
        cluster.settle()
        assert cluster.brokers[1].metadata.image.brokers[2] == moved
    assert cluster.take() == [], "the second time nothing changed"


def test_a_failed_log_directory_moves_leaders_and_its_return_clears_it() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1), 1: (2, 1)})
    failed = TopicPartition("t", 0)
    cluster.errors[2, failed] = ErrorCode.KAFKA_STORAGE_ERROR
    run(cluster.store.requests.notify_log_dir_failure(2))
    cluster.settle()
    assert cluster.state("t", 0).startswith("1 [1] ")
    assert cluster.state("t", 1).startswith("2 [2,1] ")
    image = cluster.brokers[1].metadata.image
    assert image.topics["t"].partitions[0].offline_replicas == (2,)
    assert cluster.paths("/log_dir_event_notification/") == []

    del cluster.errors[2, failed]
    cluster.kill(2)
    cluster.restart(2)
    assert cluster.controller.context.is_replica_online(2, failed)


def test_an_answer_from_an_earlier_life_of_a_broker_marks_nothing() -> None:
    """The broker failed a directory, was restarted on a sound disk, and leads again; the answer of
    the life before is handled only after the change of its registration."""
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    failed = TopicPartition("t", 0)
    earlier_epoch = cluster.brokers[2].broker_epoch
    cluster.kill(2)
    cluster.restart(2)
    cluster.catch_up()
    cluster.kill(1)
    cluster.restart(1)
    assert cluster.state("t").startswith("2 [2] ")
    result = CommandResult(partition_errors={failed: ErrorCode.KAFKA_STORAGE_ERROR})
    cluster.submit(LeaderAndIsrResponse(2, earlier_epoch, result))
    assert cluster.controller.context.is_replica_online(2, failed)
    assert cluster.state("t").startswith("2 [2] "), "the healthy replica keeps its partition"
    cluster.submit(LeaderAndIsrResponse(2, cluster.brokers[2].broker_epoch, result))
    assert not cluster.controller.context.is_replica_online(2, failed)


def test_a_broker_whose_znode_is_broken_is_not_admitted() -> None:
    cluster = Cluster(1)
    run(cluster.store.zookeeper.create("/brokers/ids/9", b"[]"))
    cluster.settle()
    assert cluster.controller.context.broker_ids == [1]
    assert cluster.controller.is_active
