"""Benchmarks as rows of one table, one function a row; medians of several runs.

    scripts/bench [--runs N] [--only WORD] [--json FILE] [--no-write]
    scripts/bench --cluster [--kind WORD] ...     three brokers beside Apache Kafka's
    scripts/bench --kafka [--quick] ...           one broker beside Apache Kafka's
    scripts/bench --cores [--quick] ...           brokers on more and more cores
    scripts/bench --growth [--quick] ...          one broker as its work grows
    scripts/bench --tools [--only starts] ...     the tools beside Apache Kafka's
    scripts/bench --zookeeper ...                 our ZooKeeper beside Apache's

Rows of throughput run the same load on our broker and on the bare loop (dev/bench/bare_loop.py), in
turn, on the same machine in the same minute. Writes docs/evidence/benchmarks.md unless --no-write.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from dev import report
from dev.bench import cluster, cores, growth, kafka, loads, tool_starts, tools, zookeeper
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.topics import create_topic

TOPIC = "bench"
KAFKAPY = Path(sys.executable).parent / "kafkapy"
DOCUMENT = report.ROOT / "docs" / "evidence" / "benchmarks.md"
GROWTH = DOCUMENT.with_name("growth.md")
INTRODUCTION = """# Benchmarks

`scripts/bench` writes this page. No test asserts these figures, because times on a shared machine
vary too much.
"""


@dataclass(frozen=True)
class Result:
    """One row. `baseline` is the bare loop's figure where there is one."""

    name: str
    unit: str
    ours: float
    baseline: float | None
    goal: str
    met: bool
    runs: list[float]


class Bench:
    """The number of runs of a row, and fresh servers for them."""

    def __init__(self, runs: int, scratch: Path) -> None:
        self.runs = runs
        self.scratch = scratch
        self._made = 0

    def directory(self) -> Path:
        self._made += 1
        path = self.scratch / f"run-{self._made}"
        path.mkdir()
        return path

    @contextmanager
    def ours(self) -> Iterator[BrokerProcess]:
        with BrokerProcess(self.directory() / "logs", {"log.retention.ms": "-1"}) as broker:
            yield broker

    @contextmanager
    def bare(self) -> Iterator[ServerProcess]:
        directory, port = self.directory(), free_port()
        command = [sys.executable, "-m", "dev.bench.bare_loop", str(port), str(directory)]
        with ServerProcess(command, port, directory / "output", "bare loop") as server:
            yield server

    def throughput(self, name: str, unit: str, load: Callable[[str], float]) -> Result:
        """`load(servers)` on a fresh broker and a fresh bare loop in turn."""
        ours, bare = [], []
        for _ in range(self.runs):
            with self.bare() as server:
                bare.append(load(server.bootstrap_servers))
            with self.ours() as broker:
                create_topic(broker.bootstrap_servers, TOPIC)
                ours.append(load(broker.bootstrap_servers))
        share = median(ours) / median(bare)
        goal = "at least half of the bare loop"
        return Result(name, unit, median(ours), median(bare), goal, share >= 0.5, ours)

    def limit(self, name: str, unit: str, most: float, measure: Callable[[], float]) -> Result:
        """A figure that must stay below `most`."""
        figures = [measure() for _ in range(self.runs)]
        middle = median(figures)
        return Result(name, unit, middle, None, f"at most {most:g}", middle <= most, figures)


def produce_100(bench: Bench) -> Result:
    def load(servers: str) -> float:
        return loads.produce_librdkafka(servers, TOPIC, 100, 2_000_000) / 1e6

    return bench.throughput("produce, librdkafka, 100 B records", "M records/s", load)


def produce_1000(bench: Bench) -> Result:
    def load(servers: str) -> float:
        return loads.produce_librdkafka(servers, TOPIC, 1000, 500_000) / 1e3

    return bench.throughput("produce, librdkafka, 1000 B records", "MB/s", load)


def produce_batches(bench: Bench) -> Result:
    def load(servers: str) -> float:
        return loads.produce_raw(servers, TOPIC, 1000, 16, 20_000) / 1e3

    return bench.throughput("produce, ready 16 KB batches, 5 in flight", "k requests/s", load)


def produce_single(bench: Bench) -> Result:
    def load(servers: str) -> float:
        return loads.produce_burst(servers, TOPIC, 100_000) / 1e3

    return bench.throughput("produce, one record a request, pipelined", "k requests/s", load)


def fetch_raw(bench: Bench) -> Result:
    def load(servers: str) -> float:
        loads.produce_librdkafka(servers, TOPIC, 1000, 500_000)
        return loads.fetch_raw(servers, TOPIC, 450_000_000) / 1e6

    return bench.throughput("fetch, 1 MiB a request, one connection", "MB/s", load)


def fetch_librdkafka(bench: Bench) -> Result:
    def load(servers: str) -> float:
        loads.produce_librdkafka(servers, TOPIC, 100, 2_000_000)
        return loads.consume_librdkafka(servers, TOPIC, 1_000_000) / 1e6

    return bench.throughput("fetch, librdkafka in Python, 100 B records", "M records/s", load)


