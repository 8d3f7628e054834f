"""A mutant is caught by a seed that breaks a promise with it, and none without it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dev.mutate import hunt
from dev.mutate.mutant import load


@pytest.mark.parametrize(
    ("broken", "own", "seeds", "is_caught"),
    [
        ([3], [], 4, True),
        ([3, 5], [3], 6, True),
        ([3], [3], 10, False),
        ([9], [9], 10, False),
        ([], [], 10, False),
    ],
)
def test_a_seed_that_fails_anyway_catches_nothing(
    monkeypatch: pytest.MonkeyPatch, broken: list[int], own: list[int], seeds: int, is_caught: bool
) -> None:
    def judged(tree: Path, first: int, count: int) -> dict[str, Any]:
        fails = own if tree == hunt.ROOT else broken
        caught = next((seed for seed in range(first, first + count) if seed in fails), None)
        last = first + count - 1
        return (
            {"seed": last, "checker": "", "violation": ""}
            if caught is None
            else {"seed": caught, "checker": "CommittedLogs", "violation": "lost"}
        )

    monkeypatch.setattr(hunt, "_judged", judged)
    mutant = next(each for each in load() if not each.tests)
    found = hunt.hunt(mutant, 0, 10)
    assert (found.seeds, found.is_caught) == (seeds, is_caught)


FAILS = (1, "FAILED tests/unit/test_x.py::test_a[1] - boom")


@pytest.mark.parametrize(
    ("broken", "own", "checker"),
    [
        (FAILS, (0, ""), "test_x.py test_a"),
        (FAILS, FAILS, ""),
        ((0, ""), (0, ""), ""),
        ((2, "ERROR tests/unit/test_x.py"), (0, ""), ""),
    ],
)
def test_a_test_that_fails_anyway_or_cannot_run_catches_nothing(
    monkeypatch: pytest.MonkeyPatch, broken: tuple[int, str], own: tuple[int, str], checker: str
) -> None:
    def tested(tree: Path, tests: str) -> subprocess.CompletedProcess[str]:
        status, output = own if tree == hunt.ROOT else broken
        return subprocess.CompletedProcess(tests, status, output, "")

    monkeypatch.setattr(hunt, "_tested", tested)
    monkeypatch.setattr(hunt, "_TESTS", ())
    mutant = next(each for each in load() if each.tests)
    assert hunt.hunt(mutant, 0, 10).checker == checker
