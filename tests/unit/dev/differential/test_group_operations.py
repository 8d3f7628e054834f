"""Sequences of operations on groups: what a seed draws."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from dev.differential.groups.operations import Join, Leave, Operation, TimePasses, sequence

MANY = 400


def test_a_seed_is_a_sequence() -> None:
    assert sequence(7) == sequence(7)
    assert len({sequence(seed) for seed in range(MANY)}) == MANY


def test_time_passes_once_and_phases_are_shorter_than_a_rebalance() -> None:
    """A phase that lasts longer would meet time-outs in its middle, at other steps each time."""
    for seed in range(MANY):
        operations = sequence(seed)
        [middle] = [n for n, each in enumerate(operations) if isinstance(each, TimePasses)]
        assert 0 < middle <= 10
        assert 0 < len(operations) - middle - 1 <= 10


def test_all_kinds_of_operations_are_drawn() -> None:
    counts = Counter(type(each) for seed in range(MANY) for each in sequence(seed))
    assert counts.keys() == set(get_args(Operation))


def test_requests_fit_their_version() -> None:
    for each in (operation for seed in range(MANY) for operation in sequence(seed)):
        if isinstance(each, Join):
            assert each.version >= 5 or each.member < 2  # a static member needs version 5
        elif isinstance(each, Leave):
            assert each.version >= 3 or len(each.members) == 1
