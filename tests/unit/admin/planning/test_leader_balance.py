"""Preferred leaders: kept, chosen, evened out."""

from __future__ import annotations

from kafkapy.admin.planning.leader_balance import Leaders
from kafkapy.common.topic_partition import TopicPartition


def leaders(*rows: tuple[tuple[int, ...], tuple[int, ...]]) -> Leaders:
    made = Leaders([1, 2, 3])
    for index, (current, planned) in enumerate(rows):
        made.add(TopicPartition("t", index), current, planned)
    return made


def orders(made: Leaders) -> list[tuple[int, ...]]:
    return [replicas for _, replicas in made.assignment()]


def test_a_leader_that_stays_leads_and_the_order_stays() -> None:
    made = leaders(((2, 1, 3), (1, 2, 3)))
    made.choose_missing()
    assert orders(made) == [(2, 1, 3)]


def test_who_has_the_data_and_leads_least_is_chosen() -> None:
    made = leaders(((1, 2), (1, 2)), ((9, 1, 2), (3, 1, 2)))
    made.choose_missing()
    assert orders(made) == [(1, 2), (2, 1, 3)]


def test_a_partition_that_moves_as_a_whole_has_a_leader_too() -> None:
    made = leaders(((8, 9), (2, 3)))
    made.choose_missing()
    assert orders(made) == [(2, 3)]


def test_leaders_are_evened_out_in_a_chain() -> None:
    made = leaders(*[((1, 2), (1, 2))] * 3, ((2, 3), (2, 3)))
    made.choose_missing()
    made.balance()
    assert made.counts == {1: 2, 2: 1, 3: 1}
