"""What `scripts/bench --kafka` found, as a table, as JSON and as a plot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from pathlib import Path
from statistics import median

from scripts import _plots
from scripts._bench_kafka_meter import Usage
from scripts._bench_kafka_rows import Measured, Row
from scripts._bench_kafka_systems import System

GB = 1e9
MIB = 2**20
AHEAD, BEHIND = "#2c7a4b", "#b3541e"
HEAD = (
    *("what", "unit", "kafkapy", "runs", "Apache Kafka", "runs", "ratio", "ahead"),
    *("processor s/GB", "resident MiB", "the limit"),
)


@dataclass
class Line:
    """One row's runs by system; the usage of the load it was measured in."""

    row: Row
    values: defaultdict[System, list[float]] = field(default_factory=lambda: defaultdict(list))
    usages: defaultdict[System, list[tuple[Usage, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def middle(self, system: System) -> float:
        return median(self.values[system])

    @property
    def is_complete(self) -> bool:
        return all(self.values[system] for system in System)

    @property
    def ratio(self) -> float:
        """Ours to theirs."""
        theirs = self.middle(System.APACHE)
        ours = self.middle(System.KAFKAPY)
        if ours == theirs:
            return 1.0
        return ours / theirs if theirs else inf

    @property
    def advantage(self) -> float:
        """How many times better ours is."""
        if self.row.more_is_better:
            return self.ratio
        return 1 / self.ratio if self.ratio else inf

    def cpu_s_per_gb(self, system: System) -> float | None:
        found = [usage.cpu_s / moved * GB for usage, moved in self.usages[system] if moved]
        return median(found) if found else None

    def resident_mib(self, system: System) -> float | None:
        found = [usage.resident_bytes / MIB for usage, _ in self.usages[system]]
        return median(found) if found else None

    def limits(self, system: System) -> str:
        found = [usage.limit for usage, _ in self.usages[system]]
        return max(set(found), key=found.count) if found else ""

    def cells(self) -> list[str]:
        cells = [self.row.name, self.row.unit]
        for system in System:
            runs = self.values[system]
            cells.append(_number(median(runs)))
            cells.append(f"{_number(min(runs))} - {_number(max(runs))}")
        ahead = "yes" if self.advantage >= 1 else "NO"
        cells += [f"{self.ratio:.2f}", ahead]
        cells.append(_pair([self.cpu_s_per_gb(system) for system in System], 2))
        cells.append(_pair([self.resident_mib(system) for system in System], 0))
        limits = [self.limits(system) or "-" for system in System]
        cells.append(" / ".join(limits) if any(self.usages.values()) else "")
        return cells

    def figures(self) -> dict[str, object]:
        """For JSON."""
        return {
            "name": self.row.name,
            "unit": self.row.unit,
            "more_is_better": self.row.more_is_better,
            "ratio": _finite(self.ratio),
            "runs": {
                system.value: [_finite(value) for value in self.values[system]] for system in System
            },
            "cpu_s_per_gb": {system.value: self.cpu_s_per_gb(system) for system in System},
            "resident_mib": {system.value: self.resident_mib(system) for system in System},
            "limit": {system.value: self.limits(system) for system in System},
        }


class Results:
    """All lines, in the order in which their rows were first measured."""

    def __init__(self) -> None:
        self._lines: dict[Row, Line] = {}

    def add(self, system: System, rows: Sequence[Row], measured: Measured) -> None:
        for row, value in zip(rows, measured.values, strict=True):
            line = self._lines.setdefault(row, Line(row))
            line.values[system].append(value)
            if measured.usage is not None:
                line.usages[system].append((measured.usage, measured.moved_bytes))

    @property
    def lines(self) -> list[Line]:
        """Those that both systems have."""
        return [line for line in self._lines.values() if line.is_complete]

    def summary(self) -> str:
        """How the goals of the table stand, in a sentence."""
        lines = self.lines
        rates = [line.ratio for line in lines if line.row.more_is_better]
        ahead = sum(line.advantage >= 1 for line in lines)
        text = f"Ahead in {ahead} of {len(lines)} rows"
        if rates:
            text += f"; rates: median ratio {median(rates):.2f}, least {min(rates):.2f}"
        for name, measure in (("processor", Line.cpu_s_per_gb), ("resident", Line.resident_mib)):
            pairs = [(measure(x, System.KAFKAPY), measure(x, System.APACHE)) for x in lines]
            ratios = [ours / theirs for ours, theirs in pairs if ours and theirs]
            if ratios:
                text += f"; {name}: median ratio {median(ratios):.2f}, greatest {max(ratios):.2f}"
        return text + "."


def _number(value: float) -> str:
    if isinf(value):
        return "not kept"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return None if isinf(value) else value


def _pair(values: Sequence[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return " / ".join(f"{value:,.{digits}f}" for value in known) if len(known) == 2 else ""


def plot(lines: Sequence[Line], path: Path, caption: str) -> None:
    """A bar a row: how many times better kafkapy is than Apache Kafka (1: the same)."""
    least, most = 1 / 64, 64.0
    with _plots.saved(path, (9, 0.5 + 0.2 * len(lines))) as axes:
        shown = [min(max(line.advantage, least), most) for line in lines]
        colours = [AHEAD if value >= 1 else BEHIND for value in shown]
        places = range(len(lines))
        # From 1, on a scale of doublings.
        axes.barh(places, [value - 1 for value in shown], left=1, color=colours, height=0.7)
        axes.set_xscale("log", base=2)
        axes.set_yticks(places, [line.row.name for line in lines])
        axes.invert_yaxis()
        axes.axvline(1, color="black", linewidth=0.8)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
        axes.set_xlabel(caption)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.margins(y=0.01)
        for place, line in zip(places, lines, strict=True):
            at = min(max(line.advantage, least), most)
            side = "left" if at >= 1 else "right"
            text = f"over {most:g}x" if line.advantage > most else f"{line.advantage:.1f}x"
            axes.text(at, place, f" {text} ", va="center", ha=side)
