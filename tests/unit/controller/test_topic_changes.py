"""Topics created, grown and deleted: exact znodes and exact commands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.zk.stores.topic_store import TopicStore
from kafkapy.zk.zookeeper import Watch
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run


def test_a_new_topic_gets_its_znodes_and_everybody_is_told() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1), 1: (1, 2)})
    assert cluster.data("/brokers/topics/t") == (
        '{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAABw",'
        '"partitions":{"0":[2,1],"1":[1,2]},"adding_replicas":{},"removing_replicas":{}}'
    )
    assert cluster.paths("/brokers/topics/t/") == [
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/1/state",
    ]
    assert cluster.data("/brokers/topics/t/partitions/0/state") == (
        '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
    )
    assert cluster.take() == [
        "1 LeaderAndIsr t-0 leader=2 isr=2,1 epoch=0 version=0 replicas=2,1 new",
        "1 LeaderAndIsr t-1 leader=1 isr=1,2 epoch=0 version=0 replicas=1,2 new",
        "2 LeaderAndIsr t-0 leader=2 isr=2,1 epoch=0 version=0 replicas=2,1 new",
        "2 LeaderAndIsr t-1 leader=1 isr=1,2 epoch=0 version=0 replicas=1,2 new",
        "1 UpdateMetadata live=1,2 t-0:2 t-1:1",
        "2 UpdateMetadata live=1,2 t-0:2 t-1:1",
    ]
    image = cluster.brokers[2].metadata.image
    assert image.topics["t"].topic_id == topic_id(7)
    assert image.topics["t"].partitions[0].leader == 2


def test_a_dead_replica_is_not_in_the_first_isr() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (3, 2, 1)})
    assert cluster.state("t") == "2 [2,1] epoch=0 version=0"
    image = cluster.brokers[1].metadata.image
    assert image.topics["t"].partitions[0].offline_replicas == (3,)


def test_a_topic_without_live_replicas_waits_for_one() -> None:
    cluster = Cluster(1, 2)
    cluster.kill(2)
    cluster.create_topic("t", {0: (2,)})
    assert cluster.paths("/brokers/topics/t/partitions/0") == []
    cluster.restart(2)
    assert cluster.state("t") == "2 [2] epoch=0 version=0"


def test_new_partitions_go_the_same_way() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.take()
    grown = TopicDescription("t", topic_id(7), {0: (1, 2), 1: (2, 1)})
    run(cluster.store.topics.update(grown))
    cluster.settle()
    assert cluster.state("t", 1) == "2 [2,1] epoch=0 version=0"
    assert cluster.take_of("LeaderAndIsr") == [
        "1 LeaderAndIsr t-1 leader=2 isr=2,1 epoch=0 version=0 replicas=2,1 new",
        "2 LeaderAndIsr t-1 leader=2 isr=2,1 epoch=0 version=0 replicas=2,1 new",
    ]
    run(cluster.store.topics.update(replace(grown, assignment={**grown.assignment, 2: (1,)})))
    cluster.settle()
    assert cluster.state("t", 2) == "1 [1] epoch=0 version=0"


def test_a_topic_without_an_id_gets_one() -> None:
    cluster = Cluster(1)
    run(cluster.store.topics.create(TopicDescription("old", ZERO_UUID, {0: (1,)})))
    cluster.settle()
    stored = run(cluster.store.topics.get("old"))
    assert stored is not None
    assert not stored.topic_id.is_zero
    assert cluster.brokers[1].metadata.image.topics["old"].topic_id == stored.topic_id


def test_partitions_added_to_a_topic_being_deleted_are_taken_back() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.silent = {1, 2}
    cluster.delete_topic("t")
    grown = TopicDescription("t", topic_id(7), {0: (1, 2), 1: (2, 1)})
    run(cluster.store.topics.update(grown))
    cluster.settle()
    stored = run(cluster.store.topics.get("t"))
    assert stored is not None
    assert stored.assignment == {0: (1, 2)}


def test_a_broken_topic_is_left_alone_and_the_others_go_on() -> None:
    cluster = Cluster(1)
    run(cluster.store.zookeeper.create("/brokers/topics/broken", b"{not json"))
    run(cluster.store.zookeeper.create("/brokers/topics/empty", b'{"partitions":{"0":[]}}'))
    cluster.create_topic("t", {0: (1,)})
    assert cluster.state("t") == "1 [1] epoch=0 version=0"
    assert cluster.data("/brokers/topics/broken") == "{not json"
    assert cluster.controller.context.topics == ["t"]


def test_the_same_events_give_the_same_commands() -> None:
    def trace() -> list[str]:
        cluster = Cluster(*range(1, 6))
        for number in range(8):
            replicas = tuple((number + i) % 5 + 1 for i in range(3))
            cluster.create_topic(f"topic-{number}", {0: replicas, 1: replicas[::-1]}, number + 1)
        cluster.kill(3)
        cluster.delete_topic("topic-4")
        cluster.restart(3)
        return cluster.take()

    assert trace() == trace()


def test_a_new_topic_is_looked_for_once_among_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousandth topic must not cost a thousand times a thousand comparisons."""
    cluster = Cluster(1)
    count = 100
    for number in range(count):
        cluster.create_topic(f"t{number}", {0: (1,)})
    real = TopicStore.names
    Name = counting_comparisons(str)

    async def names(store: TopicStore, watch: Watch | None = None) -> list[str]:
        return [Name(name) for name in await real(store, watch)]

    monkeypatch.setattr(TopicStore, "names", names)
    cluster.create_topic("new", {0: (1,)})
    assert cluster.state("new") == "1 [1] epoch=0 version=0"
    each = Name.times / count
    assert 0 < each < 10, f"{each:.1f} comparisons for each topic that was there already"
