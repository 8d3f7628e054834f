"""Kafka's own system tests, in small (scripts/chaos --system runs them at their size)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.harness.faults import replication_scenarios
from tests.harness.faults.disk_scenarios import log_dir_failure
from tests.harness.faults.links import Pace
from tests.harness.faults.network_scenarios import (
    broker_parted,
    broker_paused,
    clients_parted,
    echo_time,
    slow_network,
)
from tests.harness.faults.offset_scenarios import get_offsets
from tests.harness.faults.reassignment_scenarios import reassignment, throttled
from tests.harness.faults.replication_scenarios import replica_failure, replication
from tests.harness.faults.scale_scenarios import replica_scale
from tests.harness.faults.scenario import AIMS, Scenario, in_turn

RATE = 200.0
RECORDS = 300


def expect_clean(scenario: Scenario, directory: Path) -> None:
    verdict = replace(scenario, rate=RATE).run(directory)
    assert verdict.clean, verdict.text()


def test_replication_with_broker_failures(tmp_path: Path) -> None:
    scenarios = [replication(aim, clean, bounces=1) for clean in (True, False) for aim in AIMS]
    expect_clean(in_turn(*scenarios), tmp_path)


def test_replicas_that_are_cut_off_or_silent(tmp_path: Path) -> None:
    scenarios = (
        replica_failure(records=500),
        replication_scenarios.silence(),
        replication_scenarios.controller_silence(),
        replication_scenarios.expiry(),
    )
    expect_clean(in_turn(*scenarios), tmp_path)


def test_reassignment_with_bounces(tmp_path: Path) -> None:
    expect_clean(reassignment(8, bounce=True, from_zero=False), tmp_path)


def test_a_throttled_reassignment_takes_its_time(tmp_path: Path) -> None:
    expect_clean(throttled(1 << 21, 1 << 12, 1 << 18, brokers=3), tmp_path)


def test_records_go_round_a_parted_and_a_slow_network(tmp_path: Path) -> None:
    scenarios = (
        broker_parted(RECORDS, RATE),
        broker_paused(RECORDS, RATE),
        clients_parted(RECORDS, RATE, 6.0),
        slow_network(RECORDS, RATE, Pace(0.05, 100_000)),
    )
    expect_clean(in_turn(*scenarios), tmp_path)


def test_links_are_as_slow_as_they_are_told() -> None:
    """network_degrade_test: without it the slow network above may be none."""
    there_and_back = 2
    assert echo_time(Pace(0.05, 1e9), 100) >= there_and_back * 0.05
    assert echo_time(Pace(0.0, 200_000), 100_000) >= 0.5


def test_a_log_directory_is_lost(tmp_path: Path) -> None:
    expect_clean(log_dir_failure(of_leader=True, bounce=True), tmp_path)


def test_many_replicas_and_their_offsets(tmp_path: Path) -> None:
    scale = replica_scale(topics=5, partitions=10, records=5_000)
    expect_clean(in_turn(get_offsets(), scale), tmp_path)
