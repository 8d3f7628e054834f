"""`scripts/bench --growth`: one kafkapy broker as its work grows.

    scripts/bench --growth [--quick] [--only WORD] [--json FILE] [--no-write]

Partitions, open connections, waiting fetches, consumer groups and the size of a log grow on a
broker of their own each. Writes docs/GROWTH.md and the plot beside it. 11 minutes; --quick: 2.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
from argparse import Namespace
from pathlib import Path

from scripts import _bench_growth_meter as meter
from scripts import _bench_growth_page as page
from scripts import _report
from scripts._bench_growth_curves import CURVES, Curve
from scripts._bench_growth_meter import Figures

PLOT = "growth.svg"


def measured(curve: Curve, is_quick: bool) -> dict[int, Figures]:
    """The figures by size; told as they come."""
    windows = meter.QUICK if is_quick else meter.FULL
    sizes = curve.quick if is_quick else curve.full
    found: dict[int, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="kafkapy-growth-", ignore_cleanup_errors=True) as path:
        for size, figures in curve.grow(Path(path, "run"), sizes, windows):
            found[size] = figures
            told = "; ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"{size:>7,} {curve.title}: {told}", flush=True)
    return found


def run(options: Namespace, document: Path) -> int:
    """Measure, print, and write the document unless told not to; 0."""
    # Each connection is a descriptor here and one in the broker, which inherits the limit.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    machine = _report.machine()
    curves = [curve for curve in CURVES if options.only in curve.title]
    found = {curve.title: measured(curve, options.quick) for curve in curves}
    about = (
        f"{_report.today()}, {_report.kafkapy_version()}, {machine} before the first run and"
        f" {os.getloadavg()[0]:.1f} after the last."
    )
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
than 1.15, and more than twice the figure at any smaller size, counts as worse than linear.

*At rest* is 15 s in which nobody asks anything. After that a client asks for each thing in turn,
100 times a second for 6 s; *worst* is the longest that a produce took meanwhile, and so the longest
that the broker did something else. The partitions are of topics of 1,000. Every waiting fetch is of
the same partition, from a connection of its own. A group has one member and committed offsets of
ten partitions. The log is of batches of 1 MiB, every byte valid, whose zeros are holes of sparse
files: reading them costs no disk.
"""
