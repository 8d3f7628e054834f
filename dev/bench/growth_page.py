"""Report of `scripts/bench --growth`: a table for each curve, growth exponents, one plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from typing import NamedTuple

from dev import plots, report
from dev.bench.growth_meter import Figures

STEEP = 1.15
"""An exponent above this is worse than linear. An exponent between 1 and this is noise."""
GROWTH_RATIO_MIN = 2.0
"""A figure grows only if it is at least this many times its value at the smallest size."""
TAIL_GROWTH_RATIO_MIN = 10.0
"""The same for a p99 or a worst time, compared with every smaller size. These come from a few
samples, and include other work of the machine."""
GROWTH_SHARE_MIN = 0.1
"""The exponent of the growth is computed only if the growth is more than this share of the figure
at the smallest size."""
UNITS = ("MiB", "%", "ms", "s")


class Measure(NamedTuple):
    """One figure at each size, in the order of the sizes."""

    name: str
    sizes: Sequence[int]
    values: Sequence[float]

    @property
    def unit(self) -> str:
        return self.name.rpartition(", ")[2].split()[0]

    @property
    def is_tail(self) -> bool:
        return "p99" in self.name or "worst" in self.name

    @property
    def exponent(self) -> float | None:
        """k of "grows as size to the k", between the last two sizes."""
        return self._exponent(0.0)

    @property
    def growth_exponent(self) -> float | None:
        """The same exponent of the growth above the smallest size's figure; None if it is small."""
        first, before = self.values[0], self.values[-2]
        return self._exponent(first) if before - first > GROWTH_SHARE_MIN * first else None

    def _exponent(self, floor: float) -> float | None:
        before, last = (value - floor for value in self.values[-2:])
        if before <= 0 or last <= 0:
            return None
        return log(last / before) / log(self.sizes[-1] / self.sizes[-2])

    @property
    def verdict(self) -> str:
        known = [k for k in (self.exponent, self.growth_exponent) if k is not None]
        ratio_min = TAIL_GROWTH_RATIO_MIN if self.is_tail else GROWTH_RATIO_MIN
        if not known or self.values[-1] < ratio_min * self.values[0]:
            return "flat"
        # A single low figure before the last makes the last step steep without any growth.
        is_highest = self.values[-1] >= (ratio_min if self.is_tail else 1.0) * max(self.values[:-1])
        if max(known) > STEEP and is_highest:
            return "WORSE THAN LINEAR"
        return "linear" if max(known) > 0.85 else "less than linear"

    def cells(self) -> list[str]:
        exponents = ["" if k is None else f"{k:.2f}" for k in (self.exponent, self.growth_exponent)]
        return [self.name, *map(_number, self.values), *exponents, self.verdict]


def measures(points: Mapping[int, Figures]) -> list[Measure]:
    """Measures by name, each over the sizes that have it (at least two)."""
    names = dict.fromkeys(name for figures in points.values() for name in figures)
    found = []
    for name in names:
        has = [size for size, figures in points.items() if name in figures]
        if len(has) > 1:
            found.append(Measure(name, has, [points[size][name] for size in has]))
    return found


def section(title: str, points: Mapping[int, Figures]) -> str:
    """The table of one curve."""
    sizes = list(points)
    head = [title, *(f"{size:,}" for size in sizes), "k", "k of the growth", ""]
    rows = []
    for measure in measures(points):
        cells = measure.cells()
        # The smallest sizes may not have this figure.
        rows.append([cells[0], *[""] * (len(sizes) - len(measure.sizes)), *cells[1:]])
    return report.table(head, rows)


def steep(found: Mapping[str, Mapping[int, Figures]]) -> list[str]:
    """Measures that grow faster than linearly, with the titles of their curves."""
    return [
        f"{measure.name.rpartition(',')[0]} over {title}"
        for title, points in found.items()
        for measure in measures(points)
        if measure.verdict.isupper()
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plot(found: Mapping[str, Mapping[int, Figures]], path: Path) -> None:
    """Plot one row per curve, one column per unit. p99 and worst are in the tables only."""
    size = (3.2 * len(UNITS), 2.6 * len(found))
    with plots.saved(path, size, len(found), len(UNITS)) as grid:
        for (title, points), line in zip(found.items(), grid.reshape(len(found), -1), strict=True):
            for unit, axes in zip(UNITS, line, strict=True):
                for measure in measures(points):
                    if measure.unit == unit and not measure.is_tail:
                        name = measure.name.rpartition(", ")[0]
                        axes.plot(measure.sizes, measure.values, marker=".", label=name)
                axes.set_xscale("log")
                axes.set_yscale("log" if unit == "ms" else "linear")
                axes.minorticks_off()
                axes.set_ylim(bottom=None if unit == "ms" else 0)
                axes.set_xlabel(title)
                axes.set_ylabel(unit)
                axes.spines[["top", "right"]].set_visible(False)
                if axes.lines:
                    axes.legend(frameon=False, fontsize=6)
                else:
                    axes.set_visible(False)
