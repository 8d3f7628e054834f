"""`scripts/bench --cores`: brokers on one machine, with a growing number of processes.

    scripts/bench --cores [--quick] [--runs N] [--only WORD] [--json FILE] [--no-write]

The systems are kafkapy with 1, 2, 4 processes and so on up to the machine's cores (`kafkapy server
start --processes`), and Apache Kafka 3.9 and 4 with one broker, which uses all cores that it has.
Every load runs on all systems in turn, until the last three runs of each agree, or N times. The
clients are as many as the cores, in processes of their own. Each client uses one topic, and the
topics are spread over the brokers. With four cores or more, brokers use one half of them and
clients the other, unless the brokers need more than a half. Without Java, the table has no Apache
Kafka. Writes the part "Every core, of N" of docs/evidence/benchmarks.md.

--quick: less work, and the figures of the second of two runs of each. --json: rows that the file
already has are not measured again, so that an interrupted run can be continued.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import textwrap
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dev import report
from dev.bench import kafka_clients as clients
from dev.bench import kafka_meter as meter
from dev.bench.cores_loads import BATCH_RECORDS, SMALL_BYTES, VALUE_BYTES, together
from dev.bench.cores_systems import OneMachine, all_systems, on_cores
from dev.bench.kafka_meter import ClientFailed
from dev.bench.kafka_rows import MB, Measured, Row
from dev.bench.kafka_turns import RUNS_MAX, in_turn

TITLE = "Every core, of {}"
RATE = 1000
CONNECTIONS = 5
GB = 1e9


class Scale(NamedTuple):
    """Work of each client: seconds of each load, and batches in the topics that are consumed."""

    seconds: float
    batches: int


FULL = Scale(1.5, 2000)
QUICK = Scale(1.0, 1000)
FAILURES = (ClientFailed, AssertionError, OSError, RuntimeError)


class Session:
    """A system under load, with clients in processes of their own."""

    def __init__(self, machine: OneMachine, scale: Scale) -> None:
        self.machine = machine
        self.scale = scale
        self._clients = max(2, len(os.sched_getaffinity(0)))
        self._made = 0

    @contextmanager
    def topics(self, clients: int = 0) -> Iterator[list[str]]:
        """A new topic for each client; by default there are as many clients as cores."""
        self._made += 1
        count = clients or self._clients
        names = [f"bench-{self._made}-{index}" for index in range(count)]
        self.machine.create_topics(names)
        yield names
        self.machine.delete_topics(names)

    def run(
        self, load: str, topics: Sequence[str], *, tls: bool = False, **arguments: object
    ) -> tuple[list[Any], meter.Usage]:
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
        return [clients.result(output) for output in outputs], usage


class Task(NamedTuple):
    """A load and its row."""

    row: Row
    run: Callable[[Session], Measured]


def _rate(load: str, unit_amount: float, value_bytes: int, tls: bool) -> Callable[..., Measured]:
    """A load of `cores_loads`; `unit_amount` is one unit of the row."""

    def run(session: Session) -> Measured:
        with session.topics() as topics:
            if load == "fetch":
                session.run("side by side: fill", topics, batches=session.scale.batches)
            found, usage = session.run(
                f"side by side: {load}", topics, tls=tls, seconds=session.scale.seconds
            )
        done = sum(samples[-1][1] for samples in found)
        return Measured([together(found) / unit_amount], usage, done * value_bytes)

    return run


def _p99(value_bytes: int, tls: bool) -> Callable[[Session], Measured]:
    def run(session: Session) -> Measured:
        # Clients of a fixed rate never sleep: two on a core would measure each other.
        with session.topics(len(session.machine.one_half)) as topics:
            found, usage = session.run(
                "latency", topics, tls=tls, rate=RATE, seconds=session.scale.seconds,
                connections=CONNECTIONS, value_bytes=value_bytes,
            )  # fmt: skip
        return Measured([max(each["p99"] for each in found)], usage)

    return run


def _tasks(how: str, tls: bool) -> tuple[Task, ...]:
    at_rate = f"{RATE:,}/s of each client: p99"
    small, large = SMALL_BYTES, VALUE_BYTES
    return (
        Task(Row(f"{how}{small} B a request: rate", "k/s"), _rate("small", 1000, small, tls)),
        Task(Row(f"{how}{small} B a request, {at_rate}", "ms", False), _p99(small, tls)),
        Task(Row(f"{how}1 kB: produce", "MB/s"), _rate("produce", MB, 1, tls)),
        Task(Row(f"{how}1 kB: consume", "MB/s"), _rate("fetch", MB, 1, tls)),
        Task(Row(f"{how}1 kB a request, {at_rate}", "ms", False), _p99(large, tls)),
    )


TASKS = (*_tasks("", tls=False), *_tasks("TLS, ", tls=True))


class Cell(NamedTuple):
    """A figure, and the brokers' processor seconds per GB of values (None for a fixed rate)."""

    value: float
    cost: float | None


