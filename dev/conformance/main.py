"""Conformance checks that take long: real clients, Apache Kafka's log reader, kill -9.

Writes docs/evidence/conformance.md.

scripts/conformance                 all parts
scripts/conformance --clients       100,000 records by each client in each codec
scripts/conformance --kill          20 rounds of kill -9
scripts/conformance --tools         our tools beside Apache Kafka's, on files and on its brokers
scripts/conformance --kraft         our tools on an Apache Kafka 4 node in KRaft mode
scripts/conformance --kafka-4       the newest clients in groups of each kind, also on Kafka 4
scripts/conformance --apps          Kafka Streams, Connect and MirrorMaker 2, with kill -9
scripts/conformance --protocol      every message in every version, with hundreds of values
scripts/conformance --spark         Spark jobs beside Spark's own connector
scripts/conformance --zookeeper     our ZooKeeper beside Apache's; prints what differs
scripts/conformance --pythons       the tests on the other Pythons of this machine
scripts/conformance --apache ...    the same against Apache Kafka itself; writes nothing
scripts/conformance --record        record the output of Apache Kafka's tools, for scripts/test
scripts/conformance --record-configs  record Apache Kafka's answers about configs, likewise
scripts/conformance --record-groups  record Apache Kafka 4's answers to bad group requests, likewise
scripts/conformance --record-flags  record only the tools' flags, for docs/reference/tools.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dev import fetch_peers, report
from dev.conformance import (
    ecosystem,
    kafka_4_clients,
    kraft_tools,
    pythons,
    record_configs,
    record_flags,
    record_groups,
    record_tools,
    tool_twins,
    zookeeper_twins,
)
from tests.conformance import checks, dump_log, kill_rounds, peers
from tests.conformance.peer import CODECS, Peer
from tests.conformance.workload import Row
from tests.harness.faults.lossy_proxy import LossyProxy
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess

DOCUMENT = report.ROOT / "docs" / "evidence" / "conformance.md"
INTRODUCTION = """# Conformance

The checks run unmodified Kafka clients, tools and applications against kafkapy brokers, and
kafkapy's tools against Apache Kafka. `scripts/conformance` writes this page; `scripts/test` runs a
quick part of the checks.
"""
PROTOCOL_EXAMPLES = 200
Server = BrokerProcess | apache_kafka.ApacheBroker


def print_line(text: str) -> None:
    print(text, flush=True)


class Clients:
    """The matrix of writers and codecs, and the result of each cell."""

    def __init__(self, servers: str, count: int) -> None:
        self.servers = servers
        self.count = count
        self.peers = peers.available()
        self.cells: dict[tuple[str, str], str] = {}
        self.failures: list[str] = []

    def run(self) -> None:
        for peer in self.peers:
            for codec in CODECS:
                known = codec in peer.codecs
                self.cells[peer.name, codec] = self.cell(peer, codec) if known else "-"

    def cell(self, peer: Peer, codec: str) -> str:
        """Run one client with one codec; then all other clients that support the codec read."""
        topic = f"{peer.name}-{codec}".replace(" ", "-")
        started = time.monotonic()
        sent = self.attempt(
            f"{peer.name} {codec}",
            lambda: checks.check_client(self.servers, peer, topic, codec, self.count),
        )
        if sent is None:
            return "FAILED"
        readers = [other for other in self.peers if other is not peer and codec in other.codecs]
        read = 0
        for reader in readers:
            what = f"{reader.name} reads {topic}"
            check = partial(checks.check_cross_read, self.servers, reader, topic, sent)
            read += self.attempt(what, check) is not None
        print_line(f"  {peer.name:20} {codec:6} {read} readers, {time.monotonic() - started:.0f} s")
        return f"same, {read} of {len(readers)} readers"

    def attempt(self, what: str, check: Callable[[], list[Row]]) -> list[Row] | None:
        """Run one check; a client's own exceptions are findings like any other."""
        try:
            return check()
        except Exception as fault:
            first = (str(fault).splitlines() or [""])[0][:300]
            self.failures.append(f"{what}: {type(fault).__name__} {first}")
            print_line(f"  FAILED {self.failures[-1]}")
            return None

    def report(self) -> str:
        rows = [
            [peer.name, peer.version(), *(self.cells[peer.name, codec] for codec in CODECS)]
            for peer in self.peers
        ]
        text = (
            f"{report.today()}, {report.kafkapy_version()}. Steps of each client, with each"
            f" codec that it supports:\n\n- Write {self.count:,} log lines with keys and headers to"
            f" {checks.PARTITIONS} partitions (idempotent, `acks=all`, Kafka's\n"
            "  default partitioner).\n"
            "- Read a third of them in a consumer group, commit, stop, resume, and read the rest.\n"
            "- Look offsets up by time.\n\n"
            "*same*: for each partition, the SHA-256 of the keys, values and headers read equals"
            " that of the\nrecords sent, in the same order, and the last committed offset is the"
            " log end. Then every other\nclient that supports the codec read the topic, with the"
            " same digests.\n\n"
        )
        text += report.table(["client", "version", *CODECS], rows)
        missing = [f"\n- not run: {name} ({why})" for name, why in fetch_peers.missing().items()]
        failed = [f"\n- FAILED: {line}" for line in self.failures]
        return text + "\n" + "".join(missing + failed)


