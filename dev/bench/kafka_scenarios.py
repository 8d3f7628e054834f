"""The parts of `scripts/bench --kafka` with brokers of their own: start, recovery, compaction, many
partitions, three replicas."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from dev.bench import kafka_clients as clients
from dev.bench import kafka_meter as meter
from dev.bench import kafka_systems as systems
from dev.bench import loads
from dev.bench.kafka_rows import (
    BASE_BYTES,
    CONNECTIONS,
    MB,
    Measured,
    Row,
    Scale,
    Session,
    Task,
    at_rate,
    produced,
    produced_by_librdkafka,
    rate_kept,
)
from dev.bench.kafka_systems import System
from dev.bench.kafka_turns import in_turn
from tests.harness.processes.waiting import wait_until

LIMIT_S = 300.0
TOPIC = "bench"
KEYS = 100_000
VALUE_BYTES = 200
MIB = 2**20
SEGMENT_BYTES = 32 << 20
RECOVERED_PARTITIONS = 4
PROCESSED = re.compile(r"([\d.,]+) MB of log processed in ([\d.,]+) seconds")


class Scenario(NamedTuple):
    """Rows, and the function that measures them for a system in an empty directory."""

    rows: tuple[Row, ...]
    run: Callable[[System, Path, Scale], list[Measured]]
    is_quick: bool = False


def first_record(servers: systems.Servers) -> None:
    """Produce one record and wait for its acknowledgement, acks=all."""
    loads.produce_raw(servers.bootstrap_servers, TOPIC, 100, 1, loads.PIPELINED)


def start(system: System, directory: Path, scale: Scale) -> list[Measured]:
    """Start a broker on an empty directory; ZooKeeper, if the system needs it, runs already."""
    with systems.prepared(system, directory) as servers:
        if servers.zookeeper is not None:
            servers.zookeeper.start()
        [broker] = servers.brokers
        started = time.perf_counter()
        broker.start()
        servers.wait_until_known()
        servers.create_topic(TOPIC)
        first_record(servers)
        seconds = time.perf_counter() - started
        usage = meter.since(0.0, servers.pids)
        return [Measured([seconds, usage.cpu_s, usage.resident_bytes / MIB], usage)]


START = (
    Row("start on an empty directory to the first acknowledged record", "s", False),
    Row("start: processor time of it", "s", False),
    Row("start: resident then", "MiB", False),
)


def recovery(system: System, directory: Path, scale: Scale) -> list[Measured]:
    """Recovery after kill -9 with nothing flushed: partitions of one unflushed segment each."""
    with systems.running(system, directory) as servers:
        address = servers.bootstrap_servers
        servers.create_topic(TOPIC, RECOVERED_PARTITIONS)
        _fill(address, scale.log_bytes)
        [broker] = servers.brokers
        servers.kill()
        started = time.perf_counter()
        broker.launch()
        broker.wait_until_ready(LIMIT_S)
        _until_served(servers)
        seconds = time.perf_counter() - started
        usage = meter.since(0.0, servers.pids)
        values = [seconds, usage.cpu_s, usage.resident_bytes / MIB]
        return [Measured(values, usage, scale.log_bytes)]


def _fill(servers: str, total_bytes: int) -> None:
    """Produce values of 10 kB to all partitions in turn."""
    settings = {"bootstrap.servers": servers, "linger.ms": 20, "log_level": 2,
                "queue.buffering.max.kbytes": 1 << 18}  # fmt: skip
    producer = confluent_kafka.Producer(settings)
    value = bytes(range(250)) * 40
    for index in range(total_bytes // len(value)):
        while True:
            try:
                producer.produce(TOPIC, value, partition=index % RECOVERED_PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert not producer.flush(LIMIT_S)


def _until_served(servers: systems.Servers) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers.bootstrap_servers, "log_level": 2, "retry.backoff.ms": 20}
    )
    failures: list[object] = []
    for partition in range(RECOVERED_PARTITIONS):
        producer.produce(
            TOPIC, b"x", partition=partition,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )  # fmt: skip
    assert not producer.flush(LIMIT_S)
    assert not failures, failures


RECOVERY = (
    Row("recovery of a 2 GiB log after kill -9, to the first records acknowledged", "s", False),
    Row("recovery: processor time of it", "s", False),
    Row("recovery: resident then", "MiB", False),
)


def compaction(system: System, directory: Path, scale: Scale) -> list[Measured]:
    """MB/s of a compaction, from the log cleaner's own log line."""
    with systems.running(system, directory, settings={"log.cleaner.backoff.ms": "1000"}) as servers:
        address = servers.bootstrap_servers
        servers.create_topic(TOPIC, 1, {"segment.bytes": str(SEGMENT_BYTES)})
        _fill_keyed(address, scale.compacted_bytes)
        before = meter.cpu_s(servers.pids)
        # Compaction starts only now: otherwise the log would be cleaned in parts.
        _compact(address)
        [broker] = servers.brokers
        wait_until(lambda: bool(PROCESSED.search(broker.output_text())), "a cleaning", LIMIT_S)
        usage = meter.since(before, servers.pids)
        found = PROCESSED.search(broker.output_text())
        assert found is not None
        megabytes, seconds = (float(text.replace(",", "")) for text in found.groups())
        values = [
            megabytes / seconds, usage.cpu_s / megabytes * 1000, usage.resident_bytes / MIB
        ]  # fmt: skip
        return [Measured(values, usage, megabytes * MB)]


