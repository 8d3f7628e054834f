"""The checkers can object: production code that is broken on purpose is found out."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import Plan
from tests.simulation.simulation import simulate

SEEDS = 60
FIRST_SEEDS = {
    "no_truncation_by_epoch": 5,
    "acknowledgement_before_replication": 2,
    "stale_controllers_obeyed": 7,
    "leader_epoch_not_incremented": 4,
    "high_watermark_of_the_fastest": 7,
    "high_watermark_begins_anew": 2,
    "an_open_transaction_is_left_to_the_next_instance": 47,
    "nobody_ends_what_another_has_decided": 2,
    "offsets_of_transactions_count_at_once": 3,
}
"""Where those of each mutant begin: with the first that finds it, or a quicker one. When the code
has changed it may be a later one."""

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
    "an_open_transaction_is_left_to_the_next_instance": {"Transactions", "Convergence"},
    "nobody_ends_what_another_has_decided": {"Transactions", "Convergence"},
    "offsets_of_transactions_count_at_once": {"Transactions"},
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


def transactions() -> Plan:
    """A transactional producer whose coordinators hardly ever rest."""
    chosen = plan()
    chosen.transactions = True
    return chosen


PLANS = {
    "stale_controllers_obeyed": slow_controllers,
    "an_open_transaction_is_left_to_the_next_instance": transactions,
    "nobody_ends_what_another_has_decided": transactions,
    "offsets_of_transactions_count_at_once": transactions,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    chosen = PLANS.get(name, plan)()
    with MUTANTS[name]():
        first = FIRST_SEEDS.get(name, 0)
        for seed in range(first, first + SEEDS):
            outcome = simulate(seed, chosen)
            if outcome.violation:
                assert outcome.violation.partition(":")[0] in CAUGHT_BY[name], outcome.report()
                return
    pytest.fail(f"{name} broke no promise from seed {first} to {first + SEEDS - 1}")


def test_without_a_mutant_the_same_seeds_are_good() -> None:
    first = {(PLANS.get(name, plan), FIRST_SEEDS.get(name, 0)) for name in MUTANTS}
    broken = [(make.__name__, seed) for make, seed in first if simulate(seed, make()).violation]
    assert not broken