def run_clients(server: Callable[..., Server], count: int, write: bool) -> bool:
    """Run the client matrix, then DumpLogSegments over all files that it left on disk."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-conformance-") as scratch:
        with server(Path(scratch) / "logs") as broker:
            clients = Clients(broker.bootstrap_servers, count)
            clients.run()
        dumps = dump_log.dump_directory(broker.log_dir) if apache_kafka.installed() else []
    for item in dumps:
        print_line(f"  {item}")
        for line in item.complaints[:20]:
            print_line(f"    {line}")
    if write:
        report.replace_part(DOCUMENT, "Real clients", clients.report(), INTRODUCTION)
        report.replace_part(DOCUMENT, "DumpLogSegments", dump_report(dumps), INTRODUCTION)
    return not clients.failures and bool(dumps) and not any(item.complaints for item in dumps)


def dump_report(dumps: list[dump_log.Dump]) -> str:
    if not dumps:
        return "Not run: Apache Kafka's jars could not be had."
    rows = [[item.what, item.files, item.lines, len(item.complaints)] for item in dumps]
    head = ["what", "files", "lines printed", "complaints"]
    text = (
        f"{report.today()}, {report.kafkapy_version()}. Apache Kafka {apache_kafka.VERSION}'s"
        " DumpLogSegments read every file that the run above had written."
    )
    return f"{report.wrapped(text)}\n\n{report.table(head, rows)}"


def run_kill(server: Callable[..., Server], rounds: int, seed: int, write: bool) -> bool:
    """Run rounds of kill -9."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-kill-") as scratch:
        started = time.monotonic()
        with (
            LossyProxy() as proxy,
            server(Path(scratch) / "logs", kill_rounds.advertised(proxy)) as broker,
        ):
            found = kill_rounds.run(broker, proxy, "killed", rounds, seed)
        found += f", {time.monotonic() - started:.0f} s"
        dumps = dump_log.dump_directory(broker.log_dir) if apache_kafka.installed() else []
    complaints = [line for item in dumps for line in item.complaints]
    print_line(f"  {found}; DumpLogSegments complains {len(complaints)} times")
    for line in complaints[:20]:
        print_line(f"    {line}")
    if write:
        run = report.wrapped(f"{report.today()}, {report.kafkapy_version()}, seed {seed}: {found}.")
        body = (
            f"{run}\n\n- Every acknowledged record is in the log once, in order.\n"
            "- The group resumed each time at its committed offset.\n"
            f"- DumpLogSegments had {len(complaints)} complaints about the files afterwards.\n\n"
            "An idempotent `acks=all` producer writes while the broker is killed with SIGKILL and"
            " restarted. In\nevery third round the broker is killed again during recovery. A proxy"
            " drops the broker's last\nresponses, so that the producer resends batches that are"
            " already on disk."
        )
        report.replace_part(DOCUMENT, "Kill -9", body, INTRODUCTION)
    return not complaints


def run_tools(write: bool) -> bool:
    """Our tools beside Apache Kafka's: on the same files, then on its brokers."""
    good, part = tool_twins.run(print_line)
    if write:
        report.replace_part(DOCUMENT, "Tools side by side", part, INTRODUCTION)
    return record_tools.compare(print_line) and good


def run_kraft(write: bool) -> bool:
    """Our tools on an Apache Kafka 4 node."""
    return run_with(apache_kafka.KAFKA_4, kraft_tools.run, "The tools on Apache Kafka 4", write)


def run_kafka_4(count: int, write: bool) -> bool:
    """The newest clients, on our brokers and on an Apache Kafka 4 node."""
    run = partial(kafka_4_clients.run, count)
    return run_with(apache_kafka.KAFKA_4, run, "Clients of Kafka 4", write)


def run_apps(write: bool) -> bool:
    """Kafka's own applications."""
    return run_with(apache_kafka.KAFKA_3_APPS, ecosystem.run, "Kafka's own applications", write)


