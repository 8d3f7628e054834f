"""A broker with fast paths is no other broker: the same answers, logs and metrics."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.path_steps import steps
from tests.support.path_worlds import Step, World


def assert_same(happenings: list[Step], *, guarded: bool, verifies: bool) -> None:
    """Whatever happens to both brokers, both show the same after each step."""
    with tempfile.TemporaryDirectory() as directory:
        worlds = [
            World(Path(directory) / str(fast), fast=fast, guarded=guarded, verifies=verifies)
            for fast in (True, False)
        ]
        for number, step in enumerate(happenings):
            seen = []
            for world in worlds:
                step.happen(world)
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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps, st.booleans(), st.booleans())
def test_both_paths_show_the_same(happenings: list[Step], guarded: bool, verifies: bool) -> None:
    assert_same(happenings, guarded=guarded, verifies=verifies)
