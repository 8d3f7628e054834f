"""`kafkapy replica-verification`: Kafka's `kafka-replica-verification.sh`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus
from kafkapy.cli.framework.options import (
    CommonOptions,
    OutputFormat,
    check_host_ports,
    flag,
    properties_of,
    refuse,
    require,
    value,
)
from kafkapy.cli.framework.output import ENVELOPE_VERSION, Report, Table, show

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster
    from kafkapy.client.metadata import PartitionMetadata
    from kafkapy.client.replica_fetch import ReplicaRecords
    from kafkapy.common.topic_partition import TopicPartition
    from kafkapy.tools.replica_comparison import Difference
    from kafkapy.tools.replica_verification import Lag, PartitionProgress, ReplicaVerification

LATEST: Final = -1
EARLIEST: Final = -2
CLIENT_ID: Final = "ReplicaVerificationTool"


@dataclass
class ReplicaVerificationOptions(CommonOptions):
    """The flags of `ReplicaVerificationTool`, and --once."""

    broker_list: str | None = value(
        "REQUIRED: the brokers to connect to first.", metavar="HOST:PORT,..."
    )
    bootstrap_server: str | None = value("The same as --broker-list.", metavar="HOST:PORT,...")
    command_config: str | None = value(
        "A property file for the connection: security and timeouts.", metavar="FILE"
    )
    topics_include: str | None = value(
        "A regular expression of topics. Default: all.", metavar="REGEX"
    )
    topic_white_list: str | None = value("Deprecated: --topics-include.", metavar="REGEX")
    fetch_size: int = value(
        "Bytes to fetch of a partition at a time.", metavar="BYTES", default=1024 * 1024, bits=32
    )
    max_wait_ms: int = value(
        "The time that a broker may wait for records.", metavar="MS", default=1000, bits=32
    )
    report_interval_ms: int = value(
        "The interval between reports of the largest lag.", metavar="MS", default=30_000
    )
    time: int | None = value(
        "The start: -1 for the end, -2 for the beginning, or milliseconds since the"
        " epoch. Default: -1, with --once -2.",
        metavar="TIME",
    )
    once: bool = flag(
        "Compare up to the present high watermarks, then exit: with 0 if all replicas are the same."
    )


def run(options: ReplicaVerificationOptions, env: Environment) -> ExitStatus:
    """Compare until the offsets of replicas diverge, or with --once until all is compared."""
    from kafkapy.admin.topic_filter import TopicFilter

    options.broker_list = options.broker_list or options.bootstrap_server
    require(options, "broker_list")
    refuse(options, "topics_include", "topic_white_list")
    check_host_ports(options.broker_list)
    topics = TopicFilter(options.topics_include or options.topic_white_list)
    printer = EventPrinter(env, options.output)
    with _verification(options, env, topics) as verification:
        printer.line("verification process is started")
        try:
            if options.once:
                return _run_once(options, env, verification, printer)
            return _run_continuously(options, env, verification, printer)
        except KeyboardInterrupt:
            return ExitStatus.INTERRUPTED


class EventPrinter:
    """Prints Kafka's lines, each with its time, or a JSON object on each line."""

    def __init__(self, env: Environment, form: OutputFormat | None) -> None:
        self._env = env
        self.is_json = form is OutputFormat.json

    def line(self, text: str, **fields: Any) -> None:
        """Print one line, and flush it at once. `fields` are those of the JSON object."""
        now = datetime.now()
        if not self.is_json:
            self._env.line(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}: {text}")
        elif fields:
            import json

            head = {"kafkapy": ENVELOPE_VERSION, "command": COMMAND.name}
            self._env.line(json.dumps({**head, "time": now.isoformat(), **fields}))
        self._env.stdout.flush()

    def difference(self, found: Difference) -> None:
        """Print Kafka's line for a batch that differs."""
        self.line(found.text(), kind="difference", **_difference_fields(found))

    def lag(self, lag: Lag, partitions: int) -> None:
        """Print Kafka's report of the largest lag."""
        name = "null" if lag.partition is None else str(lag.partition)
        self.line(
            f"max lag is {lag.messages} for partition {name} at offset {lag.offset} among"
            f" {partitions} partitions",
            kind="lag",
            max_lag=lag.messages,
            partition=name,
            offset=lag.offset,
            partitions=partitions,
        )


