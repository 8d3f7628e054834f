"""Replication throttles of a reassignment: source and target replicas, and their brokers."""

from __future__ import annotations

from kafkapy.admin.planning.throttle_plan import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    PartitionMove,
    planned_moves,
    throttle_plan,
)
from kafkapy.admin.reassignments import Reassignment
from kafkapy.common.topic_partition import TopicPartition

T0, T2, T10, U0 = (
    TopicPartition("t", 0),
    TopicPartition("t", 2),
    TopicPartition("t", 10),
    TopicPartition("u", 0),
)


def test_those_that_have_the_data_lead_and_those_that_get_it_follow() -> None:
    moves = planned_moves({T0: (1, 2)}, {T0: (2, 3)}, {})
    assert moves == {T0: PartitionMove(frozenset({1, 2}), frozenset({3}))}


def test_what_a_running_move_adds_is_no_source_and_others_that_run_count_too() -> None:
    running = {T0: Reassignment((3,), (1,), (3, 1, 2)), U0: Reassignment((5,), (), (4, 5))}
    moves = planned_moves({T0: (3, 1, 2)}, {T0: (4, 2)}, running)
    assert moves == {
        T0: PartitionMove(frozenset({1, 2}), frozenset({4})),
        U0: PartitionMove(frozenset({4}), frozenset({5})),
    }


def test_the_lists_are_sorted_as_text_and_may_be_empty() -> None:
    moves = {
        T10: PartitionMove(frozenset({2}), frozenset()),
        T2: PartitionMove(frozenset({1}), frozenset()),
        T0: PartitionMove(frozenset({1}), frozenset()),
    }
    plan = throttle_plan(moves)
    assert plan.topics == {"t": {LEADER_REPLICAS: "0:1,10:2,2:1", FOLLOWER_REPLICAS: ""}}
    assert plan.brokers == (1, 2)
