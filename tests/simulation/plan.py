"""Choices that a seed makes before a simulation starts: number of brokers, configs, faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.events import SECOND_US


@dataclass(slots=True)
class Plan:
    """`fragile` is the one broker whose power may be cut; weights say which faults are likely.
    `transactions`: there is a transactional producer too."""

    brokers: int = 3
    partitions: int = 2
    replication_factor: int = 3
    unclean: bool = False
    faults_us: int = 10 * SECOND_US
    fault_every_us: int = SECOND_US
    fragile: int = 1
    reset_one_in: int = 0
    transactions: bool = False
    config: dict[str, str] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)


FAULT_WEIGHTS = {
    "kill": 6,
    "kill controller": 3,
    "kill leader": 3,
    "power cut": 4,
    "pause": 4,
    "controlled shutdown": 4,
    "cut link": 4,
    "cut one way": 3,
    "isolate": 3,
    "cut from zookeeper": 4,
    "expire session": 4,
    "zookeeper restart": 2,
    "slow link": 3,
    "disk failure": 2,
    "reassign": 6,
    "cancel reassignment": 2,
    "preferred election": 4,
    "unclean election": 1,
    "create topic": 2,
    "delete topic": 2,
}


FIRST_TRANSACTIONAL_SEED = 100_000
"""From here on: what earlier seeds do stays what it was when they found something."""


def plan_of(random: Random) -> Plan:
    """A plan by chance: most seeds have some of the faults only, so that these come together."""
    brokers = random.choice((3, 3, 4, 4, 5))
    plan = Plan(
        brokers=brokers,
        partitions=random.choice((1, 2, 2, 3)),
        replication_factor=random.choice((3, 3, 3, 2)),
        unclean=random.random() < 0.08,
        faults_us=random.randrange(4, 10) * SECOND_US,
        fault_every_us=random.choice((300_000, 600_000, 900_000, 1_500_000)),
        fragile=random.randrange(1, brokers + 1),
        reset_one_in=random.choice((0, 0, 300, 1000)),
    )
    kinds = list(FAULT_WEIGHTS)
    chosen = random.sample(kinds, random.randrange(3, len(kinds) + 1))
    if "delete topic" in chosen:
        chosen.append("create topic")  # or there is never one to delete
    plan.weights = {kind: FAULT_WEIGHTS[kind] for kind in kinds if kind in chosen}
    if plan.unclean:
        plan.config["unclean.leader.election.enable"] = "true"
    if random.random() < 0.3:
        plan.config["auto.leader.rebalance.enable"] = "false"
    if plan.replication_factor == 2:
        plan.config["min.insync.replicas"] = random.choice(("1", "2"))
    if random.random() < 0.3:
        plan.config["replica.fetch.max.bytes"] = "200"
        plan.config["replica.fetch.response.max.bytes"] = "400"
    if random.random() < 0.3:
        plan.config["log.dirs"] = "/data/one,/data/two"
    if random.random() < 0.3:
        plan.config["num.replica.fetchers"] = "2"
    return plan