def _difference_fields(found: Difference) -> dict[str, Any]:
    return {
        **found.partition._asdict(),
        "what": found.field,
        "first_differing_offset": found.offset,
        "last_offset": found.last_offset,
        "replicas": list(found.replicas),
        "values": list(found.values),
        "corrupt_replicas": list(found.corrupt),
    }


@contextmanager
def _verification(
    options: ReplicaVerificationOptions, env: Environment, topics: Any
) -> Iterator[ReplicaVerification]:
    """The verification, with a connection to each broker and the first offset of each partition."""
    from kafkapy.client.replica_fetch import fetch_from_replica
    from kafkapy.tools.replica_verification import ReplicaVerification

    with ExitStack() as stack:
        cluster = stack.enter_context(_connect(options, env))
        partitions = _partitions(cluster, options, topics)
        brokers = sorted({replica for each in partitions for replica in each.replicas})
        # A separate client for each broker, because each is used by its own thread.
        clients = {broker: stack.enter_context(_connect(options, env)) for broker in brokers}

        def fetch(
            broker: int, offsets: Mapping[TopicPartition, int], waits: bool
        ) -> Mapping[TopicPartition, ReplicaRecords]:
            max_wait_ms = options.max_wait_ms if waits else 0
            size = options.fetch_size
            return fetch_from_replica(
                clients[broker], broker, offsets, partition_bytes=size, max_wait_ms=max_wait_ms
            )

        sources = {broker: partial(fetch, broker) for broker in brokers}
        pool = stack.enter_context(ThreadPoolExecutor(max(1, len(brokers))))
        yield ReplicaVerification(sources, partitions, pool, options.fetch_size)


def _connect(options: ReplicaVerificationOptions, env: Environment) -> Cluster:
    from kafkapy.client.cluster import Cluster

    assert options.broker_list is not None
    properties = properties_of(options.command_config)
    return Cluster(options.broker_list, properties, CLIENT_ID, connector=env.connector)


def _partitions(
    cluster: Cluster, options: ReplicaVerificationOptions, topics: Any
) -> list[PartitionProgress]:
    from kafkapy.common.topic_partition import TopicPartition
    from kafkapy.tools.replica_verification import PartitionProgress

    found = cluster.metadata(None).topics
    chosen: dict[TopicPartition, PartitionMetadata] = {
        TopicPartition(name, index): partition
        for name in topics.choose(found)
        for index, partition in found[name].partitions.items()
    }
    if not chosen:
        raise CommandFailed(
            "No topics found. --topics-include, if specified, is either filtering out all topics"
            f" or there is no topic: {topics.text}"
        )
    start = (EARLIEST if options.once else LATEST) if options.time is None else options.time
    starts = _offsets(cluster, chosen, start)
    ends = _offsets(cluster, chosen, LATEST) if options.once or start not in (-1, -2) else {}
    return [
        PartitionProgress(
            tp,
            partition.replicas,
            starts[tp] if starts[tp] >= 0 else ends[tp],
            ends[tp] if options.once else None,
        )
        for tp, partition in chosen.items()
    ]


def _offsets(
    cluster: Cluster, chosen: dict[TopicPartition, Any], timestamp: int
) -> dict[TopicPartition, int]:
    results = cluster.list_offsets(dict.fromkeys(chosen, timestamp))
    for tp, result in results.items():
        if result.error:
            raise CommandFailed(f"The offsets of {tp} cannot be found: {result.reason}")
    return {tp: result.offset for tp, result in results.items()}


