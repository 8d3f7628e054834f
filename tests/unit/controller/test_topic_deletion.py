"""Late answers to the deletion of a topic."""

from __future__ import annotations

from kafkapy.common.cluster_state import CommandResult, StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ErrorCode
from kafkapy.controller.events import StopReplicaResponse
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.znodes import run


def test_an_answer_for_an_earlier_life_of_a_broker_halts_nothing() -> None:
    """A command that waited for a dead broker reaches its next life, which refuses it; that is
    known only after this life was told to delete as well."""
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.silent = {2}
    cluster.delete_topic("t")
    epoch = cluster.brokers[2].broker_epoch

    def answer(broker_epoch: int, error: ErrorCode) -> None:
        command = StopReplicaCommand(1, 1, broker_epoch, [StopReplicaPartition("t", 0, -2, True)])
        cluster.submit(StopReplicaResponse(2, command, CommandResult(error, {})))

    answer(epoch - 1, ErrorCode.STALE_BROKER_EPOCH)
    assert cluster.controller.context.topics_ineligible == set()
    answer(epoch, ErrorCode.NONE)
    assert not cluster.controller.context.has_topic("t")
    assert cluster.paths("/brokers/topics/") == []


def test_a_topic_whose_znode_names_a_replica_twice_is_deleted() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 1)})
    cluster.delete_topic("t")
    assert cluster.paths("/brokers/topics") == ["/brokers/topics"]
    assert cluster.controller.context.topics == []


def test_a_controller_that_dies_at_any_step_leaves_no_znode_of_the_topic() -> None:
    for steps in range(1, 100):
        cluster = Cluster(1, 2)
        cluster.create_topic("t", {0: (1, 2)})
        run(cluster.store.configs.set("topics", "t", {"retention.ms": "1000"}))
        dying = cluster.brokers[1]
        dying.steps, dying.dies_after = 0, steps
        cluster.delete_topic("t")
        if died := dying.dies_after is None:
            cluster.restart(1)
            cluster.settle()
        assert [path for path in cluster.server.tree.nodes if "t" in path.split("/")] == [], steps
        if not died:
            break
    else:
        raise AssertionError("the deletion never ends")