def describe(bench: Bench) -> Result:
    """Wall time of `topics --describe`."""
    with bench.ours() as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, TOPIC, 10)
        command = [str(KAFKAPY), "topics", "--describe", "--bootstrap-server", servers]

        def measure() -> float:
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return (time.perf_counter() - started) * 1e3

        measure()  # the first one compiles
        return bench.limit("`topics --describe`, wall time", "ms", 200, measure)


def cold_start(bench: Bench) -> Result:
    """From spawning the process on an empty directory to the first acknowledged record."""

    def measure() -> float:
        broker = BrokerProcess(bench.directory() / "logs")
        started = time.perf_counter()
        with broker:
            create_topic(broker.bootstrap_servers, TOPIC)
            loads.produce_raw(broker.bootstrap_servers, TOPIC, 100, 1, loads.PIPELINED)
            return (time.perf_counter() - started) * 1e3

    return bench.limit("cold start to first acknowledged record", "ms", 1000, measure)


def idle_memory(bench: Bench) -> Result:
    """Resident set of a broker that has served a topic and now has nothing to do."""

    def measure() -> float:
        with bench.ours() as broker:
            create_topic(broker.bootstrap_servers, TOPIC)
            return broker.resident_bytes() / 2**20

    return bench.limit("idle broker, resident", "MiB", 80, measure)


ROWS: tuple[Callable[[Bench], Result], ...] = (
    produce_100,
    produce_1000,
    produce_batches,
    produce_single,
    fetch_raw,
    fetch_librdkafka,
    describe,
    cold_start,
    idle_memory,
)


def cells(result: Result) -> list[str]:
    """The cells of one row of the table."""
    bare = f"{result.baseline:,.2f}" if result.baseline is not None else ""
    share = f"{result.ours / result.baseline:.0%}" if result.baseline else ""
    spread = f"{min(result.runs):,.2f} - {max(result.runs):,.2f}"
    met = "yes" if result.met else "NO"
    figures = [f"{result.ours:,.2f}", spread, bare, share]
    return [result.name, result.unit, *figures, result.goal, met]


def beside_kafka(options: argparse.Namespace) -> int:
    """Run a comparison with Apache Kafka. Returns exit status 1 if that is not available."""
    try:
        apache_kafka.jars()
        if options.release == 4:
            apache_kafka.jars(apache_kafka.KAFKA_4)
    except apache_kafka.Unavailable as why:
        print(f"scripts/bench: {why}", file=sys.stderr)
        return 1
    other = cluster if options.cluster else kafka if options.kafka else zookeeper
    status: int = other.run(options, DOCUMENT)
    return status


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument(
        "--runs", type=int, metavar="N", help="5, or what 30 minutes take; --cores: at most"
    )
    parser.add_argument("--only", default="", metavar="WORD", help="rows with WORD in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("--no-write", action="store_true", help="do not write the page")
    parser.add_argument("--cluster", action="store_true", help="a cluster beside Apache Kafka's")
    parser.add_argument("--kind", default="", metavar="WORD", help="--cluster: kafkapy or Apache")
    parser.add_argument(
        "--zookeeper",
        action="store_true",
        help="kafkapy's ZooKeeper beside Apache's; --cluster: the same brokers on each",
    )
    parser.add_argument("--kafka", action="store_true", help="one broker beside Apache Kafka")
    parser.add_argument(
        "--release", type=int, choices=(3, 4), default=3, help="--kafka: of Apache Kafka"
    )
    parser.add_argument(
        "--part",
        default="",
        choices=kafka.PARTS,
        help="--kafka: these rows",
    )
    parser.add_argument("--cores", action="store_true", help="brokers on more and more cores")
    parser.add_argument("--growth", action="store_true", help="one broker as its work grows")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="--kafka: some rows, in 3 minutes; --growth: in 2; --cores: two runs of each",
    )
    parser.add_argument("--tools", action="store_true", help="the tools: --only starts, or tools")
    return parser


def main() -> int:
    parser = arguments()
    options = parser.parse_args()
    if options.tools:
        document = None if options.no_write else DOCUMENT
        for part in (tool_starts, tools):
            if options.only in part.__name__:
                part.main(options.runs or 5, document, INTRODUCTION)
        return 0
    if options.cores:
        return cores.run(options, DOCUMENT)
    if options.growth:
        return growth.run(options, GROWTH)
    if options.cluster or options.kafka or options.zookeeper:
        return beside_kafka(options)
    runs = options.runs or 5
    rows = [row for row in ROWS if options.only in row.__name__]
    if not rows:
        names = ", ".join(row.__name__ for row in ROWS)
        parser.error(f"no row is called {options.only!r}; there are {names}")
    results = []
    machine = report.machine()
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as scratch:
        for row in rows:
            results.append(row(Bench(runs, Path(tempfile.mkdtemp(dir=scratch)))))
            print(" | ".join(cells(results[-1])), flush=True)
    head = ["what", "unit", "kafkapy", "runs", "bare loop", "share", "goal", "met"]
    table = report.table(head, [cells(result) for result in results])
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if not options.no_write and not options.only:
        body = (
            f"{report.today()}, {report.kafkapy_version()}, {machine} before the first run."
            f" Medians of {runs} runs.\n\n{table}"
        )
        report.replace_part(DOCUMENT, "One broker", body, INTRODUCTION)
    return 0


if __name__ == "__main__":
    sys.exit(main())