def _run_continuously(
    options: ReplicaVerificationOptions,
    env: Environment,
    verification: ReplicaVerification,
    printer: EventPrinter,
) -> ExitStatus:
    """Compare until the offsets of some replicas diverge, as Kafka's tool does."""
    with _connect(options, env) as cluster:
        pause = cluster.pause
    reported_s = time.monotonic()
    for found in verification.rounds():
        for difference in found.differences:
            printer.difference(difference)
            if difference.field == "offset":
                return ExitStatus.FAILURE
        if (time.monotonic() - reported_s) * 1000 > options.report_interval_ms:
            printer.lag(found.lag, len(verification.partitions))
            reported_s = time.monotonic()
        if not found.advanced:
            pause()  # brokers answer at once if a partition has an error
    return ExitStatus.SUCCESS


def _run_once(
    options: ReplicaVerificationOptions,
    env: Environment,
    verification: ReplicaVerification,
    printer: EventPrinter,
) -> ExitStatus:
    """Compare until all partitions are compared, or none advances for the request timeout."""
    with _connect(options, env) as cluster:
        timeout_s, pause = cluster.request_timeout_ms / 1000, cluster.pause
    advanced_s = time.monotonic()
    for found in verification.rounds():
        for difference in found.differences:
            if not printer.is_json:
                printer.difference(difference)
        if found.advanced:
            advanced_s = time.monotonic()
        elif time.monotonic() - advanced_s > timeout_s:
            break
        else:
            pause()
    rows = verification.partitions
    all_same = all(each.is_done and not each.differences for each in rows)
    show(env, _report(rows), options.output)
    return ExitStatus.SUCCESS if all_same else ExitStatus.FAILURE


def _report(rows: list[PartitionProgress]) -> Report:
    data = [
        {
            **each.partition._asdict(),
            "replicas": list(each.replicas),
            "start_offset": each.start_offset,
            "end_offset": each.end_offset,
            "verified_to": each.offset,
            "batches": each.batches,
            "verdict": _verdict(each),
            "problem": "" if each.is_done else each.problem,
            "differences": [_difference_fields(found) for found in each.differences],
        }
        for each in rows
    ]
    cells = [
        (str(each.partition), _ids(each.replicas), each.start_offset, each.offset, each.batches,
         _verdict(each), _details(each))
        for each in rows
    ]  # fmt: skip
    columns = ("Partition", "Replicas", "From", "To", "Batches", "Verdict", "Details")
    return Report(COMMAND.name, data, _summary(rows), [Table(columns, cells)])


def _summary(rows: list[PartitionProgress]) -> Iterator[str]:
    """A line for each partition that differs or is not verified, and a summary line."""
    bad = [each for each in rows if _verdict(each) != "same"]
    for each in bad:
        yield f"{each.partition}: {_verdict(each)}: {_details(each)}"
    batches = sum(each.batches for each in rows)
    same = len(rows) - len(bad)
    yield f"{same} of {len(rows)} partitions are the same in all replicas, {batches} batches"


def _verdict(each: PartitionProgress) -> str:
    if each.differences:
        return "differs"
    return "same" if each.is_done else "not verified"


def _details(each: PartitionProgress) -> str:
    if each.differences:
        first = min(each.differences, key=lambda found: found.offset)
        text = f"first differing offset {first.offset}, replicas {_ids(first.replicas)}"
        return text + (f", corrupt: {_ids(first.corrupt)}" if first.corrupt else "")
    return "" if each.is_done else f"from offset {each.offset} on: {each.problem}"


def _ids(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))


COMMAND: Final = Command(
    "replica-verification",
    ReplicaVerificationOptions,
    run,
    groups={
        "Connection": "broker-list",
        "What to compare": "topics-include topic-white-list time once fetch-size max-wait-ms",
        "What to show": "report-interval-ms",
    },
    examples={
        "Compare all replicas once; the exit status is 0 if they are the same.": (
            "--once --broker-list localhost:9092"
        ),
        "Continuously compare the topics that begin with orders.": (
            "--topics-include 'orders.*' --broker-list localhost:9092"
        ),
    },
)
