"""`scripts/bench --growth`: one kafkapy broker as its work grows.

    scripts/bench --growth [--quick] [--only WORD] [--json FILE] [--no-write]

Measures growing numbers of partitions, topics, open connections, waiting fetches and consumer
groups, and a growing log, each on a broker of its own. Writes docs/evidence/growth.md and the plot
beside it. 12 minutes, at most 25; --quick: 2.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from dev import report
from dev.bench import growth_meter as meter
from dev.bench import growth_page as page
from dev.bench.growth_curves import CURVES, Curve
from dev.bench.growth_meter import Figures

PLOT = "growth.svg"
OPEN_FILES = 12_000
"""For 5,000 connections, and the broker's logs, which get half of its descriptors, but at most
4,096."""
LIMIT_S = 25 * 60.0
"""After this time, on a machine that is busy with other work, the larger sizes are left out."""


def measured(curve: Curve, is_quick: bool, deadline: float) -> dict[int, Figures]:
    """Measure and print a curve; returns the figures by size. Stops at the deadline (monotonic)."""
    windows = meter.QUICK if is_quick else meter.FULL
    sizes = curve.quick if is_quick else curve.full
    found: dict[int, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="kafkapy-growth-", ignore_cleanup_errors=True) as path:
        for size, figures in curve.grow(Path(path, "run"), sizes, windows):
            found[size] = figures
            told = "; ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"{size:>7,} {curve.title}: {told}", flush=True)
            if time.monotonic() > deadline:
                break
    return found


def run(options: Namespace, document: Path) -> int:
    """Measure, print, and write the document unless `--no-write`. Returns the exit status."""
    # Each connection is a descriptor here and one in the broker, which inherits the limit.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= hard < OPEN_FILES:  # -1: no limit
        print(f"scripts/bench: --growth opens {OPEN_FILES:,} files, and ulimit -Hn is {hard:,}",
              file=sys.stderr)  # fmt: skip
        return 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    machine = report.machine()
    curves = [curve for curve in CURVES if options.only in curve.title]
    deadline = time.monotonic() + LIMIT_S
    found = {curve.title: measured(curve, options.quick, deadline) for curve in curves}
    left_out = [
        f"{max(sizes):,} {curve.title}"
        for curve in curves
        if (sizes := {*(curve.quick if options.quick else curve.full)} - found[curve.title].keys())
    ]
    about = (
        f"{report.today()}, {report.kafkapy_version()}, {machine} before the first run and"
        f" {os.getloadavg()[0]:.1f} after the last."
    )
    if left_out:
        about += f" The machine was too busy for all sizes, up to {', '.join(left_out)}."
    steep = page.steep(found)
    verdict = f"Worse than linear: {'; '.join(steep) if steep else 'nothing'}."
    tables = "\n\n".join(page.section(title, points) for title, points in found.items())
    print(f"\n{tables}\n\n{verdict}")
    if options.json:
        options.json.write_text(json.dumps({"about": about, "curves": found}, indent=1))
    if not options.no_write and not options.only:
        page.plot(found, document.parent / PLOT)
        document.write_text(f"{HEAD}\n{about} **{verdict}**\n\n![growth]({PLOT})\n\n{tables}\n")
    return 0


HEAD = """# Cost as work grows

Written by `scripts/bench --growth`. One kafkapy broker with its default configs on loopback, asked
by one client; in each table one thing grows and the rest stays. *k* is the exponent between the
last two sizes: the figure grows as the size to the power of k (1: linear). *k of the growth* is
that of what lies above the figure at the smallest size, where that is enough to tell. What is more
than 1.15, and at least twice the figure at the smallest size, counts as worse than linear; a p99 or
a worst time, which are few samples, only if it is ten times that of every smaller size. *flat* is
what has not doubled.

*At rest* is 15 s in which nobody asks anything. After that a client asks for each thing in turn,
100 times a second for 6 s; *worst* is the longest that a produce took meanwhile, and so the longest
that the broker did something else. *processor* is the broker's time, not the clock's, in the mean
of 20. The partitions are of topics of 1,000;
the topics have one partition each, and are made one after the other. Every waiting fetch is of the
same partition, from a connection of its own. A group has one member and committed offsets of ten
partitions. The log is of batches of 1 MiB, every byte valid, whose zeros are holes of sparse files:
reading them costs no disk.

What is linear by design: memory (a partition 10 KiB with its files' indexes and its znodes, a
connection 3 KiB, a waiting fetch 4 KiB more, a group 6 KiB), answers that tell of everything
(Metadata of all topics, ListGroups; a little more than linear once they leave the processor's
cache), the start and the clean stop (each log is opened or closed, and its leader epoch written),
and what comes round: each second all logs are asked whether they rolled (2 ms for 10,000), every
5 s their high watermarks are written (5 ms), every 5 minutes their retention is looked at, 50 at a
time. A look-up by time asks the segments before it for their last times, as Kafka does. What was
worse, and why it is not any more: `decisions/0022-cost-as-work-grows.md`.
"""
