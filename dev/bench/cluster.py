"""`scripts/bench --cluster`: three kafkapy brokers beside three of Apache Kafka 3.9, in turn; or,
with `--zookeeper`, kafkapy brokers on kafkapy's ZooKeeper beside the same brokers on Apache's.

Two scenarios, each on a fresh cluster, several runs of each kind in turn: the cost of 1,000
partitions and the failover of a broker that leads 1,000; the same for 10,000 partitions and their
controller.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dev import report
from dev.bench.cluster_probes import (
    TOPIC_PARTITIONS,
    all_led,
    all_served,
    controller_answers,
    create,
    settle,
    topic_name,
    until,
)
from dev.bench.cluster_servers import BROKER_IDS, SESSION_TIMEOUT_MS, Kind, Servers, running
from tests.harness.processes import apache_kafka

Figures = dict[str, float]

CONTROLLER = BROKER_IDS[0]
LEADER = BROKER_IDS[1]
SMALL = 1000
LARGE = 10_000
RUNS = 3
WARM_UP = 999
"""The number of a topic with three partitions, which every cluster has before the measurements."""


class Page(NamedTuple):
    """The two kinds of a table, its heading, the names of its columns, and the servers."""

    kinds: tuple[Kind, Kind]
    title: str
    names: tuple[str, str]
    servers: str


BROKERS = Page(
    (Kind.KAFKAPY, Kind.APACHE),
    "A cluster of three brokers, beside Apache Kafka",
    ("kafkapy", "Apache Kafka"),
    "brokers with the same ZooKeeper 3.9 and settings; Apache Kafka has the JVM flags of its own"
    " scripts (1 GiB heap, G1)",
)
ZOOKEEPERS = Page(
    (Kind.WITHOUT_JAVA, Kind.KAFKAPY),
    "A cluster of three brokers, on kafkapy's ZooKeeper and on Apache's",
    ("on kafkapy's", "on Apache's"),
    "kafkapy brokers; the ZooKeeper server is kafkapy's or Apache's 3.9",
)


class Row(NamedTuple):
    """One line of the table: smaller is better. Rows that are not `is_compared` get no ratio."""

    key: str
    name: str
    unit: str
    is_compared: bool = True


ROWS = (
    Row("create-led", "create 1,000 partitions: all led, in the metadata of every broker", "s"),
    Row("create-served", "... and a record of each acknowledged (acks=all)", "s"),
    Row("small-rss", "memory a partition, 1,000 partitions: resident", "KiB"),
    Row("small-pss", "... proportional (PSS)", "KiB"),
    Row(
        "leader-expiry", "kill -9 of a broker leading 1,000 of 3,000: its session ends", "s", False
    ),
    Row(
        "leader-led",
        "... from then until all partitions are led, in the metadata of both others",
        "s",
    ),
    Row("leader-served", "... from then until all have acknowledged a record", "s"),
    Row("leader-all", "... kill -9 until all are led", "s"),
    Row("create-large", "create 10,000 partitions: all led, in the metadata of every broker", "s"),
    Row("large-rss", "memory a partition, 10,000 partitions: resident", "KiB"),
    Row("large-pss", "... proportional (PSS)", "KiB"),
    Row("controller-expiry", "kill -9 of the controller of 10,000: its session ends", "s", False),
    Row("controller-elected", "... from then until `/controller` names another", "s"),
    Row("controller-ready", "... from then until the new one has taken over and answers", "s"),
    Row(
        "controller-led",
        "... from then until all partitions are led, in the metadata of both others",
        "s",
    ),
    Row("controller-served", "... from then until all have acknowledged a record", "s"),
    Row("controller-all", "... kill -9 until all are led", "s"),
)


def small(servers: Servers) -> Figures:
    """Create 1,000 partitions, then 2,000 more, and kill a broker that leads a third of them."""
    figures, memory = _created(servers, 1)
    figures |= _memory_rows("small", servers, memory, SMALL)
    for number in (1, 2):
        create(servers, number)
    topics = {topic_name(number): TOPIC_PARTITIONS for number in range(3)}
    all_led(servers, topics, len(BROKER_IDS))
    all_served(servers, topics)
    killed_at, gone_at = _kill(servers, LEADER)
    led_at = all_led(servers, topics, len(servers.live))
    served_at = all_served(servers, topics)
    return figures | _timeline("leader", killed_at, gone_at, led=led_at, served=served_at)


def large(servers: Servers) -> Figures:
    """Create 10,000 partitions and kill the controller, which also leads a third of them."""
    count = LARGE // TOPIC_PARTITIONS
    made, memory = _created(servers, count)
    figures = {"create-large": made["create-led"]}
    figures |= _memory_rows("large", servers, memory, LARGE)
    topics = {topic_name(number): TOPIC_PARTITIONS for number in range(count)}
    killed_at, gone_at = _kill(servers, CONTROLLER)
    elected_at = until(lambda: servers.controller_id() in servers.live, "another controller")
    elected = servers.controller_id()
    ready_at = until(lambda: controller_answers(servers, elected), "the controller answers")
    led_at = all_led(servers, topics, len(servers.live))
    served_at = all_served(servers, topics)
    return figures | _timeline(
        "controller", killed_at, gone_at, elected=elected_at, ready=ready_at, led=led_at,
        served=served_at,
    )  # fmt: skip


SCENARIOS: tuple[Callable[[Servers], Figures], ...] = (small, large)


def _created(servers: Servers, topics: int) -> tuple[Figures, tuple[float, float]]:
    """Create topics one after the other. Returns the times, and the memory before."""
    create(servers, WARM_UP, len(BROKER_IDS))
    warm = {topic_name(WARM_UP): len(BROKER_IDS)}
    all_led(servers, warm, len(BROKER_IDS))
    all_served(servers, warm)
    settle()
    memory = servers.resident_bytes()
    names = {topic_name(number): TOPIC_PARTITIONS for number in range(topics)}
    started = time.monotonic()
    for number in range(topics):
        create(servers, number)
    led_s = all_led(servers, names, len(BROKER_IDS)) - started
    served_s = all_served(servers, names) - started
    return {"create-led": led_s, "create-served": served_s}, memory


def _memory_rows(
    key: str, servers: Servers, before: tuple[float, float], partitions: int
) -> Figures:
    """Memory growth in KiB per partition; every broker has a replica of each partition."""
    settle()
    rss, pss = (
        (after - start) / partitions / 1024
        for after, start in zip(servers.resident_bytes(), before, strict=True)
    )
    return {f"{key}-rss": rss, f"{key}-pss": pss}


def _kill(servers: Servers, broker_id: int) -> tuple[float, float]:
    """Kill a broker (kill -9). Returns the time of the kill, and of the end of its session."""
    assert servers.controller_id() == CONTROLLER, "the controller moved before anything was killed"
    killed_at = time.monotonic()
    servers.brokers[broker_id].kill()
    return killed_at, until(lambda: not servers.is_registered(broker_id), "its session ends")


def _timeline(key: str, killed_at: float, gone_at: float, **steps: float) -> Figures:
    """Seconds from the end of the session to each step."""
    figures = {f"{key}-{step}": at - gone_at for step, at in steps.items()}
    return {
        **figures,
        f"{key}-expiry": gone_at - killed_at,
        f"{key}-all": steps["led"] - killed_at,
    }


class Results:
    """Every run's figures by kind and row."""

    def __init__(self, kinds: tuple[Kind, Kind]) -> None:
        self.runs: dict[Kind, defaultdict[str, list[float]]] = {
            kind: defaultdict(list) for kind in kinds
        }

    def add(self, kind: Kind, figures: Mapping[str, float]) -> None:
        for key, figure in figures.items():
            self.runs[kind][key].append(figure)

    def rows(self) -> list[list[str]]:
        return [self._cells(row) for row in ROWS if any(row.key in r for r in self.runs.values())]

    def _cells(self, row: Row) -> list[str]:
        found = [figures.get(row.key, []) for figures in self.runs.values()]
        cells = [row.name, row.unit]
        for figures in found:
            cells.append(f"{median(figures):,.2f}" if figures else "")
            cells.append(f"{min(figures):,.2f} - {max(figures):,.2f}" if figures else "")
        ours, theirs = found
        if not row.is_compared or not ours or not theirs or median(theirs) <= 0:
            return [*cells, "", ""]
        share = median(ours) / median(theirs)
        return [*cells, f"{share:.2f}", "yes" if share < 1 else "NO"]


