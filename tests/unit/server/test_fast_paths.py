"""A broker with fast paths is no other broker: the same answers, logs and metrics."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkapy.security.acls import Operation
from tests.harness.cores.path_steps import EVENTS, append_to_both, fetch, grant, produce, steps
from tests.harness.cores.path_worlds import Step, World, disk_fails, has_fault, has_late_fault


def assert_same(happenings: list[Step], *, has_authorizer: bool, verifies: bool) -> None:
    """Whatever happens to both brokers, both show the same after each step."""
    with tempfile.TemporaryDirectory() as directory:
        worlds = [
            World(
                Path(directory) / str(fast),
                fast=fast,
                has_authorizer=has_authorizer,
                verifies=verifies,
            )
            for fast in (True, False)
        ]
        for number, step in enumerate(happenings):
            seen = []
            for world in worlds:
                step.apply(world)
                seen.append(world.observed())
            assert_equal(*seen, f"step {number}, {step}")
            assert not seen[0]["escaped"]


def assert_equal(fast: Any, general: Any, when: str) -> None:
    """Fails with the innermost values that differ."""
    if isinstance(general, dict) and list(fast) == list(general):
        for key, value in general.items():
            assert_equal(fast[key], value, f"{when}: {key}")
    elif isinstance(general, list) and len(fast) == len(general):
        for number, pair in enumerate(zip(fast, general, strict=True)):
            assert_equal(*pair, f"{when} {number}")
    else:
        assert fast == general, f"{when}\n  fast path:    {fast}\n  general path: {general}"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps, st.booleans(), st.booleans())
def test_both_paths_show_the_same(
    happenings: list[Step], has_authorizer: bool, verifies: bool
) -> None:
    assert_same(happenings, has_authorizer=has_authorizer, verifies=verifies)


def burst(**terms: Any) -> Step:
    """Requests of one shape, so that the last ones take the fast path."""
    plain: dict[str, Any] = {
        "client": 0, "version": 9, "acks": 1, "transactional_id": None, "topic": "t",
        "client_id": "me", "rows": [("plain", 0)] * 3, "together": False, "fault": None,
    }  # fmt: skip
    return produce(**{**plain, **terms})


def follows(*rounds: tuple[dict[str, Any], str]) -> Step:
    """Fetches of broker 2, which names partition 0 in each."""
    warm: list[tuple[dict[str, Any], str]] = [({}, "records after")] * 3
    return fetch(0, [([0], change, False, then) for change, then in [*warm, *rounds]])


def happening(description: str) -> Step:
    [found] = {
        step.description: step for step in EVENTS if step.description == description
    }.values()
    return found


@pytest.mark.parametrize(
    "happenings",
    [
        [burst(rows=[("transaction 0", 0)])],
        [burst(acks=2)],
        [burst(fault=has_fault)],
        [burst(fault=has_late_fault), burst()],
        [burst(fault=disk_fails), burst()],
        [burst(rows=[("wrong CRC", 0), ("plain", 9), ("sequence 0", 0), ("sequence 0", 0)])],
        [burst(), grant("User:a", "t"), burst(), grant("User:a", "t", Operation.WRITE), burst()],
        [grant("User:b", "t"), burst(), happening("a has become b"), burst()],
        [burst(), happening("quota of others"), burst(), happening("quota of a"), *[burst()] * 4],
        [happening("quota of a"), burst(rows=[("wrong CRC", 0)] * 9), burst(acks=0)],
        [happening("quota of a"), burst(acks=-1), happening("broker 1 leads t alone")],
        [happening("large quota of a"), burst(), happening("quota of a"), burst(together=True)],
        [burst(), happening("broker 2 leads t"), burst(), happening("broker 1 leads t"), burst()],
        [burst(acks=-1), happening("broker 1 leads t alone"), burst(acks=-1)],
        [burst(version=13), happening("the metadata has no t"), burst(version=13)],
        [burst(version=13, topic="unknown"), burst(version=13, acks=0, topic="unknown")],
        [happening("broker 1 leads t with 2"), burst(), follows(({}, "records before"))],
        [follows(({}, "time"), ({"row_bytes": 0}, "records after"))],
        [follows(({"min_bytes": 0}, "nothing"), ({"min_bytes": 0}, "nothing"))],
        [follows(), grant("User:follower", "kafka-cluster"), follows()],
        [follows(({}, "nothing")), grant("User:follower", "kafka-cluster"), burst()],
        [
            follows(({}, "nothing")),
            grant("User:follower", "kafka-cluster"),
            happening("600 ms pass"),
        ],
        [
            *[append_to_both(0, 9, -1, "another", "another")] * 2,
            fetch(
                0,
                [
                    ([0], {}, False, "time"),
                    ([0], {}, False, "other records"),
                    ([1], {}, False, "nothing"),
                ],
            ),
            grant("User:follower", "kafka-cluster"),
            burst(acks=-1),
        ],
        [follows(({"offset": 9}, "nothing"), ({"leader_epoch": 1}, "time"))],
    ],
    ids=str,
)
def test_known_differences_do_not_come_back(happenings: list[Step]) -> None:
    assert_same(happenings, has_authorizer=True, verifies=False)
