"""`scripts/bench --cores`: brokers of one machine on more and more of its cores.

    scripts/bench --cores [--quick] [--only WORD] [--json FILE] [--no-write]

kafkapy with 1, 2, 4 processes and so on up to the machine's cores (`kafkapy server start
--processes`), and Apache Kafka 3.9 and 4 with one broker, which uses all cores that it has. All get
every load by turns, until three runs in a row of each agree. There are as many clients as cores,
in processes of their own; each uses one topic, and the topics are spread over the brokers. Where
there are four cores or more, brokers have one half of them and clients the other, unless there are
more brokers than that. Without Java there is no Apache Kafka in the table. Writes the part "Every
core" of docs/evidence/benchmarks.md. --quick: the second of two runs of each, with less work.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from dev import report
from dev.bench import kafka_clients as clients
from dev.bench import kafka_meter as meter
from dev.bench.cores_systems import OneMachine, all_systems, on_cores
from dev.bench.kafka_meter import ClientFailed
from dev.bench.kafka_rows import MB, Measured, Row
from dev.bench.kafka_turns import in_turn

TITLE = "Every core"
SMALL_BYTES = 100
VALUE_BYTES = 1000
RATE = 1000
CONNECTIONS = 5
GB = 1e9


class Scale(NamedTuple):
    """Work of each client: values moved, small requests, seconds at a fixed rate."""

    bytes: int
    requests: int
    seconds: float


FULL = Scale(150 * MB, 100_000, 5.0)
QUICK = Scale(40 * MB, 20_000, 1.5)
FAILURES = (ClientFailed, AssertionError, OSError, RuntimeError)


class Session:
    """A system under load, with clients in processes of their own."""

    def __init__(self, machine: OneMachine, scale: Scale) -> None:
        self.machine = machine
        self.scale = scale
        self._clients = max(2, len(os.sched_getaffinity(0)))
        self._made = 0

    def topics(self) -> list[str]:
        """A new topic for each client."""
        self._made += 1
        names = [f"bench-{self._made}-{index}" for index in range(self._clients)]
        self.machine.create_topics(names)
        return names

    def run(
        self, load: str, topics: Sequence[str], *, tls: bool, **arguments: object
    ) -> tuple[list[clients.Figures], meter.Usage]:
        """A load of `kafka_clients.LOADS` by all clients at the same time."""
        commands = []
        for index, topic in enumerate(topics):
            plain, secured = self.machine.addresses(index % self.machine.processes)
            servers = secured if tls else plain
            more = {"ca": self.machine.authority} if tls else {}
            commands.append(
                clients.python_client(load, servers=servers, topic=topic, **arguments, **more)
            )
        with on_cores(self.machine.cores.clients):
            outputs, usage = meter.run(commands, self.machine.pids)
        return [clients.figures(output) for output in outputs], usage


def together(figures: Sequence[clients.Figures], amount: float) -> float:
    """The rate of clients side by side, each of which did `amount`: all of it, over the time from
    the first start to the last end."""
    started = min(each["ended"] - amount / each["rate"] for each in figures)
    return amount * len(figures) / (max(each["ended"] for each in figures) - started)


class Task(NamedTuple):
    """A load and its row."""

    row: Row
    run: Callable[[Session], Measured]


def _small(session: Session) -> Measured:
    records = session.scale.requests
    found, usage = session.run("burst", session.topics(), tls=False, records=records)
    moved = float(records * SMALL_BYTES * len(found))
    return Measured([together(found, records) / 1000], usage, moved)


def _produced(tls: bool) -> Callable[[Session], Measured]:
    def run(session: Session) -> Measured:
        return _moved(session, "produce", session.topics(), tls, value_bytes=VALUE_BYTES)

    return run


def _consumed(tls: bool) -> Callable[[Session], Measured]:
    def run(session: Session) -> Measured:
        topics = session.topics()
        _moved(session, "produce", topics, False, value_bytes=VALUE_BYTES)
        return _moved(session, "consume", topics, tls)

    return run


def _moved(
    session: Session, load: str, topics: Sequence[str], tls: bool, **arguments: object
) -> Measured:
    records = session.scale.bytes // VALUE_BYTES // 10_000 * 10_000
    found, usage = session.run(load, topics, tls=tls, records=records, **arguments)
    moved = float(records * VALUE_BYTES)
    return Measured([together(found, records) * VALUE_BYTES / MB], usage, moved * len(found))


def _p99(value_bytes: int, tls: bool) -> Callable[[Session], Measured]:
    def run(session: Session) -> Measured:
        found, usage = session.run(
            "latency", session.topics(), tls=tls, rate=RATE, seconds=session.scale.seconds,
            connections=CONNECTIONS, value_bytes=value_bytes,
        )  # fmt: skip
        return Measured([max(each["p99"] for each in found)], usage)

    return run


def _guarded(tls: bool) -> tuple[Task, ...]:
    how = "1 kB over TLS" if tls else "1 kB"
    return (
        Task(Row(f"{how}: produce", "MB/s"), _produced(tls)),
        Task(Row(f"{how}: consume", "MB/s"), _consumed(tls)),
        Task(Row(f"{how}, {RATE:,}/s of each client: p99", "ms", False), _p99(VALUE_BYTES, tls)),
    )


TASKS = (
    Task(Row("one record of 100 B a request: rate", "k/s"), _small),
    Task(
        Row(f"one record of 100 B a request, {RATE:,}/s of each client: p99", "ms", False),
        _p99(SMALL_BYTES, False),
    ),
    *_guarded(tls=False),
    *_guarded(tls=True),
)


class Bench:
    """Results by row and system."""

    def __init__(self, machines: Sequence[OneMachine], scale: Scale) -> None:
        self.machines = machines
        self.scale = scale
        self.results: dict[Row, dict[str, Measured]] = {}
        self.failures: list[str] = []

    def run(self, tasks: Sequence[Task], is_quick: bool) -> None:
        sessions = {each.name: Session(each, self.scale) for each in self.machines}
        names = list(sessions)
        for task in tasks:

            def once(name: str, task: Task = task) -> Measured:
                os.sync()  # the bytes of the run before are not this one's to wait for
                return task.run(sessions[name])

            try:
                found = twice(once, names) if is_quick else in_turn(once, names)
            except FAILURES as failure:
                print(f"NOT MEASURED {task.row.name}: {failure}", file=sys.stderr, flush=True)
                self.failures.append(task.row.name)
                continue
            self.results[task.row] = found
            print(" | ".join(cells(task.row, list(found.values()))), flush=True)

    def tables(self) -> str:
        """The table of the rows, and that of the brokers' processor time."""
        names = [each.name for each in self.machines]
        rows = [cells(row, list(found.values())) for row, found in self.results.items()]
        costs = [
            [row.name, *(_cost(each) for each in found.values())]
            for row, found in self.results.items()
            if all(each.moved_bytes for each in found.values())
        ]
        return (
            f"{report.table(['what', 'unit', *names], rows)}\n\nProcessor seconds of the brokers a"
            f" GB of values:\n\n{report.table(['what', *names], costs)}"
        )


