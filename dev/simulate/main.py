"""Runs the cluster simulator: one seed to look at, or many to judge (`scripts/simulate`).

The exit status is 1 if a seed broke a promise; each such seed is printed with its trace's tail.
With --reach it is 1 if something that seeds must come to was never reached.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import kafkapy
from dev.simulate import reach
from dev.simulate.code_digest import code_digest
from tests.simulation.simulation import Outcome, simulate

_SEEDS_PER_PROCESS = 10
_PROGRESS_EVERY_S = 1.0
_KAFKAPY: Final = Path(kafkapy.__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this one, line by line")
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many to run (200)")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="N", help="the first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--reach", action="store_true", help="count what the seeds come to")
    parser.add_argument("--write", action="store_true", help="into docs/evidence/ (with --reach)")
    given = parser.parse_args(arguments)
    if given.reach:
        return reach.report(given.first, given.seeds, given.jobs, given.write)
    if given.seed is not None:
        return replay(given.seed)
    return run_many(range(given.first, given.first + given.seeds), given.jobs)


def replay(seed: int) -> int:
    """Run one seed and print everything that happens."""
    outcome = simulate(seed, echo=print)
    print(f"\ntrace {outcome.digest}, {outcome.simulated_s:.1f} simulated seconds")
    for partition, reason in outcome.losses.items():
        print(f"allowed loss in {partition}: {reason}")
    print(f"violation: {outcome.violation}" if outcome.violation else "no promise was broken")
    return 1 if outcome.violation else 0


def run_many(seeds: range, jobs: int) -> int:
    """Run seeds on `jobs` processors and print a summary, also after an interrupt."""
    began_s = time.monotonic()
    summary = Summary()
    with ProcessPoolExecutor(jobs, initializer=_ignore_interrupts) as pool:
        outcomes = pool.map(simulate, seeds, chunksize=_SEEDS_PER_PROCESS)
        try:
            for outcome in _with_progress(outcomes, len(seeds)):
                if outcome.violation:
                    print(f"{outcome.report()}\n", flush=True)
                summary.add(outcome)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    print(summary.text(time.monotonic() - began_s), flush=True)
    return 1 if summary.failed else 0


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _with_progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    """Yield the outcomes, and show their number on a terminal."""
    shown_s = time.monotonic()
    for done, outcome in enumerate(outcomes, 1):
        yield outcome
        now_s = time.monotonic()
        if sys.stderr.isatty() and (now_s - shown_s > _PROGRESS_EVERY_S or done == total):
            shown_s = now_s
            print(f"\r{done} of {total} seeds", end="\n" if done == total else "", file=sys.stderr)


class Summary:
    """Totals over many seeds."""

    def __init__(self) -> None:
        self.seeds = 0
        self.failed: list[int] = []
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.lossy: list[int] = []
        self.simulated_s = 0.0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.simulated_s += outcome.simulated_s
        self.counts += outcome.counts
        if outcome.violation:
            self.failed.append(outcome.seed)
        if outcome.losses:
            self.lossy.append(outcome.seed)
            self.reasons.update({reason.partition(":")[0] for reason in outcome.losses.values()})

    def text(self, wall_s: float) -> str:
        """The summary as lines of text."""
        lines = [
            f"{self.seeds} seeds, {self.simulated_s:.0f} simulated seconds in {wall_s:.0f} s:"
            f" {len(self.failed)} broke a promise",
            f"code {code_digest(_KAFKAPY)}, without docstrings and comments",
            *(f"  {count:>9,} {name}" for name, count in self.counts.most_common()),
            f"{len(self.lossy)} seeds in which Kafka's rules allow a loss",
            *(f"  {count:>9,} {reason}" for reason, count in self.reasons.most_common()),
        ]
        if self.lossy:
            lines.append(f"  such as {', '.join(map(str, self.lossy[:20]))}")
        if self.failed:
            lines.append(f"failed: {', '.join(map(str, self.failed))}")
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
