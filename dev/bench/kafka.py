"""`scripts/bench --kafka`: one kafkapy broker beside Apache Kafka, on the same work, in turn.

    scripts/bench --kafka [--release 4] [--part NAME] [--quick] [--runs N] [--only WORD] ...

Each round starts a broker of each system and runs every load on both in turn, until the last three
runs of each agree. The systems swap their order in every second round. Then it runs the scenarios
that need brokers of their own. Writes docs/evidence/benchmarks.md, the plot and JSON beside it
after each round: an interrupted run keeps the rounds before. Takes 30 minutes at most, unless
--runs gives the number of rounds. --part: only these rows, under a heading of their own. --quick:
the first load runs until the brokers are warm, and the others run once.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException

from dev import report
from dev.bench import kafka_systems as systems
from dev.bench.kafka_meter import ClientFailed
from dev.bench.kafka_rows import (
    BASE,
    FULL,
    GROUPS,
    MB,
    QUICK,
    Measured,
    Scale,
    Session,
    Task,
)
from dev.bench.kafka_scenarios import ALONE, Scenario
from dev.bench.kafka_systems import Guard, System
from dev.bench.kafka_table import HEAD, Results, plot
from dev.bench.kafka_turns import in_turn
from dev.bench.page_cache import FullPageCache
from tests.harness.processes import apache_kafka

SCENARIOS = "scenarios"
"""The part of the table whose rows need brokers of their own."""
PARTS = (*dict.fromkeys(part for part, _, _ in GROUPS), SCENARIOS)
FAILURES = (ClientFailed, AssertionError, OSError, RuntimeError, KafkaException)
ROUNDS = 3
QUICK_ROUNDS = 1
LIMIT_S = 30 * 60.0
"""The time limit of all rounds. Another round begins only if it would end in time, at the mean
duration of the earlier ones. If the number of rounds is given, there is no limit."""


class Page(NamedTuple):
    """Title and files of the comparison with one release of Apache Kafka."""

    system: System
    release: apache_kafka.Release
    title: str
    files: str
    plot: str
    mode: str


PAGES = {
    3: Page(
        System.APACHE,
        apache_kafka.KAFKA_3,
        "One broker, beside Apache Kafka",
        "benchmarks-kafka.json",
        "kafkapy-and-apache-kafka.svg",
        "ZooKeeper mode",
    ),
    4: Page(
        System.APACHE_4,
        apache_kafka.KAFKA_4,
        "One broker, beside Apache Kafka 4",
        "benchmarks-kafka-4.json",
        "kafkapy-and-apache-kafka-4.svg",
        "KRaft mode, broker and controller in one",
    ),
}


class Bench:
    """Tasks and scale of a benchmark, its rounds, and their results."""

    def __init__(self, options: Namespace, memory: FullPageCache) -> None:
        self.scale: Scale = QUICK if options.quick else FULL
        self.wanted: int = options.runs or (QUICK_ROUNDS if options.quick else ROUNDS)
        self.limit_s = math.inf if options.runs else LIMIT_S
        self.rounds = 0
        self.page = PAGES[options.release]
        self._systems = System.KAFKAPY, self.page.system
        self.results = Results(self._systems)
        self.failures: list[str] = []
        self._is_quick = options.quick
        self._groups = [
            (guard, [task for task in tasks if self._is_wanted(task, part, options)])
            for part, guard, tasks in GROUPS
        ]
        self._scenarios = [one for one in ALONE if self._is_wanted(one, SCENARIOS, options)]
        self._memory = memory

    def _is_wanted(self, one: Task | Scenario, part: str, options: Namespace) -> bool:
        if options.part not in ("", part):
            return False
        # The other rows have the full sizes in their names, and a quick run measures less.
        if options.quick and not one.is_quick:
            return False
        if isinstance(one, Task) and one.needs_kafka_4 and options.release < 4:
            return False
        return any(options.only in row.name for row in one.rows)

    def run(self, after_round: Callable[[], None]) -> None:
        started = time.monotonic()
        for number in range(self.wanted):
            if number and (time.monotonic() - started) / number * (number + 1) > self.limit_s:
                print(f"{number} rounds took all the time there is", file=sys.stderr, flush=True)
                break
            order = [*self._systems] if number % 2 == 0 else [*reversed(self._systems)]
            for guard, tasks in self._groups:
                if tasks:
                    self._group(order, guard, tasks)
            for scenario in self._scenarios:
                for system in order:
                    self._memory.fill()
                    with self._attempt([system], scenario.rows[0].name), _scratch() as directory:
                        found = scenario.run(system, Path(directory, "run"), self.scale)
                        self._scenario_found(system, scenario, found)
            self.rounds += 1
            after_round()

    def _group(self, order: list[System], guard: Guard, tasks: list[Task]) -> None:
        """Run every load on both brokers in turn; the broker without a load is idle.

        Other load of the machine changes more in minutes than in seconds.
        """
        with ExitStack() as brokers:
            self._memory.fill()
            sessions = {system: self._session(system, guard, brokers) for system in order}

            def run(task: Task, system: System) -> Measured:
                # This run must not wait for the writes of the previous one.
                os.sync()
                self._memory.fill()
                measured = task.run(sessions[system])
                sessions[system].delete_topics()
                return measured

            if self._is_quick:
                in_turn(partial(run, BASE), order)
            for task in tasks:
                names = [row.name for row in task.rows]
                with self._attempt(order, names[0]):
                    if self._is_quick:
                        found = {system: run(task, system) for system in order}
                    else:
                        found = in_turn(partial(run, task), order)
                    for system, measured in found.items():
                        self.results.add(system, task.rows, measured)
                        _print_values(system, names, measured.values)

    def _session(self, system: System, guard: Guard, brokers: ExitStack) -> Session:
        directory = Path(brokers.enter_context(_scratch()))
        servers = brokers.enter_context(systems.running(system, directory / "run", guard=guard))
        return Session(servers, self.scale, directory)

    @contextmanager
    def _attempt(self, tried: list[System], name: str) -> Iterator[None]:
        """Report a row that cannot be measured, and go on with the others."""
        try:
            yield
        except FAILURES as failure:
            who = " or ".join(system.value for system in tried)
            text = f"{who}: {name}: {type(failure).__name__} {failure}"
            print(f"NOT MEASURED {text}", file=sys.stderr, flush=True)
            self.failures.append(f"{who}, {name}")

    def _scenario_found(self, system: System, scenario: Scenario, found: list[Measured]) -> None:
        left = list(scenario.rows)
        for measured in found:
            rows, left = left[: len(measured.values)], left[len(measured.values) :]
            self.results.add(system, rows, measured)
            _print_values(system, [row.name for row in rows], measured.values)


def _print_values(system: System, names: list[str], values: list[float]) -> None:
    for name, value in zip(names, values, strict=True):
        print(f"{system.value:>12}  {value:>12,.3f}  {name}", flush=True)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    # Killed brokers may leave files half written.
    return tempfile.TemporaryDirectory(prefix="kafkapy-bench-", ignore_cleanup_errors=True)


def run(options: Namespace, document: Path) -> int:
    """Measure and print; write the documents unless `--no-write`. Returns the exit status."""
    machine = report.machine()
    with tempfile.TemporaryFile(prefix="kafkapy-page-cache-") as file:
        bench = Bench(options, FullPageCache(file))

        def tell() -> None:
            _write_report(bench, machine, options, document)

        bench.run(tell)
    return 1 if bench.failures else 0


def _write_report(bench: Bench, machine: str, options: Namespace, document: Path) -> None:
    """Print the results of the rounds so far, and write them to the documents."""
    results, page = bench.results, bench.page
    table = report.table(HEAD, [line.cells() for line in results.lines])
    print(f"\n{table}\n\n{results.summary()}", flush=True)
    about = (
        f"{report.today()}, {report.kafkapy_version()}, Apache Kafka {page.release.version},"
        f" {machine}"
        f" before the first run and {os.getloadavg()[0]:.1f} after the last. Medians of runs:"
        f" {bench.rounds}. Loads of {bench.scale.bytes // MB} MB, fixed rates for"
        f" {bench.scale.seconds:g} s."
    )
    if bench.failures:
        about += f" Not measured in every run: {'; '.join(sorted(set(bench.failures)))}."
    figures = {"about": about, "rows": [line.figures() for line in results.lines]}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    if options.no_write or options.only:
        return
    head = report.wrapped(f"{about} {results.summary()}")
    if options.part:
        title = f"{page.title}: {options.part}"
        report.replace_part(document, title, f"{head}\n\n{table}", "")
        return
    version = page.release.version
    plot(results.lines, document.parent / page.plot, version)
    document.with_name(page.files).write_text(json.dumps(figures, indent=1) + "\n")
    caption = f"rates of kafkapy divided by those of Apache Kafka {version}"
    notes = NOTES.format(mode=page.mode)
    text = f"{head}\n\n{notes}\n\n![{caption}]({page.plot})\n\n{table}"
    report.replace_part(document, page.title, text, "")


NOTES = """\
- Brokers: both have their default configs, a replication factor of 1 where there is one broker, and
  the same disk. Apache Kafka runs in {mode}, with the JVM flags of its own scripts (1 GiB
  heap, G1). kafkapy keeps its metadata itself; three brokers share a ZooKeeper in both systems.
- Runs: each load runs on both systems in turn, while the other is idle, until three runs in a row
  of either differ by a tenth at most (ten runs at most). A figure is the median of those three, so
  that the JVM's compilation does not count. The first system changes with every round.
- Memory: when a load begins, all memory is page cache. Otherwise a system would pay for memory that
  the virtual machine had returned to its host (`dev/bench/page_cache.py`).
- *produce* is Kafka's ProducerPerformance with its defaults (acks=all, idempotent), and *consume*
  its ConsumerPerformance, unless another client is named. MB/s count values.
- *processor* and *resident*: of the broker processes during the load, kafkapy / Apache Kafka,
  without the clients.
- *the limit*: the busiest thread of the client or of the broker, if it used a processor for 85 % of
  the time, or all processors of the machine. Where it is the client, a faster broker would make no
  difference.
- A latency counts from the time at which its request was due."""
