"""Reassignments by the znode, on znodes in memory."""

from __future__ import annotations

import pytest

from kafkapy.admin.log_dirs import Replica
from kafkapy.admin.planning.throttle_plan import ThrottlePlan
from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.partition_files import ReassignmentFile
from kafkapy.tools.zookeeper.reassign import (
    assignments,
    begin,
    check,
    clear_throttles,
    live_brokers,
    set_throttle,
    verify,
)
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.znodes import run
from tests.harness.scripted.admins import store

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def znodes() -> ZkStore:
    """Brokers 1 to 3 and topic t of two partitions."""
    made = store()
    topic = TopicDescription("t", assignment={0: (1, 2), 1: (2, 3)})
    run(made.topics.create(topic))
    return made


def file(*rows: tuple[TopicPartition, tuple[int, ...]]) -> ReassignmentFile:
    return ReassignmentFile(rows)


def test_what_there_is(znodes: ZkStore) -> None:
    assert run(assignments(znodes, ["t", "no"])) == {T0: (1, 2), T1: (2, 3)}
    assert run(live_brokers(znodes)) == [BrokerPlace(1), BrokerPlace(2), BrokerPlace(3)]


def test_a_wish_is_left_once(znodes: ZkStore) -> None:
    wish = file((T0, (3, 2)))
    assert run(check(znodes, wish)) == {T0: (1, 2)}
    run(begin(znodes, wish.targets))
    assert run(znodes.requests.reassignments()) == {T0: (3, 2)}
    with pytest.raises(ReassignmentFailed, match="existing partition assignment"):
        run(check(znodes, wish))
    with pytest.raises(ReassignmentFailed, match="existing partition assignment"):
        run(begin(znodes, wish.targets))


def test_what_is_refused(znodes: ZkStore) -> None:
    for asked, said in (
        (
            file((TopicPartition("t", 9), (1,)), (TopicPartition("u", 0), (1,))),
            "The proposed assignment contains non-existent partitions: t-9, u-0",
        ),
        (file((T0, (5, 6))), "The proposed assignment contains non-existent brokerIDs: 5,6"),
        (
            ReassignmentFile([(T0, (1,))], {Replica("t", 0, 1): "/d"}),
            "bootstrap-server needs to be provided when replica reassignments are present.",
        ),
    ):
        with pytest.raises(ReassignmentFailed) as refused:
            run(check(znodes, asked))
        assert str(refused.value) == said


def test_throttles_come_and_go_and_brokers_are_told(znodes: ZkStore) -> None:
    run(znodes.configs.set("topics", "t", {"retention.ms": "5"}))
    assert run(znodes.configs.changes()) == [0]
    run(
        set_throttle(
            znodes, ThrottlePlan({"t": {"leader.replication.throttled.replicas": "*"}}, (1,)), 7
        )
    )
    assert run(znodes.configs.get("topics", "t")) == {
        "retention.ms": "5",
        "leader.replication.throttled.replicas": "*",
    }
    assert run(znodes.configs.get("brokers", "1")) == {
        "leader.replication.throttled.rate": "7",
        "follower.replication.throttled.rate": "7",
    }
    assert run(znodes.configs.changes()) == [0, 1, 2]
    run(clear_throttles(znodes, [1, 2], ["t"]))
    assert run(znodes.configs.get("topics", "t")) == {"retention.ms": "5"}
    assert run(znodes.configs.get("brokers", "1")) == {}
    assert run(znodes.configs.changes()) == [0, 1, 2, 3, 4]  # broker 2 had none: nobody is told


def test_how_far_it_is(znodes: ZkStore) -> None:
    run(begin(znodes, {T0: (3, 2)}))
    found = run(verify(znodes, file((T0, (3, 2)), (T1, (2, 3)))))
    assert [(s.is_moving, s.is_complete) for s in found.partitions] == [
        (True, False),
        (False, True),
    ]
    assert (found.any_running, found.live) == (True, [1, 2, 3])