class Bench:
    """Results by row and system, kept in a file if there is one."""

    def __init__(self, machines: Sequence[OneMachine], scale: Scale, file: Path | None) -> None:
        self.machines = machines
        self.scale = scale
        self.results: dict[str, dict[str, Cell]] = {}
        self.failures: list[str] = []
        self._file = file
        if file is not None and file.exists():
            for row, found in json.loads(file.read_text()).items():
                self.results[row] = {name: Cell(*cell) for name, cell in found.items()}

    def run(self, tasks: Sequence[Task], is_quick: bool, most: int) -> None:
        sessions = {each.name: Session(each, self.scale) for each in self.machines}
        names = list(sessions)
        for task in tasks:
            if task.row.name in self.results:
                continue

            def once(name: str, task: Task = task) -> Measured:
                os.sync()  # this run must not wait for the writes of the previous one
                return task.run(sessions[name])

            try:
                found = twice(once, names) if is_quick else in_turn(once, names, most)
            except FAILURES as failure:
                print(f"NOT MEASURED {task.row.name}: {failure}", file=sys.stderr, flush=True)
                self.failures.append(task.row.name)
                continue
            self.results[task.row.name] = {name: _cell(each) for name, each in found.items()}
            print(" | ".join(self._cells(task.row)), flush=True)
            if self._file is not None:
                self._file.write_text(json.dumps(self.results, indent=1) + "\n")

    def _cells(self, row: Row) -> list[str]:
        """The cells of a row: each figure, and its ratio to the figure of one process."""
        found = self.results[row.name]
        first, *_ = [cell.value for cell in found.values()]
        return [row.name, row.unit, *(_figure(cell.value, first) for cell in found.values())]

    def tables(self) -> str:
        """The table of the figures, and the table of the brokers' processor time."""
        names = [each.name for each in self.machines]
        measured = [task.row for task in TASKS if task.row.name in self.results]
        rows = [self._cells(row) for row in measured]
        costs = [
            [row.name, *(f"{cell.cost:.2f}" for cell in self.results[row.name].values())]
            for row in measured
            if all(cell.cost is not None for cell in self.results[row.name].values())
        ]
        return (
            f"{report.table(['what', 'unit', *names], rows)}\n\nProcessor seconds of the brokers a"
            f" GB of values:\n\n{report.table(['what', *names], costs)}"
        )


def twice(once: Callable[[str], Measured], names: Sequence[str]) -> dict[str, Measured]:
    """Run each system twice and return the second runs: in the first run, a JVM compiles."""
    for name in names:
        once(name)
    return {name: once(name) for name in names}


def _figure(value: float, first: float) -> str:
    share = f" ({value / first:.2f})" if value != first and math.isfinite(value) else ""
    digits = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return digits + share


def _cell(measured: Measured) -> Cell:
    if not measured.moved_bytes:
        return Cell(measured.values[0], None)
    assert measured.usage is not None
    return Cell(measured.values[0], measured.usage.cpu_s / measured.moved_bytes * GB)


def run(options: Namespace, document: Path) -> int:
    """Measure and print; write the page unless `--no-write`. Returns the exit status."""
    machine, missing = report.machine(), dict[str, str]()
    wanted = [task for task in TASKS if options.only in task.row.name]
    if not wanted:
        names = "; ".join(task.row.name for task in TASKS)
        print(f"scripts/bench: no row has {options.only!r} in its name: {names}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-", ignore_cleanup_errors=True) as path:
        machines = all_systems(Path(path), missing)
        bench = Bench(machines, QUICK if options.quick else FULL, options.json)
        with ExitStack() as undo:
            for each in machines:
                undo.callback(each.end)
                each.start()
            bench.run(wanted, options.quick, options.runs or RUNS_MAX)
        about = _about(bench, machine, missing, options.quick)
        print(f"\n{about}\n\n{bench.tables()}", flush=True)
        if not options.no_write and not options.only:
            title = TITLE.format(len(os.sched_getaffinity(0)))
            report.replace_part(document, title, f"{about}\n\n{bench.tables()}", "")
    return 1 if bench.failures else 0


def _about(bench: Bench, machine: str, missing: dict[str, str], is_quick: bool) -> str:
    own = [each.name for each in bench.machines if each.cores.brokers != each.cores.clients]
    where = f"on separate cores: {', '.join(own)}" if own else "on the same cores"
    how = (
        "The second of two runs each"
        if is_quick
        else "Medians of the last three runs, once they agree"
    )
    steady = len(bench.machines[0].one_half)
    text = report.wrapped(
        f"{report.today()}, {report.kafkapy_version()}, `scripts/bench --cores`, {machine} before"
        " the first run."
    )
    items = (
        f"Cores: brokers and clients {where}.",
        f"Clients: one for each core (for a fixed rate, {steady}), each with a topic of one"
        " partition, acks=all.",
        f"Loads: requests of one record, 100 to 200 in flight; batches of {BATCH_RECORDS} records,"
        " 5 in flight; or fetches of 1 MiB; on one connection, and on"
        f" {CONNECTIONS} for a fixed rate. The requests are built in advance, so that clients cost"
        " little beside a broker.",
        f"Figures: a load takes {bench.scale.seconds:g} s, of which only the time counts in which"
        f" all clients run. {how}. A p99 is that of the slowest client, from the time at which a"
        " request was due. In parentheses: divided by the figure of one process.",
        *(f"{name} is left out: {why}." for name, why in missing.items()),
        *((f"Not measured: {'; '.join(bench.failures)}.",) if bench.failures else ()),
    )
    return (
        text
        + "\n\n"
        + "\n".join(
            textwrap.fill(f"- {item}", 100, subsequent_indent="  ", break_on_hyphens=False)
            for item in items
        )
    )
