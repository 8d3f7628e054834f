"""`scripts/bench --zookeeper`: kafkapy's ZooKeeper server beside Apache ZooKeeper 3.9.

Both run with the settings of Kafka's `zookeeper.properties` on the same disk, Apache's with the JVM
flags of its scripts. Each load runs on both in turn, until both are warm.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from dev import report
from dev.bench import kafka_meter as meter
from dev.bench import zookeeper_loads as loads
from dev.bench.kafka_rows import Measured
from dev.bench.kafka_systems import with_kafkas_flags
from dev.bench.kafka_turns import in_turn
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.requests import WatchedRequest
from tests.harness.processes.broker_process import ServerProcess
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import ZooKeeperServer

TITLE: Final = "A ZooKeeper server, beside Apache ZooKeeper"
HEAD: Final = ("what", "unit", "kafkapy", "Apache ZooKeeper", "ratio", "goal", "met")
SETTINGS: Final = {"tickTime": "2000", "maxClientCnxns": "0"}
HEAP: Final = ("-Xmx512M", "-Xms512M")
SESSIONS: Final = (1, 10, 100)
SECONDS: Final = 2.0
WATCHERS: Final = 100
ROUNDS: Final = 50
NODES: Final = 100_000
MIB: Final = 2**20


class System(Enum):
    """Implementation of the server."""

    OURS = "kafkapy"
    THEIRS = "Apache ZooKeeper"


class Goal(NamedTuple):
    """The bound of a ratio, ours to theirs."""

    text: str
    is_met: Callable[[float], bool]


FAST: Final = Goal("at least half", lambda ratio: ratio >= 0.5)
AT_MOST_TWICE: Final = Goal("at most twice", lambda ratio: ratio <= 2)
SMALL: Final = Goal("at most a tenth", lambda ratio: ratio <= 0.1)


class Row(NamedTuple):
    """One line of the table."""

    name: str
    unit: str
    goal: Goal


class Result(NamedTuple):
    """A row's figures, ours and theirs."""

    row: Row
    ours: float
    theirs: float

    def cells(self) -> list[str]:
        """The cells of one row of the table."""
        ratio = self.ours / self.theirs
        met = "yes" if self.row.goal.is_met(ratio) else "NO"
        figures = [_number(self.ours), _number(self.theirs), f"{ratio:.2f}"]
        return [self.row.name, self.row.unit, *figures, self.row.goal.text, met]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


Servers = dict[System, ServerProcess]


def _servers(directory: Path) -> Servers:
    """Both servers, not yet started. Apache's has the JVM flags of Kafka's script."""
    theirs = ZooKeeperServer(directory / "theirs", SETTINGS)
    theirs.command = with_kafkas_flags(theirs.command, HEAP)
    return {System.OURS: OwnZooKeeper(directory / "ours", SETTINGS), System.THEIRS: theirs}


def warm_rows(servers: Servers) -> list[Result]:
    """Results of the loads on warm servers."""
    measured: list[tuple[Row, Callable[[int], float]]] = []
    for name, load in (
        ("create", loads.creates),
        ("conditional set", loads.conditional_sets),
        ("read", loads.reads),
    ):
        for count in SESSIONS:
            row = Row(f"{name}, {count} session{'s' * (count > 1)}", "1/s", FAST)
            measured.append((row, partial(load, sessions=count, seconds=SECONDS)))
    fan_out = partial(loads.fan_out_ms, sessions=WATCHERS, rounds=ROUNDS)
    name = f"a change, until {WATCHERS} sessions that watch the node are notified"
    measured.append((Row(name, "ms", AT_MOST_TWICE), fan_out))
    found = []
    for row, load in measured:

        def run(system: System, load: Callable[[int], float] = load) -> Measured:
            os.sync()
            return Measured([load(servers[system].port)])

        values = in_turn(run, [*System])
        found.append(_result(row, [values[system].values[0] for system in System]))
    return found


def large_rows(servers: Servers) -> list[Result]:
    """Results for memory, and for a tree of many nodes: its creation, and a read after kill -9."""
    rows = [
        Row("memory after the start: resident", "MiB", SMALL),
        Row(f"{NODES:,} nodes: created by one session, pipelined", "s", AT_MOST_TWICE),
        Row("... the longest read of another session meanwhile", "ms", AT_MOST_TWICE),
        Row(f"{NODES:,} nodes: resident", "MiB", SMALL),
        Row(f"{NODES:,} nodes: kill -9, start, the first read", "s", AT_MOST_TWICE),
        Row(f"{NODES:,} nodes: resident after that start", "MiB", SMALL),
    ]
    columns = [_large(servers[system]) for system in System]
    return [_result(row, pair) for row, pair in zip(rows, zip(*columns, strict=True), strict=True)]


def _large(server: ServerProcess) -> list[float]:
    found = [_resident_mib(server), *loads.fill(server.port, NODES), _resident_mib(server)]
    server.kill()
    started = time.perf_counter()
    server.start()
    with loads.sessions_on(server.port, 1) as [client]:
        client.ask(OpCode.GET_DATA, WatchedRequest("/p0/0", False))
        found.append(time.perf_counter() - started)
    return [*found, _resident_mib(server)]


def _resident_mib(server: ServerProcess) -> float:
    return meter.resident_bytes([server.pid]) / MIB


def _result(row: Row, pair: Sequence[float]) -> Result:
    result = Result(row, *pair)
    print(" | ".join(result.cells()), flush=True)
    return result


def run(options: Namespace, document: Path) -> int:
    """Measure and print; write the document unless `--no-write`. Returns the exit status."""
    machine = report.machine()
    results: list[Result] = []
    for part in (large_rows, warm_rows):
        if options.only not in part.__name__:
            continue
        with ExitStack() as undo:
            directory = tempfile.TemporaryDirectory(prefix="kafkapy-bench-")
            servers = _servers(Path(undo.enter_context(directory)))
            for server in servers.values():
                undo.callback(server.release)
                server.start()
            results += part(servers)
    table = report.table(HEAD, [result.cells() for result in results])
    print(f"\n{table}")
    if options.json:
        rows = [(result.row.name, result.ours, result.theirs) for result in results]
        options.json.write_text(json.dumps(rows, indent=1))
    if not options.no_write and not options.only:
        report.replace_part(document, TITLE, f"{report.wrapped(_about(machine))}\n\n{table}", "")
    return 0


def _about(machine: str) -> str:
    return (
        f"{report.today()}, {report.kafkapy_version()}, Apache ZooKeeper 3.9, {machine} before the"
        " first run. Both servers use the same disk; Apache's has the JVM flags of Kafka's scripts"
        f" (512 MiB heap, G1). Each load takes {SECONDS:g} s and runs on both servers in turn,"
        " until three runs in a row of either differ by a tenth at most (ten runs at most). A"
        " figure is the median of those three. The rows of many nodes are single runs on fresh"
        f" servers. Nodes have {len(loads.DATA)} bytes. Sessions are sockets of one process."
        " Each waits for its reply, except for *pipelined*, which has many requests in flight."
    )