def run(options: Namespace, document: Path) -> int:
    """Measure and print; write the document unless `--no-write`. Returns the exit status."""
    # SIGTERM must end the servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine = report.machine()
    page = ZOOKEEPERS if options.zookeeper else BROKERS
    results = Results(page.kinds)
    kinds = [kind for kind in page.kinds if options.kind in kind.value]
    scenarios = [scenario for scenario in SCENARIOS if options.only in scenario.__name__]
    for number in range(options.runs or RUNS):
        for scenario in scenarios:
            for kind in kinds:
                # A killed process may leave files half written.
                scratch = tempfile.TemporaryDirectory(
                    prefix="kafkapy-bench-", ignore_cleanup_errors=True
                )
                with scratch as directory, running(kind, Path(directory, "cluster")) as servers:
                    figures = scenario(servers)
                results.add(kind, figures)
                text = ", ".join(f"{key} {figure:.2f}" for key, figure in figures.items())
                print(f"{number + 1} {kind.value}: {text}", flush=True)
    rows = results.rows()
    ours, theirs = page.names
    head = ("what", "unit", ours, "runs", theirs, "runs", "ratio", f"less than {theirs}")
    table = report.table(head, rows)
    print(table)
    if options.json:
        runs = {kind.value: found for kind, found in results.runs.items()}
        options.json.write_text(json.dumps(runs, indent=1))
    if not options.no_write and not options.only and len(kinds) == len(page.kinds):
        about = report.wrapped(_about(page, machine, options.runs or RUNS))
        report.replace_part(document, page.title, f"{about}\n\n{table}", "")
    return 0


def _about(page: Page, machine: str, runs: int) -> str:
    return (
        f"{report.today()}, {report.kafkapy_version()}, Apache Kafka {apache_kafka.VERSION},"
        f" {machine}"
        f" before the first run. Medians of runs: {runs}, on fresh clusters in turn. Three"
        f" {page.servers}. Every topic has 1,000 partitions with three replicas;"
        f" `zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}`. *Led*: for every partition, the"
        " Metadata of every live broker has a live leader, and all live replicas in sync. Memory is"
        " the mean growth of the brokers since they served three partitions, divided by the number"
        " of partitions; each broker has a replica of every partition. *From then*: the time from"
        " the end of the session, which depends on the session timeout only."
    )
