"""Topics and partition states: conditional, fenced, and deleted in an order that resumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafkapy.common.cluster_state import LeaderAndIsr, TopicDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores import topic_store
from kafkapy.zk.stores.fencing import ControllerMoved, Fence
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.topic_store import TopicStore
from kafkapy.zk.zookeeper import BadVersion, NodeExists, NoNode, Op, OpResult, ZooKeeper
from tests.harness.cores.controllers import topic_id
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STATE = LeaderAndIsr(1, 0, (1,), 0, 1)


def prepared(*topics: str) -> tuple[ZkStore, Fence]:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    for topic in topics:
        run(store.topics.create(TopicDescription(topic, topic_id(1), {0: (1,), 1: (1,)})))
    return store, run(store.election.elect(1, 0))


def test_topics() -> None:
    store, fence = prepared("t", "b")
    assert run(store.topics.names()) == ["b", "t"]
    assert run(store.topics.exists("t"))
    assert not run(store.topics.exists("x"))
    with pytest.raises(NodeExists):
        run(store.topics.create(TopicDescription("t")))
    grown = TopicDescription("t", topic_id(1), {0: (1,), 1: (1,), 2: (1,)})
    run(store.topics.update(grown))
    assert run(store.topics.get("t")) == grown
    assert run(store.topics.get("x")) is None
    run(store.topics.update_as_controller(TopicDescription("b", topic_id(9), {0: (2,)}), fence))
    assert list(run(store.topics.get_all(["t", "x", "b"], {}))) == ["t", "b"]
    with pytest.raises(NoNode):
        run(store.topics.update(TopicDescription("x")))


def test_an_update_of_what_is_no_longer_so_is_refused() -> None:
    store, fence = prepared("t")
    known = run(store.topics.get("t"))
    assert known is not None
    run(store.topics.reassign(T0, (2, 1), (2,), (1,), fence))
    with pytest.raises(BadVersion):
        run(store.topics.update(replace(known, assignment={0: (1,)}), known))
    now = run(store.topics.get("t"))
    assert now == TopicDescription("t", topic_id(1), {0: (2, 1), 1: (1,)}, {0: (2,)}, {0: (1,)}), (
        "and the other partition stays as it is"
    )
    run(store.topics.update(replace(now, assignment={**now.assignment, 2: (3,)}), now))


def test_reassigning_is_fenced_and_goes_on_from_the_newest_assignment() -> None:
    store, fence = prepared("t")
    with pytest.raises(ControllerMoved):
        run(store.topics.reassign(T0, (2,), (), (), Fence(0, 0)))
    with pytest.raises(NoNode):
        run(store.topics.reassign(TopicPartition("x", 0), (2,), (), (), fence))
    grown = TopicDescription("t", topic_id(1), {0: (1,), 1: (1,), 2: (3,)})
    racing = Racing(store.zookeeper, lambda: run(store.topics.update(grown)))
    run(TopicStore(racing).reassign(T0, (2,), (), (), fence))
    now = run(store.topics.get("t"))
    assert now is not None
    assert now.assignment == {0: (2,), 1: (1,), 2: (3,)}


class Racing:
    """A ZooKeeper in which somebody else writes between the first read and the first write."""

    def __init__(self, zookeeper: ZooKeeper, write: Callable[[], None]) -> None:
        self._zookeeper = zookeeper
        self._write: Callable[[], None] | None = write

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        if self._write is not None:
            write, self._write = self._write, None
            write()
        return await self._zookeeper.multi(ops)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._zookeeper, name)


def test_states_are_created_in_few_transactions_and_read_back() -> None:
    store, fence = prepared("t", "u")
    before = store.zookeeper._server.tree.zxid  # type: ignore[attr-defined]
    assert run(store.topics.create_states({T0: STATE, T1: STATE, U0: STATE}, fence)) == {}
    spent = store.zookeeper._server.tree.zxid - before  # type: ignore[attr-defined]
    assert spent == 4, "the parents and the states of each topic"
    assert run(store.topics.states([T0, U0, TopicPartition("t", 9)])) == {T0: STATE, U0: STATE}


def test_many_states_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_store, "_BATCH_NODES", 4)
    store, fence = prepared("t")
    states = {TopicPartition("t", i): STATE for i in range(9)}
    assert run(store.topics.create_states(states, fence)) == {}
    assert len(run(store.topics.states(list(states)))) == 9
    run(store.topics.delete("t", fence))
    assert not run(store.topics.exists("t"))


def test_one_existing_state_fails_alone() -> None:
    store, fence = prepared("t")
    run(store.topics.create_states({T0: STATE}, fence))
    other = replace(STATE, leader=STATE.leader + 1)
    failed = run(store.topics.create_states({T0: other, T1: STATE}, fence))
    assert list(failed) == [T0]
    assert isinstance(failed[T0], NodeExists)
    assert T1 in run(store.topics.states([T1]))


def test_a_creation_whose_answer_was_lost_counts_as_made() -> None:
    store, fence = prepared("t")
    run(store.topics.create_states({T0: STATE, T1: STATE}, fence))
    assert run(store.topics.create_states({T0: STATE, T1: STATE}, fence)) == {}


def test_a_state_below_no_topic_fails() -> None:
    store, fence = prepared()
    failed = run(store.topics.create_states({T0: STATE}, fence))
    assert isinstance(failed[T0], NoNode)


def test_updates_are_conditional_on_the_partition_epoch() -> None:
    store, fence = prepared("t")
    run(store.topics.create_states({T0: STATE, T1: STATE}, fence))
    stale = LeaderAndIsr(2, 1, (2,), 5, 1)
    fresh = LeaderAndIsr(2, 1, (2,), 0, 1)
    missing = TopicPartition("t", 7)
    writes = run(store.topics.update_states({T0: fresh, T1: stale, missing: fresh}, fence))
    assert writes.written == {T0: LeaderAndIsr(2, 1, (2,), 1, 1)}
    assert writes.retry == [T1]
    assert isinstance(writes.failed[missing], NoNode)
    assert run(store.topics.states([T0, T1])) == {**writes.written, T1: STATE}


def test_a_write_whose_answer_was_lost_counts_as_written() -> None:
    """The session sends it again after a lost connection, and meets its own version."""
    store, fence = prepared("t")
    run(store.topics.create_states({T0: STATE, T1: STATE}, fence))
    wanted = LeaderAndIsr(2, 1, (2,), 0, 1)
    run(store.topics.update_states({T0: wanted}, fence))
    run(store.topics.update_states({T1: replace(wanted, isr=(3, 2))}, fence))
    again = run(store.topics.update_states({T0: wanted, T1: wanted}, fence))
    assert again.written == {T0: replace(wanted, partition_epoch=1)}
    assert again.retry == [T1]


def test_one_conflict_costs_no_other_of_many_updates() -> None:
    store, fence = prepared("t")
    partitions = [TopicPartition("t", index) for index in range(250)]
    run(store.topics.create_states(dict.fromkeys(partitions, STATE), fence))
    updates = dict.fromkeys(partitions, LeaderAndIsr(2, 1, (2,), 0, 1))
    conflict = partitions[120]
    updates[conflict] = LeaderAndIsr(2, 1, (2,), 9, 1)
    writes = run(store.topics.update_states(updates, fence))
    assert (writes.retry, writes.failed) == ([conflict], {})
    assert set(writes.written.values()) == {LeaderAndIsr(2, 1, (2,), 1, 1)}
    found = run(store.topics.states(partitions))
    assert found == {**writes.written, conflict: STATE}


def test_a_stale_controller_writes_no_state_and_deletes_nothing() -> None:
    store, fence = prepared("t")
    run(store.topics.create_states({T0: STATE}, fence))
    stale = Fence(0, 0)
    for attempt in (
        store.topics.create_states({T1: STATE}, stale),
        store.topics.update_states({T0: STATE}, stale),
        store.topics.update_as_controller(TopicDescription("t"), stale),
        store.topics.delete("t", stale),
    ):
        with pytest.raises(ControllerMoved):
            run(attempt)  # type: ignore[arg-type]
    assert run(store.topics.states([T0, T1])) == {T0: STATE}


def test_deleting_a_topic_takes_the_request_last() -> None:
    store, fence = prepared("t", "u")
    run(store.topics.create_states({T0: STATE, T1: STATE}, fence))
    run(store.configs.set("topics", "t", {"a": "b"}))
    run(store.requests.request_topic_deletion("t"))
    order: list[str] = []
    for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
        run(store.zookeeper.exists(path, lambda event: order.append(event.path)))
    run(store.topics.delete("t", fence))
    assert order == ["/config/topics/t", "/brokers/topics/t", "/admin/delete_topics/t"]
    assert run(store.topics.names()) == ["u"]
    run(store.topics.delete("t", fence))


@pytest.mark.parametrize(
    "path", ["/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"]
)
def test_a_deletion_whose_answer_was_lost_goes_on(path: str) -> None:
    """The session sends it again after a lost connection, and the nodes are gone."""
    zk = AnswerLosingZooKeeper(server())
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    run(store.topics.create(TopicDescription("t", topic_id(1), {0: (1,), 1: (1,)})))
    fence = run(store.election.elect(1, 0))
    run(store.topics.create_states({T0: STATE, T1: STATE}, fence))
    run(store.configs.set("topics", "t", {"a": "b"}))
    run(store.requests.request_topic_deletion("t"))
    zk.lost_path = path
    run(store.topics.delete("t", fence))
    assert not run(store.topics.exists("t"))
    assert run(store.configs.get("topics", "t")) == {}
    assert run(store.requests.topic_deletions()) == []


def test_children_with_illegal_names_are_no_topics(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody made them by hand."""
    store, _ = prepared("t")
    for name in ("a b", "a\nb", "é", "x" * 250):
        run(store.zookeeper.create(f"/brokers/topics/{name}", b'{"partitions":{"0":[1]}}'))
    for _ in range(2):
        assert run(store.topics.names()) == ["t"]
    for name in ("a b", "a\nb", "é", "x" * 249):
        assert caplog.text.count(f"{name!r}"[:-1]) == 1, "each is told of once"


@pytest.mark.parametrize("partitions", [b'{"-1":[1]}', b'{"2147483648":[1]}'])
def test_a_partition_that_cannot_be_costs_its_topic_alone(
    partitions: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = prepared("t")
    run(store.zookeeper.create("/brokers/topics/u", b'{"version":3,"partitions":%s}' % partitions))
    assert list(run(store.topics.get_all(["t", "u"], {}))) == ["t"]
    assert "Topic u is left alone" in caplog.text
