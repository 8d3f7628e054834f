"""The arithmetic of `scripts/bench --cores`."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from dev.bench.cores import TASKS, together
from dev.bench.cores_systems import Cores, cores_for, on_cores, process_counts


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


def test_the_cores_of_this_process_are_as_before() -> None:
    before = os.sched_getaffinity(0)
    with on_cores(frozenset({min(before)})):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before


def test_clients_that_do_not_overlap_are_not_added_up() -> None:
    """Each did 100 in a second, the second after the first."""
    assert together([{"rate": 100.0, "ended": 1.0}, {"rate": 100.0, "ended": 2.0}], 100) == 100.0
    assert together([{"rate": 100.0, "ended": 2.0}, {"rate": 100.0, "ended": 2.0}], 100) == 200.0


def test_no_two_rows_have_one_name() -> None:
    assert [name for name, n in Counter(task.row.name for task in TASKS).items() if n > 1] == []
