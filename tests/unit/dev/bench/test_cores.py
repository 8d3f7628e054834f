"""The arithmetic of `scripts/bench --cores`."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from dev.bench.cores import TASKS
from dev.bench.cores_loads import together
from dev.bench.cores_systems import Cores, by_thread, cores_for, on_cores, process_counts


@pytest.mark.parametrize(
    ("available", "counts"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])],
)
def test_process_counts_end_with_the_number_of_cores(available: int, counts: list[int]) -> None:
    assert process_counts(available) == counts


def test_clients_have_cores_of_their_own_where_there_are_enough() -> None:
    eight = range(8)
    apart = Cores(frozenset(range(4)), frozenset(range(4, 8)))
    assert cores_for(1, eight) == cores_for(4, eight) == apart
    assert cores_for(5, eight) == Cores(frozenset(eight), frozenset(eight))
    assert cores_for(1, [0, 1]) == Cores(frozenset({0, 1}), frozenset({0, 1}))


def test_brokers_get_the_first_threads_of_the_cores() -> None:
    pairs = by_thread(range(4), lambda cpu: [cpu & ~1, cpu | 1])
    assert pairs == [0, 2, 1, 3]
    assert cores_for(1, pairs) == Cores(frozenset({0, 2}), frozenset({1, 3}))
    assert by_thread(range(4), lambda cpu: [cpu % 2, cpu % 2 + 2]) == [0, 1, 2, 3]


def test_the_cores_of_this_process_are_as_before() -> None:
    before = os.sched_getaffinity(0)
    with on_cores(frozenset({min(before)})):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before


def test_the_rate_is_that_of_the_time_in_which_all_clients_work() -> None:
    """The second begins late, and the first goes on alone."""
    first = [(0.0, 0.0), (1.0, 50.0), (2.0, 150.0), (4.0, 1150.0)]
    second = [(1.5, 0.0), (3.0, 300.0)]
    assert together([first]) == 1150 / 4
    assert together([first, second]) == (50 + 500 + 300) / 1.5


def test_clients_one_after_the_other_are_refused() -> None:
    with pytest.raises(AssertionError, match="not at work at the same time"):
        together([[(0.0, 0.0), (1.0, 9.0)], [(1.5, 0.0), (2.0, 9.0)]])


def test_no_two_rows_have_one_name() -> None:
    assert [name for name, n in Counter(task.row.name for task in TASKS).items() if n > 1] == []