def twice(once: Callable[[str], Measured], names: Sequence[str]) -> dict[str, Measured]:
    """The second run of each: in the first one, a JVM compiles."""
    for name in names:
        once(name)
    return {name: once(name) for name in names}


def cells(row: Row, found: Sequence[Measured]) -> list[str]:
    """The row as a reader sees it: each figure, and its share of that of one process."""
    first = found[0].values[0]
    figures = []
    for each in found:
        value = each.values[0]
        share = f" ({value / first:.2f})" if each is not found[0] and math.isfinite(value) else ""
        figures.append(f"{value:,.3g}{share}")
    return [row.name, row.unit, *figures]


def _cost(measured: Measured) -> str:
    assert measured.usage is not None
    return f"{measured.usage.cpu_s / measured.moved_bytes * GB:.2f}"


def run(options: Namespace, document: Path) -> int:
    """Measure and print; write the page unless told not to. The exit status."""
    machine, missing = report.machine(), dict[str, str]()
    wanted = [task for task in TASKS if options.only in task.row.name]
    if not wanted:
        names = "; ".join(task.row.name for task in TASKS)
        print(f"scripts/bench: no row has {options.only!r} in its name: {names}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-", ignore_cleanup_errors=True) as path:
        machines = all_systems(Path(path), missing)
        bench = Bench(machines, QUICK if options.quick else FULL)
        with ExitStack() as undo:
            for each in machines:
                undo.callback(each.end)
                each.start()
            bench.run(wanted, options.quick)
        about = _about(bench, machine, missing, options.quick)
        print(f"\n{about}\n\n{bench.tables()}", flush=True)
        if options.json:
            figures = {
                row.name: {name: each.values[0] for name, each in found.items()}
                for row, found in bench.results.items()
            }
            options.json.write_text(json.dumps({"about": about, "rows": figures}, indent=1))
        if not options.no_write and not options.only:
            report.replace_part(document, TITLE, f"{about}\n\n{bench.tables()}", "")
    return 1 if bench.failures else 0


def _about(bench: Bench, machine: str, missing: dict[str, str], is_quick: bool) -> str:
    own = [each.name for each in bench.machines if each.cores.brokers != each.cores.clients]
    where = f"with cores apart from the clients': {', '.join(own)}" if own else "on the same cores"
    how = (
        "The second of two runs each"
        if is_quick
        else "Medians of the last three runs, once they agree"
    )
    text = (
        f"{report.today()}, {report.kafkapy_version()}, `scripts/bench --cores`, {machine} before"
        f" the first run. Brokers and clients {where}. One client for each core, each with a topic"
        f" of one partition, acks=all: {bench.scale.bytes // MB} MB by librdkafka, or"
        f" {bench.scale.requests:,} requests, 100 at a time on one connection, or a fixed rate on"
        f" {CONNECTIONS} connections for {bench.scale.seconds:g} s. {how}. A p99 is that of the"
        " slowest client, and counts from when a request was due. In parentheses: divided by the"
        " figure of one process."
    )
    for name, why in missing.items():
        text += f" {name} is left out: {why}."
    if bench.failures:
        text += f" Not measured: {'; '.join(bench.failures)}."
    return text