def _fill_keyed(servers: str, total_bytes: int) -> None:
    settings = {"bootstrap.servers": servers, "linger.ms": 20, "log_level": 2,
                "queue.buffering.max.messages": 1_000_000}  # fmt: skip
    producer = confluent_kafka.Producer(settings)
    value = bytes(range(VALUE_BYTES))
    for index in range(total_bytes // VALUE_BYTES):
        key = b"%09d" % (index * 7919 % KEYS)
        while True:
            try:
                producer.produce(TOPIC, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert not producer.flush(LIMIT_S)


def _compact(servers: str) -> None:
    policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[policy])
    client = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    client.incremental_alter_configs([resource])[resource].result(timeout=30)


COMPACTION = (
    Row("compaction, 200 B records, of 100,000 keys", "MB/s"),
    Row("compaction: processor time of it and of waiting for it", "s/GB", False),
    Row("compaction: resident then", "MiB", False),
)


def partitions(system: System, directory: Path, scale: Scale) -> list[Measured]:
    """Create very many partitions, produce to 1,000 of them, and restart the broker."""
    with systems.running(system, directory) as servers:
        session = Session(servers, scale, directory)
        [broker] = servers.brokers
        made = _make_partitions(servers, scale.partitions)
        command, records = session.producer(f"{TOPIC}-0", BASE_BYTES, {"linger.ms": "5"})
        [output], usage = session.run(command)
        rate = clients.records_sent(output) * BASE_BYTES / MB
        servers.kill()
        started = time.perf_counter()
        broker.launch()
        broker.wait_until_ready(LIMIT_S)
        loads.produce_raw(broker.bootstrap_servers, f"{TOPIC}-0", 100, 1, loads.PIPELINED)
        restart_s = time.perf_counter() - started
        again = meter.since(0.0, servers.pids)
        return [
            made,
            Measured([restart_s, again.cpu_s, again.resident_bytes / MIB], again),
            Measured([rate], usage, records * BASE_BYTES),
        ]


def _make_partitions(servers: systems.Servers, count: int) -> Measured:
    """Create partitions in topics of 1,000: seconds, processor time, KiB of each."""
    before = meter.resident_bytes(servers.pids)
    before_cpu_s = meter.cpu_s(servers.pids)
    started = time.perf_counter()
    servers.create_partitions(TOPIC, count)
    seconds = time.perf_counter() - started
    usage = meter.since(before_cpu_s, servers.pids)
    grown = (usage.resident_bytes - before) / count
    return Measured([seconds, usage.cpu_s, grown / 1024], usage)


PARTITIONS = (
    Row("10,000 partitions: created", "s", False),
    Row("10,000 partitions: processor time of creating them", "s", False),
    Row("10,000 partitions: memory of each", "KiB", False),
    Row("10,000 partitions: kill -9, start, first acknowledged record", "s", False),
    Row("10,000 partitions: processor time of that start", "s", False),
    Row("10,000 partitions: resident after that start", "MiB", False),
    Row("10,000 partitions: produce to 1,000 of them, 1 kB", "MB/s"),
)

REPLICATED: tuple[Task, ...] = (
    produced("3 replicas, 1 kB, acks=all, idempotent"),
    produced("3 replicas, 100 B", 100),
    produced_by_librdkafka(BASE_BYTES),
    at_rate(1000, 1),
    at_rate(1000),
    rate_kept(CONNECTIONS),
)


def replicated(system: System, directory: Path, scale: Scale) -> list[Measured]:
    """Three brokers, every topic on all of them, acks=all."""
    with systems.running(system, directory, 3) as servers:
        session = Session(servers, scale, directory)

        def settled(task: Task) -> Measured:
            return in_turn(lambda _: task.run(session), [system])[system]

        return [settled(task) for task in REPLICATED]


def _replicated_rows() -> tuple[Row, ...]:
    rows = [row for task in REPLICATED for row in task.rows]
    return tuple(
        row if "3 replicas" in row.name else row._replace(name=f"3 replicas: {row.name}")
        for row in rows
    )


ALONE: tuple[Scenario, ...] = (
    Scenario(_replicated_rows(), replicated),
    Scenario(START, start, is_quick=True),
    Scenario(RECOVERY, recovery),
    Scenario(COMPACTION, compaction),
    Scenario(PARTITIONS, partitions),
)
