"""Warm systems: each gets the same load by turns, until its last three runs agree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from statistics import median
from typing import TypeVar

from dev.bench.kafka_rows import Measured

IN_A_ROW = 3
SPREAD = 1.1
RUNS_MAX = 10
"""The maximum number of runs. A system whose runs still differ after these is uneven even when it
is warm."""

T = TypeVar("T", bound=Hashable)


def agree(values: Sequence[float]) -> bool:
    """Whether the last three are alike: the greatest is at most a tenth above the least."""
    last = values[-IN_A_ROW:]
    return len(last) == IN_A_ROW and max(last) <= SPREAD * min(last)


def in_turn(
    run: Callable[[T], Measured], systems: Sequence[T], most: int = RUNS_MAX
) -> dict[T, Measured]:
    """Run all systems in turn until the last three runs of each agree. Returns their medians.

    Every system has the same number of runs.
    """
    runs: dict[T, list[Measured]] = {system: [] for system in systems}
    for _ in range(most):
        for system in systems:
            runs[system].append(run(system))
        if all(agree([one.values[0] for one in found]) for found in runs.values()):
            break
    return {system: _middle(found[-IN_A_ROW:]) for system, found in runs.items()}


def _middle(runs: Sequence[Measured]) -> Measured:
    """The median of each figure; usage is that of the run in the middle."""
    values = [median(column) for column in zip(*(one.values for one in runs), strict=True)]
    chosen = sorted(runs, key=lambda one: one.values[0])[len(runs) // 2]
    return Measured(values, chosen.usage, chosen.moved_bytes)
