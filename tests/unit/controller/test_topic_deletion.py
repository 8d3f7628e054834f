"""Deleting topics: the way through, and every way it can halt."""

from __future__ import annotations

from kafkapy.common.cluster_state import CommandResult, StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import StopReplicaResponse
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run

T0 = TopicPartition("t", 0)


def prepared(*broker_ids: int) -> Cluster:
    cluster = Cluster(*broker_ids)
    cluster.create_topic("t", {0: (1, 2)})
    run(cluster.store.configs.set("topics", "t", {"retention.ms": "1"}))
    cluster.take()
    return cluster


def is_gone(cluster: Cluster) -> bool:
    left = [p for p in cluster.server.tree.nodes if "/t" in p and p.split("/")[-1] == "t"]
    return not left and not cluster.controller.context.has_topic("t")


def test_a_topic_goes_step_by_step() -> None:
    cluster = prepared(1, 2)
    cluster.delete_topic("t")
    assert cluster.take() == [
        "1 UpdateMetadata live=1,2 t-0:-2",
        "2 UpdateMetadata live=1,2 t-0:-2",
        "1 StopReplica t-0 epoch=-2",
        "2 StopReplica t-0 epoch=-2",
        "1 StopReplica t-0 epoch=-2 delete",
        "2 StopReplica t-0 epoch=-2 delete",
    ]
    assert is_gone(cluster)
    assert "t" not in cluster.brokers[1].metadata.image.topics


def test_the_name_can_be_used_again() -> None:
    cluster = prepared(1, 2)
    cluster.delete_topic("t")
    cluster.create_topic("t", {0: (2,)}, 8)
    assert cluster.state("t") == "2 [2] epoch=0 version=0"
    cluster.delete_topic("t")
    assert is_gone(cluster)


def test_a_dead_replica_halts_until_its_broker_returns() -> None:
    cluster = prepared(1, 2, 3)
    cluster.kill(2)
    cluster.delete_topic("t")
    assert not is_gone(cluster)
    assert cluster.controller.context.topics_ineligible == {"t"}
    assert "t" not in cluster.brokers[1].metadata.image.topics, "nobody serves it meanwhile"
    cluster.restart(2)
    assert is_gone(cluster)


def test_a_broker_that_dies_before_it_answers_halts_too() -> None:
    cluster = prepared(1, 2)
    cluster.silent = {2}
    cluster.delete_topic("t")
    cluster.kill(2)
    assert not is_gone(cluster)
    cluster.silent = set()
    cluster.restart(2)
    assert is_gone(cluster)


def test_a_refused_deletion_is_tried_again_when_the_broker_returns() -> None:
    cluster = prepared(1, 2)
    cluster.errors[2, T0] = ErrorCode.KAFKA_STORAGE_ERROR
    cluster.delete_topic("t")
    assert not is_gone(cluster)
    del cluster.errors[2, T0]
    cluster.kill(2)
    cluster.restart(2)
    assert is_gone(cluster)


def test_an_answer_for_an_earlier_life_of_a_broker_halts_nothing() -> None:
    """A command that waited for a dead broker reaches its next life, which refuses it; that is
    known only after this life was told to delete as well."""
    cluster = prepared(1, 2)
    cluster.silent = {2}
    cluster.delete_topic("t")
    epoch = cluster.brokers[2].broker_epoch

    def answer(broker_epoch: int, error: ErrorCode) -> None:
        command = StopReplicaCommand(1, 1, broker_epoch, [StopReplicaPartition("t", 0, -2, True)])
        cluster.submit(StopReplicaResponse(2, command, CommandResult(error, {})))

    answer(epoch - 1, ErrorCode.STALE_BROKER_EPOCH)
    assert cluster.controller.context.topics_ineligible == set()
    answer(epoch, ErrorCode.NONE)
    assert is_gone(cluster)


def test_a_new_controller_resumes() -> None:
    cluster = prepared(1, 2, 3)
    cluster.silent = {1, 2}
    cluster.delete_topic("t")
    cluster.silent = set()
    cluster.kill(1)
    assert cluster.controller.context.topics_ineligible == {"t"}
    cluster.restart(1)
    assert is_gone(cluster)


def test_useless_requests_are_removed() -> None:
    cluster = prepared(1, 2)
    cluster.delete_topic("unknown")
    assert cluster.paths("/admin/delete_topics/") == []
    cluster.brokers[1].config.delete_topic_enable = False
    cluster.delete_topic("t")
    assert cluster.paths("/admin/delete_topics/") == []
    assert cluster.controller.context.has_topic("t")


def test_requests_found_at_failover_with_deletion_disabled_are_removed() -> None:
    cluster = prepared(1, 2)
    cluster.brokers[2].config.delete_topic_enable = False
    cluster.brokers[1].die()
    run(cluster.store.requests.request_topic_deletion("t"))
    cluster.settle()
    assert cluster.paths("/admin/delete_topics/") == []
    assert cluster.controller.context.has_topic("t")
