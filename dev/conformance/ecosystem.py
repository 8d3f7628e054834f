"""Kafka's own applications on kafkapy brokers: `scripts/conformance --apps`.

Kafka Streams, Kafka Connect and MirrorMaker 2 of Apache Kafka 3.9, unmodified, with exactly-once
processing, while brokers and their own processes are killed; the Streams programs are those of
Apache Kafka's system tests, which check their own results.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dev import report
from tests.conformance import connect_apps, mirror_maker, streams_apps
from tests.conformance.java_apps import Finding
from tests.harness.processes import apache_kafka

CHECKS: tuple[Callable[[Path], Finding], ...] = (
    partial(streams_apps.smoke, guarantee="at_least_once"),
    partial(streams_apps.smoke, guarantee="exactly_once_v2"),
    streams_apps.exactly_once,
    partial(streams_apps.exactly_once, apache=(2,)),
    connect_apps.file_to_file,
    mirror_maker.both_ways,
)
PrintLine = Callable[[str], None]


def run(print_line: PrintLine) -> tuple[bool, str]:
    """Run all checks. Returns whether they passed, and a part for docs/evidence/conformance.md."""
    rows: list[list[str]] = []
    failures: list[str] = []
    for check in CHECKS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kafkapy-apps-") as scratch:
            try:
                found = check(Path(scratch))
            except (AssertionError, RuntimeError, OSError) as wrong:
                failures.append(f"{_name(check)}: {wrong}")
                print_line(f"FAILED {failures[-1]}")
                continue
        seconds = time.monotonic() - started
        rows.append([found.program, found.brokers, found.faults, found.found, f"{seconds:.0f} s"])
        print_line(f"  {found.program}: {found.found}")
    head = ["program", "brokers", "what was killed", "found", "took"]
    about = (
        f"{report.today()}, {report.kafkapy_version()}. The applications are those of Apache Kafka"
        f" {apache_kafka.VERSION}, unmodified. Clusters of three brokers share a ZooKeeper; every"
        " topic has three replicas, and `min.insync.replicas` is 2. The two Streams programs come"
        " from Apache Kafka's own system tests and verify their own results."
    )
    text = (
        f"{report.wrapped(about)}\n\n"
        + report.table(head, rows)
        + "".join(f"\n- FAILED: {line.splitlines()[0]}" for line in failures)
    )
    return not failures, text


def _name(check: Callable[[Path], Finding]) -> str:
    inner = check.func if isinstance(check, partial) else check
    return f"{inner.__module__.rpartition('.')[2]}.{inner.__name__}"
