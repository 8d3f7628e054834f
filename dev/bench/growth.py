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

TITLE = "# Cost as work grows"
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
            figure_texts = "; ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"{size:>7,} {curve.title}: {figure_texts}", flush=True)
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
        result = report.wrapped(f"**{verdict}** {about}")
        document.write_text(f"{TITLE}\n\n{result}\n\n![growth]({PLOT})\n\n{NOTES}\n{tables}\n")
    return 0


NOTES = """\
`scripts/bench --growth` writes this page. Each table is of one kafkapy broker with default configs
and one client on loopback; one quantity grows, and the others stay.

- *k*: the exponent between the last two sizes. The figure grows as the size to the power of k (1:
  linear).
- *k of the growth*: the same exponent of the part of the figure above that at the smallest size. It
  is empty where this part is too small.
- *worse than linear*: an exponent is above 1.15, and the figure at least twice that at the smallest
  size. A p99 or a worst time is of few samples, and must be ten times that of every smaller size.
- *flat*: the figure has not doubled.
- *at rest*: 15 s without requests.
- *p50*, *p99*: a client sends each request in turn, 100 times a second for 6 s.
- *worst*: the longest produce meanwhile, and so the longest time in which the broker did other
  work.
- *processor*: processor time of the broker, not elapsed time; the mean of 20 requests.
- *partitions*: in topics of 1,000. *topics*: of one partition each, created one after the other.
- *waiting fetches*: all of the same partition, each from its own connection.
- *consumer groups*: of one member, with committed offsets of ten partitions.
- *GiB of one partition*: batches of 1 MiB, every byte valid, whose zeros are holes of sparse files.
  Reading them does not use the disk.

Linear by design:

- memory: a partition 10 KiB with the indexes of its files and its znodes, a connection 3 KiB, a
  waiting fetch 4 KiB more, a group 6 KiB;
- responses about everything: Metadata of all topics, ListGroups. They are a little more than linear
  once they exceed the processor's cache;
- start and clean stop: each log is opened or closed, and its leader epoch written;
- periodic work: each second a check of all logs for a roll (2 ms for 10,000), every 5 s a write of
  their high watermarks (5 ms), every 5 minutes their retention, 50 logs at a time;
- a look-up by timestamp: it reads the last timestamps of the segments before its own, as in Kafka.

[Decision 22](../decisions/0022-cost-as-work-grows.md) describes what was worse than linear, and the
changes.
"""
