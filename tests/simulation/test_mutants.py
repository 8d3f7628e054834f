"""The checkers can object: production code that is broken on purpose is found out."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import Plan
from tests.simulation.simulation import simulate

SEEDS = 40

CAUGHT_BY = {
    "no_truncation_by_epoch": {"CommittedLogs", "ClientView", "Convergence"},
    "truncation_to_the_high_watermark": {"CommittedLogs", "ClientView", "Convergence"},
    "acknowledgement_before_replication": {"ClientView", "CommittedOffsets"},
    "controller_epoch_not_incremented": {"ControllerEpochs"},
    "stale_controllers_obeyed": {"ControllerEpochs"},
    "leader_epoch_not_incremented": {"LeaderEpochs", "Convergence", "ClientView", "CommittedLogs"},
    "high_watermark_of_the_fastest": {"CommittedLogs", "ClientView"},
    "high_watermark_begins_anew": {"HighWatermarks", "CommittedLogs", "ClientView"},
    "reassignment_reorders_its_target": {"Reassignments"},
}


def plan() -> Plan:
    """One partition whose leadership hardly ever rests."""
    return Plan(
        brokers=4,
        partitions=1,
        faults_us=8_000_000,
        fault_every_us=500_000,
        weights={
            "kill leader": 4,
            "isolate": 4,
            "cut link": 3,
            "preferred election": 4,
            "reassign": 3,
            "slow link": 3,
            "kill controller": 2,
            "pause": 2,
        },
    )


def slow_controllers() -> Plan:
    """Controllers that are replaced while their requests are under way."""
    weights = {"pause": 6, "slow link": 6, "preferred election": 6, "expire session": 4}
    return Plan(
        brokers=4, partitions=3, faults_us=8_000_000, fault_every_us=200_000, weights=weights
    )


PLANS = {"stale_controllers_obeyed": slow_controllers}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    chosen = PLANS.get(name, plan)()
    with MUTANTS[name]():
        for seed in range(SEEDS):
            outcome = simulate(seed, chosen)
            if outcome.violation:
                assert outcome.violation.partition(":")[0] in CAUGHT_BY[name], outcome.report()
                return
    pytest.fail(f"{name} broke no promise in {SEEDS} seeds")


def test_without_a_mutant_the_same_seeds_are_good() -> None:
    assert [simulate(seed, plan()).violation for seed in range(5)] == [""] * 5
