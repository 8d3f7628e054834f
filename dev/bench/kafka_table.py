"""Results of `scripts/bench --kafka` as a table, as JSON and as a chart."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from pathlib import Path
from statistics import median

from dev.bench.kafka_meter import Usage
from dev.bench.kafka_rows import MB, Measured, Row
from dev.bench.kafka_systems import System
from dev.docs.svg import Bar, bars

GB = 1e9
MIB = 2**20
# Rows of the chart: few enough to be read at a glance.
PLOTTED = (
    *("produce, 1 kB, acks=all, idempotent", "produce, 100 B", "produce, 1 kB, acks=0"),
    *("produce, 1 kB, 100 partitions", "produce, 1 kB, gzip", "produce, 1 kB, lz4"),
    *("produce, 1 kB, zstd", "produce, librdkafka in Python, 100 B"),
    *("produce, librdkafka in Python, 1000 B", "consume from the start, 100 B"),
    *("consume from the start, 1 kB", "consume, librdkafka in Python, 1000 B"),
)
HEAD = (
    *("what", "unit", "kafkapy", "runs", "Apache Kafka", "runs", "ratio", "ahead"),
    *("processor s/GB", "resident MiB", "the limit"),
)


@dataclass
class Line:
    """One row's runs by system, kafkapy first, with the usage of their loads."""

    row: Row
    systems: tuple[System, System]
    values: defaultdict[System, list[float]] = field(default_factory=lambda: defaultdict(list))
    usages: defaultdict[System, list[tuple[Usage, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def middle(self, system: System) -> float:
        return median(self.values[system])

    @property
    def is_complete(self) -> bool:
        return all(self.values[system] for system in self.systems)

    @property
    def ratio(self) -> float:
        """kafkapy's median divided by Apache Kafka's."""
        ours, theirs = map(self.middle, self.systems)
        if ours == theirs:
            return 1.0
        return ours / theirs if theirs else inf

    @property
    def advantage(self) -> float:
        """Factor by which kafkapy is better than Apache Kafka; below 1 it is worse."""
        if self.row.more_is_better:
            return self.ratio
        return 1 / self.ratio if self.ratio else inf

    @property
    def bound(self) -> float:
        """The ratio if kafkapy's broker took no processor time. Where the load kept all processors
        busy, the clients would get that time; elsewhere the ratio stays as it is.
        """
        cost_s_per_gb = self.cpu_s_per_gb(System.KAFKAPY)
        is_busy = self.limits(System.KAFKAPY) == "machine"
        if self.row.unit != "MB/s" or not is_busy or cost_s_per_gb is None:
            return self.ratio
        share = self.middle(System.KAFKAPY) * MB / GB * cost_s_per_gb / (os.cpu_count() or 1)
        return self.ratio / (1 - share)

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
        for system in self.systems:
            runs = self.values[system]
            cells.append(_number(median(runs)))
            cells.append(f"{_number(min(runs))} - {_number(max(runs))}")
        ahead = "yes" if self.advantage >= 1 else "NO"
        cells += [f"{self.ratio:.2f}", ahead]
        cells.append(_pair([self.cpu_s_per_gb(system) for system in self.systems], 2))
        cells.append(_pair([self.resident_mib(system) for system in self.systems], 0))
        limits = [self.limits(system) or "-" for system in self.systems]
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
                system.value: [_finite(value) for value in self.values[system]]
                for system in self.systems
            },
            "cpu_s_per_gb": {system.value: self.cpu_s_per_gb(system) for system in self.systems},
            "resident_mib": {system.value: self.resident_mib(system) for system in self.systems},
            "limit": {system.value: self.limits(system) for system in self.systems},
        }


class Results:
    """All lines, in the order in which their rows were first measured."""

    def __init__(self, systems: tuple[System, System]) -> None:
        self._systems = systems
        self._lines: dict[Row, Line] = {}

    def add(self, system: System, rows: Sequence[Row], measured: Measured) -> None:
        for row, value in zip(rows, measured.values, strict=True):
            line = self._lines.setdefault(row, Line(row, self._systems))
            line.values[system].append(value)
            if measured.usage is not None:
                line.usages[system].append((measured.usage, measured.moved_bytes))

    @property
    def lines(self) -> list[Line]:
        """Lines with runs of both systems."""
        return [line for line in self._lines.values() if line.is_complete]

    def summary(self) -> str:
        """Summary of the table in a sentence: rows ahead, and ratios of rates and resources."""
        lines = self.lines
        rates = [line for line in lines if line.row.more_is_better]
        ahead = sum(line.advantage >= 1 for line in lines)
        text = f"Ahead in {ahead} of {len(lines)} rows"
        if rates:
            middle = median(line.ratio for line in rates)
            bound = median(line.bound for line in rates)
            text += (
                f"; rates: median ratio {middle:.2f} ({bound:.2f} if our broker took no processor"
                f" time), least {min(line.ratio for line in rates):.2f}"
            )
        for name, measure in (("processor", Line.cpu_s_per_gb), ("resident", Line.resident_mib)):
            pairs = [[measure(x, system) for system in self._systems] for x in lines]
            ratios = [ours / theirs for ours, theirs in pairs if ours and theirs]
            if ratios:
                text += f"; {name}: median ratio {median(ratios):.2f}, greatest {max(ratios):.2f}"
        return text + "."


def _number(value: float) -> str:
    if isinf(value):
        return "not kept"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def _finite(value: float) -> float | None:
    """The value, or None if it is infinite: JSON has no infinity."""
    return None if isinf(value) else value


def _pair(values: Sequence[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return " / ".join(f"{value:,.{digits}f}" for value in known) if len(known) == 2 else ""


def plot(lines: Sequence[Line], path: Path, version: str) -> None:
    """Write the chart of the lines that PLOTTED names."""
    found = {line.row.name: line for line in lines}
    rows = {}
    for name in PLOTTED:
        if (line := found.get(name)) is not None:
            middles = [_number(line.middle(system)) for system in line.systems]
            rows[name] = (middles[0], middles[1], line.ratio)
    path.write_text(chart(rows, version))


def chart(rows: Mapping[str, tuple[str, str, float]], version: str) -> str:
    """An SVG of MB/s of kafkapy, of Apache Kafka, and their ratio, by row."""
    return bars(
        f"Rate of kafkapy / rate of Apache Kafka {version}, both warm",
        [
            Bar(name, ratio, f"{ratio:.2f} ({ours} / {theirs} MB/s)")
            for name, (ours, theirs, ratio) in rows.items()
        ],
        1.0,
        "Apache Kafka",
    )
