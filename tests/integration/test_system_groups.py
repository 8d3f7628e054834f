"""Kafka's system tests of consumer groups, in small and on one cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.harness.faults import group_scenarios as groups
from tests.harness.faults.scenario import in_turn

RATE = 200.0


def test_groups_while_members_come_and_go(tmp_path: Path) -> None:
    scenarios = (
        groups.member_bounce(1, rolling=False, static=False),
        groups.member_bounce(1, rolling=True, static=True),
        groups.fencing(2),
        groups.member_failure(commits=True),
        groups.members_join_and_leave("cooperative-sticky"),
    )
    verdict = replace(in_turn(*scenarios), rate=RATE).run(tmp_path)
    assert verdict.clean, verdict.text()


def test_groups_while_brokers_come_and_go(tmp_path: Path) -> None:
    scenarios = (
        groups.static_members_persist(),
        groups.broker_failure(clean=False, commits=False),
    )
    verdict = replace(in_turn(*scenarios), rate=RATE).run(tmp_path)
    assert verdict.clean, verdict.text()
