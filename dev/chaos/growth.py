"""Curves of a chaos run: memory, descriptors and lag of each broker. Finds curves that grow."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import NamedTuple, Self

from dev import plots
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.processes.waiting import join

EVERY_S = 2.0
MIB = 2**20
POINTS = 100
"""The approximate number of points of a curve. It keeps the image small after long runs."""


class Sample(NamedTuple):
    """One sample of a broker. `lag_mib` is how far its log is behind the topic's longest log."""

    seconds: float
    broker_id: int
    resident_mib: float
    descriptors: float
    lag_mib: float


MEASURES: Mapping[str, tuple[float, float]] = {
    "resident_mib": (1.3, 24.0),
    "descriptors": (1.3, 50.0),
    "lag_mib": (1.5, 1.0),
}
"""The rise of a median that counts as growth. It must exceed both a ratio and a difference."""


def by_broker(samples: Iterable[Sample]) -> list[tuple[int, list[Sample]]]:
    """The samples of each broker, in order of its id."""
    found: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.broker_id].append(sample)
    return sorted(found.items())


def grown(samples: Iterable[Sample]) -> list[str]:
    """Measures whose median in the last third of a run exceeds that in the second, by broker."""
    found = []
    for broker_id, rows in by_broker(samples):
        third = len(rows) // 3
        if not third:
            continue
        for name, (ratio, difference) in MEASURES.items():
            before = median(getattr(row, name) for row in rows[third : 2 * third])
            after = median(getattr(row, name) for row in rows[2 * third :])
            if after > ratio * before and after - before > difference:
                found.append(f"{name} of broker {broker_id}: {before:.1f}, then {after:.1f}")
    return found


def table(samples: Iterable[Sample]) -> list[list[str]]:
    """First, last and greatest of each measure, by broker."""
    return [
        [
            str(broker_id),
            *(
                f"{getattr(rows[0], name):.1f}, {getattr(rows[-1], name):.1f},"
                f" {max(getattr(row, name) for row in rows):.1f}"
                for name in MEASURES
            ),
        ]
        for broker_id, rows in by_broker(samples)
    ]


def draw(samples: Iterable[Sample], path: Path) -> None:
    """One picture for each measure, one curve for each broker."""
    of_brokers = by_broker(samples)
    with plots.saved(path, (8, 2.5), columns=len(MEASURES)) as axes:
        for axis, name in zip(axes, MEASURES, strict=True):
            for broker_id, every in of_brokers:
                rows = every[:: max(1, len(every) // POINTS)]
                minutes = [row.seconds / 60 for row in rows]
                axis.plot(
                    minutes, [getattr(row, name) for row in rows], label=f"broker {broker_id}"
                )
            axis.set(title=name.replace("_mib", ", MiB"), xlabel="minutes", ylim=(0, None))
        axes[0].legend(fontsize=7)


class Sampler:
    """Samples the running brokers every two seconds, from `watch` to the end of the context."""

    def __init__(self, topic: str) -> None:
        self.samples: list[Sample] = []
        self._topic = topic
        self._is_stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, cluster: FaultCluster) -> None:
        self._thread = threading.Thread(target=self._run, args=(cluster,), name="sampler")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_stopped.set()
        if self._thread is not None:
            join(self._thread)

    def _run(self, cluster: FaultCluster) -> None:
        start = time.monotonic()
        while not self._is_stopped.wait(EVERY_S):
            logs = {
                broker_id: sum(map(self._log_bytes, homes))
                for broker_id, homes in cluster.log_dirs.items()
            }
            for broker_id, broker in cluster.brokers.items():
                with suppress(OSError):  # it ended meanwhile
                    if broker.running:
                        sample = Sample(
                            time.monotonic() - start,
                            broker_id,
                            broker.resident_bytes() / MIB,
                            len(os.listdir(f"/proc/{broker.pid}/fd")),
                            (max(logs.values()) - logs[broker_id]) / MIB,
                        )
                        self.samples.append(sample)

    def _log_bytes(self, home: Path) -> int:
        total = 0
        for path in home.glob(f"{self._topic}-*[0-9]/*.log"):
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total
