"""The loads of `scripts/bench --kafka` on one running broker: a task is a load and its rows.

One thing is varied at a time around a base: 1 kB values, one partition, acks=all from an idempotent
producer, no compression. Every task has topics of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dev.bench import kafka_clients as clients
from dev.bench import kafka_meter as meter
from dev.bench import kafka_open_loop as open_loop
from dev.bench.kafka_meter import Usage
from dev.bench.kafka_systems import OPEN, Guard, Servers
from tests.harness.processes import apache_kafka

MB = 1_000_000
BASE_BYTES = 1000
MEMBERS = 100
COMMITTING_GROUPS = 1000
CONNECTIONS = 10
"""The number of connections for clients that send one record a request, if one connection would be
the bottleneck."""


class Row(NamedTuple):
    """One line of the table. `more_is_better`: a rate, not a latency or a size."""

    name: str
    unit: str
    more_is_better: bool = True


@dataclass
class Measured:
    """A task's figures in the order of its rows, infinite where a rate was not kept; `usage` and
    `moved_bytes` (of values) of its load, where there was one."""

    values: list[float]
    usage: Usage | None = None
    moved_bytes: float = 0.0


class Scale(NamedTuple):
    """Size of the work. A load moves `bytes` of values, or `shared` records to a share group; a
    fixed rate lasts `seconds`."""

    bytes: int
    seconds: float
    search_s: float
    idle: tuple[int, ...]
    partitions: int
    log_bytes: int
    compacted_bytes: int
    shared: int


FULL = Scale(300 * MB, 5.0, 1.5, (1000, 5000), 10_000, 2 << 30, 256 * MB, 100_000)
QUICK = Scale(80 * MB, 1.5, 0.4, (1000,), 1000, 256 << 20, 64 * MB, 20_000)


@dataclass
class Session:
    """Servers under load. `scratch` holds files for clients; `made` counts the topics."""

    servers: Servers
    scale: Scale
    scratch: Path
    made: int = field(default=0)
    topics: list[str] = field(default_factory=list)

    def topic(self, partitions: int = 1) -> str:
        """A new topic, with a replica on every broker."""
        self.made += 1
        name = f"bench-{self.made}"
        self.servers.create_topic(name, partitions)
        self.topics.append(name)
        return name

    def delete_topics(self) -> None:
        """Delete the current topics: ten runs of every load do not fit on a disk."""
        self.servers.delete_topics(self.topics)
        self.topics.clear()

    def run(self, *commands: list[str]) -> tuple[list[str], Usage]:
        return meter.run(commands, self.servers.pids)

    def python(self, load: str, moved_bytes: float, *keys: str, **arguments: object) -> Measured:
        """Run a load of clients.LOADS. Returns its figures of the names `keys`."""
        servers = self.servers.bootstrap_servers
        command = clients.python_client(load, servers=servers, **arguments)
        [output], usage = self.run(command)
        found = clients.figures(output)
        return Measured([found[key] for key in keys], usage, moved_bytes)

    def producer(
        self, topic: str, value_bytes: int, properties: Mapping[str, str]
    ) -> tuple[list[str], int]:
        """The command of ProducerPerformance, and the number of records that it sends."""
        records = max(1000, self.scale.bytes // max(value_bytes, 400))
        payloads = clients.write_payloads(self.scratch, value_bytes)
        servers, config = self.servers.client_servers, self._client_config()
        command = clients.producer_performance(
            servers, topic, payloads, records, config, properties
        )
        return command, records

    def consumer(self, topic: str, records: int) -> list[str]:
        """The command of ConsumerPerformance."""
        servers = self.servers.client_servers
        return clients.consumer_performance(servers, topic, records, self._client_config())

    def _client_config(self) -> Path:
        return apache_kafka.write_properties(
            self.scratch / "client.properties", self.servers.client_properties
        )


class Task(NamedTuple):
    """A load; its rows; whether `--quick` has it, and whether it needs Kafka 4."""

    rows: tuple[Row, ...]
    run: Callable[[Session], Measured]
    is_quick: bool = False
    needs_kafka_4: bool = False


# Kafka's own clients


def produced(
    name: str,
    value_bytes: int = BASE_BYTES,
    partitions: int = 1,
    properties: Mapping[str, str] = clients.ALL_IDEMPOTENT,
    is_quick: bool = False,
) -> Task:
    """A task that runs ProducerPerformance."""

    def run(session: Session) -> Measured:
        topic = session.topic(partitions)
        command, records = session.producer(topic, value_bytes, properties)
        [output], usage = session.run(command)
        rate = clients.records_sent(output)
        return Measured([rate * value_bytes / MB], usage, records * value_bytes)

    return Task((Row(f"produce, {name}", "MB/s"),), run, is_quick)


def consumed(name: str, value_bytes: int, is_quick: bool = False) -> Task:
    """A task that runs ConsumerPerformance on a log in the page cache."""

    def run(session: Session) -> Measured:
        topic = session.topic()
        command, records = session.producer(topic, value_bytes, {"linger.ms": "5"})
        session.run(command)
        [output], usage = session.run(session.consumer(topic, records))
        rate = clients.records_consumed(output)
        return Measured([rate * value_bytes / MB], usage, records * value_bytes)

    return Task((Row(f"consume from the start, {name}", "MB/s"),), run, is_quick)


def together(session: Session) -> Measured:
    """Produce and consume one topic at the same time."""
    topic = session.topic()
    producer, records = session.producer(topic, BASE_BYTES, {})
    outputs, usage = session.run(producer, session.consumer(topic, records))
    rates = [clients.records_sent(outputs[0]), clients.records_consumed(outputs[1])]
    moved = 2.0 * records * BASE_BYTES
    return Measured([rate * BASE_BYTES / MB for rate in rates], usage, moved)


# librdkafka and raw clients


def produced_by_librdkafka(value_bytes: int) -> Task:
    def run(session: Session) -> Measured:
        # A multiple of 10,000: the load sends lists of that length.
        records = max(1, session.scale.bytes * 2 // value_bytes // 10_000) * 10_000
        found = session.python(
            "produce", records * value_bytes, "rate", topic=session.topic(),
            value_bytes=value_bytes, records=records,
        )  # fmt: skip
        found.values = [found.values[0] * value_bytes / MB]
        return found

    name = f"produce, librdkafka in Python, {value_bytes} B"
    return Task((Row(name, "MB/s"),), run, is_quick=value_bytes == BASE_BYTES)


def consumed_by_librdkafka(session: Session) -> Measured:
    topic = session.topic()
    records = max(1, session.scale.bytes // BASE_BYTES // 10_000) * 10_000
    session.python("produce", 0, "rate", topic=topic, value_bytes=BASE_BYTES, records=records)
    moved = float(records * BASE_BYTES)
    found = session.python("consume", moved, "rate", topic=topic, records=records)
    found.values = [found.values[0] * BASE_BYTES / MB]
    return found


def fetched(session: Session) -> Measured:
    topic = session.topic()
    records = max(1, session.scale.bytes * 2 // BASE_BYTES // 10_000) * 10_000
    session.python("produce", 0, "rate", topic=topic, value_bytes=BASE_BYTES, records=records)
    total = int(records * BASE_BYTES * 0.9)
    found = session.python("fetch", total, "rate", topic=topic, total_bytes=total)
    found.values = [found.values[0] / MB]
    return found


def at_rate(rate: int, connections: int = CONNECTIONS, is_quick: bool = False) -> Task:
    """A task that sends requests of one record at a fixed rate."""
    keys = ("p50", "p99", "p99.9")

    def run(session: Session) -> Measured:
        found = session.python(
            "latency", 0, *keys, "answered", topic=session.topic(), rate=rate,
            seconds=session.scale.seconds, connections=connections,
        )  # fmt: skip
        answered = found.values.pop()
        found.moved_bytes = answered * open_loop.VALUE_BYTES
        return found

    plural = "" if connections == 1 else "s"
    name = f"one record a request, {connections} connection{plural}, {rate:,}/s"
    return Task(tuple(Row(f"{name}: {key}", "ms", False) for key in keys), run, is_quick)


def rate_kept(connections: int, is_quick: bool = False) -> Task:
    def run(session: Session) -> Measured:
        found = session.python(
            "highest_rate", 0, "rate", "answered", topic=session.topic(),
            seconds=session.scale.search_s, connections=connections,
        )  # fmt: skip
        found.moved_bytes = found.values.pop() * open_loop.VALUE_BYTES
        found.values = [found.values[0] / 1000]
        return found

    plural = "" if connections == 1 else "s"
    name = f"one record a request, {connections} connection{plural}: highest rate kept"
    return Task((Row(name, "k/s"),), run, is_quick)


def tail(session: Session) -> Measured:
    seconds = session.scale.seconds
    moved = 1000 * seconds * 2 * open_loop.VALUE_BYTES  # in and out
    topic = session.topic()
    return session.python("tail", moved, "p50", "p99", topic=topic, rate=1000, seconds=seconds)


def rebalanced(protocol: str) -> Task:
    """A task in which a group rebalances until all members have their share."""

    def run(session: Session) -> Measured:
        return session.python(
            "rebalances", 0, "join", "rebalance", topic=session.topic(2 * MEMBERS),
            protocol=protocol, members=MEMBERS, partitions=2 * MEMBERS,
        )  # fmt: skip

    name = f"group of {MEMBERS} members, {protocol} protocol"
    rows = Row(f"{name}: all join", "s", False), Row(f"{name}: one more joins", "s", False)
    return Task(rows, run, is_quick=True, needs_kafka_4=protocol == "consumer")


def committed(session: Session) -> Measured:
    return session.python(
        "commits", 0, "rate", topic=session.topic(), groups=COMMITTING_GROUPS,
        seconds=session.scale.seconds,
    )  # fmt: skip


def shared(session: Session) -> Measured:
    topic = session.topic()
    records = session.scale.shared
    session.python("produce", 0, "rate", topic=topic, value_bytes=BASE_BYTES, records=records)
    return session.python(
        "shared", records * BASE_BYTES, "rate", topic=topic, records=records
    )  # fmt: skip


def in_transactions(session: Session) -> Measured:
    seconds = session.scale.seconds
    return session.python("transactions", 0, "rate", topic=session.topic(), seconds=seconds)


def beside_idle(index: int) -> Callable[[Session], Measured]:
    def run(session: Session) -> Measured:
        idle = session.scale.idle[index]
        records = max(1, session.scale.bytes // BASE_BYTES // 10_000) * 10_000
        found = session.python(
            "produce_beside_idle", records * BASE_BYTES, "rate", topic=session.topic(),
            value_bytes=BASE_BYTES, records=records, idle=idle,
        )  # fmt: skip
        [rate] = found.values
        found.values = [rate * BASE_BYTES / MB]
        return found

    return run


def idle_row(idle: int) -> Row:
    return Row(f"produce, librdkafka, 1000 B, beside {idle:,} idle connections", "MB/s")


NOT_IDEMPOTENT = {"enable.idempotence": "false"}


def compressed(codec: str, is_quick: bool = False) -> Task:
    return produced(f"1 kB, {codec}", properties={"compression.type": codec}, is_quick=is_quick)


TOGETHER = (
    Row("produce and consume together: produce", "MB/s"),
    Row("produce and consume together: consume", "MB/s"),
)
TAIL = (
    Row("consume at the tail, 1,000/s, from due to received: p50", "ms", False),
    Row("consume at the tail, 1,000/s, from due to received: p99", "ms", False),
)

BASE = produced("1 kB, acks=all, idempotent", is_quick=True)

SHARED: tuple[Task, ...] = (
    BASE,
    produced("100 B", 100, is_quick=True),
    produced("10 kB", 10_000),
    produced("1 kB, acks=0", properties={"acks": "0", **NOT_IDEMPOTENT}),
    produced("1 kB, acks=1", properties={"acks": "1", **NOT_IDEMPOTENT}),
    produced("1 kB, acks=all, not idempotent", properties=NOT_IDEMPOTENT),
    produced("1 kB, 100 partitions", partitions=100, is_quick=True),
    compressed("gzip"),
    compressed("snappy"),
    compressed("lz4", is_quick=True),
    compressed("zstd"),
    produced_by_librdkafka(100),
    produced_by_librdkafka(BASE_BYTES),
    consumed("100 B", 100),
    consumed("1 kB", BASE_BYTES, is_quick=True),
    Task((Row("consume, librdkafka in Python, 1000 B", "MB/s"),), consumed_by_librdkafka),
    Task((Row("fetch, raw client, 1 MiB a request", "MB/s"),), fetched, is_quick=True),
    Task(TOGETHER, together, is_quick=True),
    Task(TAIL, tail, is_quick=True),
    at_rate(1000),
    at_rate(5000, is_quick=True),
    rate_kept(1),
    rate_kept(CONNECTIONS, is_quick=True),
    Task((idle_row(FULL.idle[0]),), beside_idle(0), is_quick=True),
    Task((idle_row(FULL.idle[1]),), beside_idle(1)),
)
"""Tasks that run one after another on the same broker. It stays warm from the earlier ones."""


COORDINATORS: tuple[Task, ...] = (
    rebalanced("classic"),
    rebalanced("consumer"),
    Task((Row(f"{COMMITTING_GROUPS:,} groups commit, one connection", "1/s"),), committed, True),
    Task((Row("share group of one member, librdkafka, 1 kB", "1/s"),), shared, True, True),
    Task((Row("transactions of one record, librdkafka", "1/s"),), in_transactions, True),
)


def _guarded(how: str, is_quick: bool = False) -> tuple[Task, ...]:
    return (
        produced(f"1 kB, {how}", is_quick=is_quick),
        consumed(f"1 kB, {how}", BASE_BYTES, is_quick=is_quick),
    )


GROUPS: tuple[tuple[str, Guard, tuple[Task, ...]], ...] = (
    ("loads", OPEN, SHARED),
    ("coordinators", OPEN, COORDINATORS),
    ("guards", Guard(authorizer=True), _guarded("with an authorizer", is_quick=True)),
    ("guards", Guard(tls=True), _guarded("over TLS")),
    ("guards", Guard(tls=True, authorizer=True), _guarded("over TLS with an authorizer")),
    ("guards", Guard(sasl=True), _guarded("with SASL SCRAM-SHA-512")),
    ("guards", Guard(quota=True), _guarded("within a quota")),
)
"""Parts of the table. Each has a broker of its own."""
