"""Topics created, grown and deleted: exact znodes and exact commands."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.controller.events import TopicDeletionChange
from kafkapy.zk.stores.request_store import RequestStore
from kafkapy.zk.stores.topic_store import TopicStore
from kafkapy.zk.zookeeper import Watch
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.controllers import Cluster, topic_id
from tests.harness.cores.znodes import run


def test_a_topic_without_an_id_gets_one() -> None:
    cluster = Cluster(1)
    run(cluster.store.topics.create(TopicDescription("old", ZERO_UUID, {0: (1,)})))
    cluster.settle()
    stored = run(cluster.store.topics.get("old"))
    assert stored is not None
    assert not stored.topic_id.is_zero
    assert cluster.brokers[1].metadata.image.topics["old"].topic_id == stored.topic_id


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


@pytest.mark.parametrize("is_new_controller", [False, True])
def test_a_topic_is_deleted_whose_creation_was_not_noticed_yet(
    monkeypatch: pytest.MonkeyPatch, is_new_controller: bool
) -> None:
    """The controller was busy: it sees the request before the topic."""
    cluster = Cluster(1)
    real = RequestStore.topic_deletions

    async def overtaken(store: RequestStore, watch: Watch | None = None) -> list[str]:
        monkeypatch.undo()
        await cluster.store.topics.create(TopicDescription("t", topic_id(7), {0: (1,)}))
        await cluster.store.requests.request_topic_deletion("t")
        return await real(store, watch)

    monkeypatch.setattr(RequestStore, "topic_deletions", overtaken)
    if is_new_controller:
        cluster.restart(1)
    else:
        cluster.submit(TopicDeletionChange())
    cluster.settle()
    assert run(cluster.store.topics.names()) == []
    assert run(cluster.store.requests.topic_deletions()) == []
    assert "t" not in cluster.brokers[1].metadata.image.topics
