"""The minimal plan: what stays, what moves, and that nothing moves for nothing."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.admin.planning.minimal_plan import minimal_plan
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.placement import BrokerPlace, assign_replicas
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.cores.assignments import (
    Assignment,
    assignment,
    brokers,
    clusters,
    fewest_moved_replicas,
    loads,
    moved_replicas,
)


def leaders(plan: Assignment, known: list[BrokerPlace]) -> dict[int, int]:
    return loads({tp: replicas[:1] for tp, replicas in plan.items()}, known)


def spans(counts: dict[int, int]) -> int:
    return max(counts.values()) - min(counts.values())


def test_a_new_broker_takes_its_share_and_no_more() -> None:
    current = assignment((1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2))
    plan = minimal_plan(current, brokers(1, 2, 3, 4))
    assert loads(plan, brokers(1, 2, 3, 4)) == {1: 3, 2: 3, 3: 3, 4: 3}
    assert moved_replicas(current, plan) == 3


def test_a_decommissioned_broker_is_left_and_nothing_else_changes() -> None:
    current = assignment((1, 2), (2, 3), (3, 1), (2, 3))
    plan = minimal_plan(current, brokers(2, 3, 4), balance=False)
    assert plan == assignment((2, 4), (2, 3), (3, 4), (2, 3))


def test_who_has_the_data_leads_when_the_leader_goes() -> None:
    plan = minimal_plan(assignment((1, 2, 3), (1, 2, 3)), brokers(2, 3, 4), balance=False)
    assert plan == assignment((2, 3, 4), (3, 2, 4))


def test_replicas_are_added_and_dropped() -> None:
    grown = minimal_plan(
        assignment((1,), (2,)), brokers(1, 2, 3), replication_factor=2, balance=False
    )
    assert grown == assignment((1, 3), (2, 1))
    shrunk = minimal_plan(assignment((1, 2, 3)), brokers(1, 2, 3), replication_factor=1)
    assert len(shrunk[TopicPartition("t", 0)]) == 1
    assert moved_replicas(assignment((1, 2, 3)), shrunk) == 0


def test_racks_are_honoured_even_by_what_could_stay() -> None:
    known = brokers(1, 2, 3, 4, racks="aabb")
    plan = minimal_plan(assignment((1, 2), (3, 4), (1, 3)), known)
    assert all({"a", "b"} == {known[b - 1].rack for b in replicas} for replicas in plan.values())


@pytest.mark.parametrize("factor", [None, 2])
def test_a_decommission_does_not_copy_what_racks_that_were_set_later_put_together(
    factor: int | None,
) -> None:
    known = [BrokerPlace(1, "a"), BrokerPlace(2, "a"), BrokerPlace(3, "b")]
    current = assignment((1, 2), (2, 1), (4, 1), (2, 4))
    plan = minimal_plan(current, known, replication_factor=factor, balance=False)
    assert plan == assignment((1, 2), (2, 1), (1, 3), (2, 3))


@pytest.mark.parametrize(
    ("ids", "racks", "factor", "said"),
    [
        ((1, 2), None, 3, "Replication factor: 3 larger than available brokers: 2."),
        ((1,), None, None, "Replication factor: 2 larger than available brokers: 1."),
        ((1, 2), None, 0, "The replication factor must be between 1 and 32767 inclusive"),
        ((1, 2), ("a", None), None, "Not all brokers have rack information for replica rack aware"),
    ],
)
def test_what_cannot_be(ids: tuple[int, ...], racks: object, factor: int | None, said: str) -> None:
    known = brokers(*ids, racks=racks)  # type: ignore[arg-type]
    with pytest.raises(ApiError, match=said) as refused:
        minimal_plan(assignment((1, 2)), known, replication_factor=factor)
    assert refused.value.code in (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_replicas_are_even_distinct_and_where_they_may_be(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]],
) -> None:
    current, known = cluster
    plan = minimal_plan(current, known)
    ids = {broker.broker_id for broker in known}
    rack_of = {broker.broker_id: broker.rack for broker in known}
    racks = len(set(rack_of.values()))
    assert plan.keys() == current.keys()
    for tp, replicas in plan.items():
        assert len(replicas) == len(current[tp]) == len(set(replicas))
        assert set(replicas) <= ids
        in_rack = Counter(rack_of[b] for b in replicas)
        assert len(in_rack) == min(len(replicas), racks)
        assert max(in_rack.values()) - min(in_rack.values()) <= 1
    assert spans(loads(plan, known)) <= 1


@given(clusters())
@settings(max_examples=100, deadline=None)
def test_the_same_input_gives_the_same_plan_and_a_plan_is_its_own(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]],
) -> None:
    current, known = cluster
    plan = minimal_plan(current, known)
    shuffled = dict(random.Random(1).sample(list(current.items()), len(current)))
    assert minimal_plan(shuffled, known[::-1]) == plan
    assert minimal_plan(plan, known) == plan


@given(clusters(), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_leaders_are_even_where_all_partitions_have_as_many_replicas(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]], factor: int
) -> None:
    current, known = cluster
    plan = minimal_plan(current, known, replication_factor=min(factor, len(known)))
    assert spans(leaders(plan, known)) <= 1


@given(clusters())
@settings(max_examples=100, deadline=None)
def test_without_racks_no_plan_copies_less(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]],
) -> None:
    current, known = cluster
    known = brokers(*(broker.broker_id for broker in known))
    ids = [broker.broker_id for broker in known]
    assert moved_replicas(current, minimal_plan(current, known)) == fewest_moved_replicas(
        current, ids
    )


def test_what_is_placed_goes_in_a_chain_before_what_stays_moves() -> None:
    """Partition 5 was placed on 11, so 6 found no room but on 10: both move on, and 0 stays."""
    replicas = [(10,), (10,), (10,), (11,), (12, 11), (0,), (0, 12)]
    current = {TopicPartition("a", p): each for p, each in enumerate(replicas)}
    known = brokers(10, 11, 12)
    assert moved_replicas(current, minimal_plan(current, known)) == 2


@given(clusters())
@settings(max_examples=100, deadline=None)
def test_unless_levelled_only_what_must_moves(
    cluster: tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]],
) -> None:
    current, known = cluster
    ids = {broker.broker_id for broker in known}
    for tp, replicas in minimal_plan(current, known, balance=False).items():
        assert set(current[tp]) & ids <= set(replicas)
        if set(current[tp]) <= ids:
            assert replicas == current[tp]


def test_a_hundred_brokers_with_ten_thousand_partitions_are_evened_out() -> None:
    known = brokers(*range(100), racks=[f"r{b % 4}" for b in range(100)])
    current = {}
    for topic in range(1000):
        placed = assign_replicas(known[:92], 10, 3, start_index=topic % 92, shift=topic * 7 % 92)
        current |= {TopicPartition(f"t{topic}", p): replicas for p, replicas in placed.items()}
    plan = minimal_plan(current, known)
    assert spans(loads(plan, known)) <= 1
    assert spans(leaders(plan, known)) <= 1
    assert 8 * 300 <= moved_replicas(current, plan) <= 8 * 303  # chains cost a little more