def run_with(
    release: apache_kafka.Release,
    run: Callable[[Callable[[str], None]], tuple[bool, str]],
    title: str,
    write: bool,
) -> bool:
    """Run a part that needs the jars of a release."""
    try:
        apache_kafka.jars(release)
    except apache_kafka.Unavailable as why:
        print_line(
            f"not to be had here: Apache Kafka {release.version} in {release.directory} ({why})"
        )
        return False
    good, part = run(print_line)
    if write:
        report.replace_part(DOCUMENT, title, part, INTRODUCTION)
    return good


def run_spark() -> int:
    """Run Spark's jobs with both sources on both brokers. They are slow: only --spark runs them."""
    from dev.conformance import spark_cluster, spark_parity

    text, same = spark_parity.run([], print_line)
    report.replace_part(DOCUMENT, "Spark, beside the JVM connector", text, INTRODUCTION)
    text, whole = spark_cluster.run(print_line)
    report.replace_part(DOCUMENT, "A standalone Spark cluster", text, INTRODUCTION)
    return 0 if same and whole else 1


def run_protocol() -> int:
    """The bytes of every message beside kio's, as in scripts/test with far fewer values."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/conformance/test_protocol_kio.py"]
    more = {"KAFKAPY_PROTOCOL_EXAMPLES": str(PROTOCOL_EXAMPLES)}
    return subprocess.run(command, cwd=report.ROOT, env={**os.environ, **more}).returncode


def run_pythons() -> int:
    """Run the tests on other Pythons. They are slow and depend on this machine, so only --pythons
    runs them."""
    good, text = pythons.run(print_line)
    report.replace_part(DOCUMENT, "Other Pythons", text, INTRODUCTION)
    return 0 if good else 1


def main() -> int:
    options = parse()
    if options.zookeeper:
        return zookeeper_twins.compare(options.rounds, options.seed, print_line)
    if options.record_configs:
        record_configs.record(print_line)
        return 0
    if options.record_groups:
        record_groups.record(print_line)
        return 0
    if options.record_flags:
        record_flags.record(print_line)
        return 0
    if options.record:
        record_flags.record(print_line)
        record_tools.record(print_line)
        tool_twins.record(print_line)
        return 0
    if options.protocol:
        return run_protocol()
    if options.spark:
        return run_spark()
    for name, why in fetch_peers.ensure(print_line).items():
        print_line(f"not to be had here: {name} ({why})")
    if options.pythons:
        return run_pythons()
    server = apache_kafka.ApacheBroker if options.apache else BrokerProcess
    write = not options.apache
    named = ("clients", "kill", "tools", "kraft", "kafka_4", "apps")
    everything = not any(getattr(options, name) for name in named)
    good = True
    if options.clients or everything:
        print_line(f"clients: {options.records:,} records each")
        good &= run_clients(server, options.records, write)
    if options.kill or everything:
        print_line(f"kill -9: {options.rounds} rounds")
        good &= run_kill(server, options.rounds, options.seed, write)
    if options.tools or everything:
        print_line("tools side by side")
        good &= run_tools(write)
    if options.kraft or everything:
        print_line("tools on Apache Kafka 4")
        good &= run_kraft(write)
    if options.kafka_4 or everything:
        print_line(f"clients of Kafka 4: {options.records:,} records each")
        good &= run_kafka_4(options.records, write)
    if options.apps or everything:
        print_line("Kafka's own applications")
        good &= run_apps(write)
    if write:
        print_line(f"written: {DOCUMENT.relative_to(report.ROOT)}")
    return 0 if good else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/conformance")
    parser.add_argument("--clients", action="store_true", help="only the clients and the files")
    parser.add_argument("--kill", action="store_true", help="only kill -9")
    parser.add_argument("--tools", action="store_true", help="only the tools side by side")
    parser.add_argument("--kraft", action="store_true", help="only the tools on Apache Kafka 4")
    parser.add_argument("--kafka-4", action="store_true", help="only the clients of Kafka 4")
    parser.add_argument("--apps", action="store_true", help="only Kafka's own applications")
    parser.add_argument("--record", action="store_true", help="record what Kafka's tools say")
    parser.add_argument("--record-configs", action="store_true", help="record its configs")
    parser.add_argument("--record-groups", action="store_true", help="record answers of Kafka 4")
    parser.add_argument("--record-flags", action="store_true", help="record the tools' flags")
    parser.add_argument("--protocol", action="store_true", help="only the bytes of messages")
    parser.add_argument("--spark", action="store_true", help="only Spark's jobs")
    parser.add_argument("--zookeeper", action="store_true", help="only ZooKeeper servers")
    parser.add_argument("--pythons", action="store_true", help="only the tests on other Pythons")
    parser.add_argument("--records", type=int, default=100_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=20, metavar="N")
    parser.add_argument("--apache", action="store_true", help="try the checks on Apache Kafka")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
