"""Verdicts of `scripts/bench --growth` on measured figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dev.bench.growth_page import Measure, section, steep

SIZES = (1, 10, 100, 1000)


def verdict(figure: Callable[[int], float], name: str = "resident, MiB") -> str:
    return Measure(name, SIZES, [figure(size) for size in SIZES]).verdict


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (lambda n: 5.0, "flat"),
        (lambda n: 40 + n / 100, "flat"),
        (lambda n: 40 + n, "linear"),
        (lambda n: n**0.5, "less than linear"),
        (lambda n: 1000 + n**2 / 50, "WORSE THAN LINEAR"),
        (lambda n: n * n, "WORSE THAN LINEAR"),
    ],
)
def test_how_steep_a_curve_is(figure: Callable[[int], float], said: str) -> None:
    """Quadratic growth must be detected even on top of a constant part."""
    assert verdict(figure) == said


def test_a_tail_that_scatters_is_no_growth() -> None:
    times = dict(zip(SIZES, (1.0, 9.0, 2.0, 30.0), strict=True))
    assert verdict(times.__getitem__, "produce: p99, ms") != "WORSE THAN LINEAR"
    assert verdict(times.__getitem__, "produce: p50, ms") == "WORSE THAN LINEAR"


def test_what_the_smallest_size_does_not_have_leaves_its_cell_empty() -> None:
    points = {1: {"a, ms": 1.0}, 10: {"a, ms": 1.0, "b, s": 2.0}, 100: {"a, ms": 1.0, "b, s": 2.0}}
    assert "| b, s |  | 2 | 2 | 0.00 |  | flat |" in section("things", points).splitlines()
    assert steep({"things": points}) == []
