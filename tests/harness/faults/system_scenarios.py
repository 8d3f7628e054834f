"""Kafka's system tests at their full size, by name (docs/evidence/chaos.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from tests.harness.faults import (
    disk_scenarios,
    group_scenarios,
    network_scenarios,
    offset_scenarios,
    reassignment_scenarios,
    replication_scenarios,
    scale_scenarios,
)
from tests.harness.faults.links import Pace
from tests.harness.faults.reassignment_scenarios import MOVED
from tests.harness.faults.scenario import AIMS, Scenario, in_turn

ROUND_TRIPS: Final = 100_000
ROUND_TRIP_RATE: Final = 4000.0
"""Kafka's test sends 10,000 a second from one process to eight machines."""
KBIT: Final = 1000 / 8
SLOW: Final = Pace(0.1, 3000 * KBIT)
MIB: Final = 1 << 20


def _replication() -> Iterator[tuple[str, Scenario]]:
    for aim, clean in product(AIMS, (True, False)):
        name = f"replication: {aim}, {'clean' if clean else 'hard'}"
        yield name, replication_scenarios.replication(aim, clean, 5)
    yield "replica failure", replication_scenarios.replica_failure(25_000)
    yield (
        "session timeouts",
        in_turn(
            replication_scenarios.silence(),
            replication_scenarios.controller_silence(),
            replication_scenarios.expiry(),
        ),
    )


def _reassignment() -> Iterator[tuple[str, Scenario]]:
    for bounce, from_zero in product((False, True), (True, False)):
        name = f"reassignment{', bounces' * bounce}{', start above 0' * (not from_zero)}"
        scenario = reassignment_scenarios.reassignment(MOVED, bounce=bounce, from_zero=from_zero)
        yield name, scenario
    yield (
        "throttled reassignment",
        reassignment_scenarios.throttled(260 * MIB, 400 * 1024, 4 * MIB, brokers=6),
    )


def _network() -> Iterator[tuple[str, Scenario]]:
    size = (ROUND_TRIPS, ROUND_TRIP_RATE)
    yield "round trip", network_scenarios.round_trip(*size)
    yield "round trip, broker parted", network_scenarios.broker_parted(*size)
    yield "round trip, broker paused", network_scenarios.broker_paused(*size)
    yield "round trip, clients parted", network_scenarios.clients_parted(*size, 60.0)
    yield "round trip, slow network", network_scenarios.slow_network(ROUND_TRIPS, 1000.0, SLOW)


def _groups() -> Iterator[tuple[str, Scenario]]:
    groups = group_scenarios
    yield "groups: brokers bounce", groups.broker_rolling_bounce(5)
    failures = [
        groups.broker_failure(clean=clean, commits=commits)
        for clean, commits in product((True, False), (True, False))
    ]
    yield "groups: a broker fails", in_turn(*failures)
    for static in (False, True):
        bounces = [groups.member_bounce(5, rolling=r, static=static) for r in (False, True)]
        kind = "static" if static else "dynamic"
        yield f"groups: {kind} members bounce", in_turn(*bounces)
    yield "groups: static members persist", groups.static_members_persist()
    yield "groups: fencing", in_turn(groups.fencing(1), groups.fencing(2))
    failures = [groups.member_failure(commits=commits) for commits in (True, False)]
    yield "groups: a member leaves", in_turn(*failures)
    strategies = [groups.members_join_and_leave(name) for name in groups.STRATEGIES]
    yield "groups: assignment", in_turn(*strategies)


def _disks_scale_and_offsets() -> Iterator[tuple[str, Scenario]]:
    for of_leader, bounce in product((True, False), (False, True)):
        name = f"log dir failure: {'leader' if of_leader else 'follower'}{', bounced' * bounce}"
        yield name, disk_scenarios.log_dir_failure(of_leader=of_leader, bounce=bounce)
    yield "get offsets", offset_scenarios.get_offsets()
    yield "replica scale", scale_scenarios.replica_scale(50, 34, 3_400_000)


SYSTEM: Final[Mapping[str, Scenario]] = dict(
    [*_replication(), *_reassignment(), *_network(), *_groups(), *_disks_scale_and_offsets()]
)
