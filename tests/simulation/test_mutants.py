"""Tests of the checkers: they detect production code that is broken on purpose.

These are some of the mutants of `dev/mutate`, on plans that seeds draw; `scripts/mutate` runs them
all.
"""

from __future__ import annotations

import pytest

from dev.mutate.hunt import hunt
from dev.mutate.mutant import load
from tests.simulation.test_replay import SEEDS as GOOD_SEEDS

SEEDS = 60
FIRST_SEEDS: dict[str, int] = {
    "min_insync_replicas_is_1": 7,
    "no_leader_epoch_fence_on_fetch": 7,
    "last_stable_offset_is_the_high_watermark": 7,
    "producer_state_not_rebuilt_after_truncation": 7,
    "any_generation_may_commit": 7,
    "transactions_not_verified": 7,
    "acknowledgement_before_replication": 7,
    "no_producer_epoch_fencing": 69,
}
"""The first seed of each mutant's range: the first that finds it, or a quicker one. When the code
has changed it may be a later one."""

MUTANTS = {mutant.name: mutant for mutant in load()}


@pytest.mark.parametrize("name", FIRST_SEEDS)
def test_a_mutant_is_caught(name: str) -> None:
    result = hunt(MUTANTS[name], FIRST_SEEDS[name], SEEDS)
    assert result.is_caught, f"{name} broke no promise in {SEEDS} seeds"
    assert result.checker != "crashes", result.violation


def test_the_seeds_are_those_that_are_good_without_a_mutant() -> None:
    assert {*FIRST_SEEDS.values()} == {*GOOD_SEEDS}
