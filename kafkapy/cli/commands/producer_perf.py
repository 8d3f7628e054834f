"""`kafkapy producer-perf`: Kafka's `kafka-producer-perf-test.sh` (`ProducerPerformance`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.live_line import LiveLine
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    flag,
    properties_of,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, number_json, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.cli.views.perf_metrics import with_metrics
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.tools.perf.producer_perf import Totals

CLIENT_ID: Final = "perf-producer-client"
TRANSACTIONAL_ID: Final = "performance-producer-default-transactional-id"


@dataclass
class ProducerPerfOptions(ClusterOptions):
    """The flags of `ProducerPerformance`."""

    topic: str | None = value("REQUIRED: the topic to write to.", metavar="TOPIC")
    num_records: int | None = value("REQUIRED: the number of records.", metavar="N")
    throughput: float | None = value(
        "REQUIRED: the maximum number of records a second; -1 for no limit.", metavar="N"
    )
    record_size: int | None = value("Bytes of each record.", metavar="BYTES", bits=32)
    payload_file: str | None = value("A file of payloads, picked at random.", metavar="FILE")
    payload_monotonic: bool = flag("Payloads 0, 1, 2 and so on.")
    payload_delimiter: str = value("The delimiter of the payloads in a file.", default="\\n")
    producer_props: list[str] = values(
        "Producer properties; they override --producer.config.",
        metavar="K=V K=V ...",
        many=True,
        aliases=("command-property",),
    )
    producer_config: str | None = value(
        "Producer properties in a file.", metavar="FILE", name="producer.config"
    )
    warmup_records: int = value(
        "Also print the statistics of the records after the first N.", metavar="N", default=0
    )
    reporting_interval: int = value("The interval of the lines.", metavar="MS", default=5000)
    print_metrics: bool = flag("Print the client's metrics at the end.")
    transactional_id: str = value(
        "With --transaction-duration-ms: the transactional id.",
        metavar="ID",
        default=TRANSACTIONAL_ID,
    )
    transaction_duration_ms: int = value(
        "Commit each transaction after this time; 0 for no transactions.", metavar="MS", default=0
    )


def run(options: ProducerPerfOptions, env: Environment) -> ExitStatus:
    """Send records. Prints a line for each interval, and the totals."""
    check(options)
    properties = producer_properties(options)
    from kafkapy.tools.librdkafka_client import Reporter, make_producer
    from kafkapy.tools.perf.client_metrics import ClientMetrics
    from kafkapy.tools.perf.producer_perf import Workload
    from kafkapy.tools.perf.producer_perf import run as send

    assert options.topic is not None
    assert options.num_records is not None
    assert options.throughput is not None
    quiet = options.output is OutputFormat.json
    live = LiveLine(env, is_enabled=not quiet)
    payloads = _payloads(options, env)
    workload = Workload(
        options.topic,
        options.num_records,
        payloads,
        options.throughput,
        options.transaction_duration_ms,
        options.warmup_records,
        options.reporting_interval,
    )
    metrics = ClientMetrics("producer")

    with terminable():
        producer = make_producer(properties, Reporter(env.warn, properties), metrics.config())
        if "transactional.id" not in properties:  # its first transaction waits
            metrics.wait_for_producer_id(producer.poll)
        totals, steady = send(producer, workload, live.print_permanent, env.warn, live.show)
        if options.print_metrics:
            metrics.wait_for_update(producer.poll)
    live.clear()
    report = _report(options.topic, totals, steady)
    show(env, with_metrics(report, metrics) if options.print_metrics else report, options.output)
    return ExitStatus.SUCCESS


def _report(topic: str, totals: Totals, steady: Totals | None) -> Report:
    data: dict[str, object] = {"topic": topic, **_json(totals)}
    text, tables = [totals.line()], [_table(totals, "Value")]
    if steady is not None:
        data["steady_state"] = _json(steady)
        text.append(steady.line(" steady state"))
        tables.append(_table(steady, "Steady state"))
    return Report("producer-perf", [data], text, tables)


def _json(totals: Totals) -> dict[str, object]:
    found = totals._asdict()
    return {n: number_json(v) if isinstance(v, float) else v for n, v in found.items()}


def _table(totals: Totals, heading: str) -> Table:
    rows = [each for each in totals._asdict().items() if each[0] != "percentiles_ms"]
    rows += [(f"latency_ms {name}", ms) for name, ms in totals.percentiles_ms.items()]
    return Table(("What", heading), rows)


def check(options: ProducerPerfOptions) -> None:
    """
    Raises:
        UsageError: a required option is missing, or payloads have no source or several.
    """
    require(options, "topic", "num_records", "throughput")
    sources = [
        options.record_size is not None,
        options.payload_file is not None,
        options.payload_monotonic,
    ]
    if sum(sources) != 1:
        raise UsageError(
            "Exactly one of --record-size, --payload-file and --payload-monotonic is required"
        )
    if options.record_size is not None and options.record_size < 1:
        raise UsageError("--record-size should be greater than zero.")
    if options.reporting_interval < 1:
        raise UsageError("--reporting-interval should be greater than zero.")
    assert options.num_records is not None
    if options.warmup_records >= max(options.num_records, 1):
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in"
            " the test, --num-records."
        )
    if not options.producer_props and not options.producer_config and not options.bootstrap_server:
        raise UsageError("Either --producer-props or --producer.config must be specified.")


def producer_properties(options: ProducerPerfOptions) -> dict[str, str]:
    """The properties: --bootstrap-server overrides --producer-props and --producer.config, in this
    order.

    Raises:
        UsageError: a property is not key=value, or the bootstrap servers are missing.
        ConfigError: a file cannot be read.
    """
    found = {"client.id": CLIENT_ID}
    found |= properties_of(options.command_config, options.producer_config)
    for word in options.producer_props:
        parts = word.split("=")
        if len(parts) != 2:
            raise UsageError(f"Invalid property: {word}")
        found[parts[0]] = parts[1]
    if options.bootstrap_server is not None:
        found["bootstrap.servers"] = options.bootstrap_server
    if options.transaction_duration_ms > 0:
        found.setdefault("transactional.id", options.transactional_id)
    if "bootstrap.servers" not in found:
        raise UsageError("No server is named: --producer-props bootstrap.servers=HOST:PORT")
    return found


def _payloads(options: ProducerPerfOptions, env: Environment) -> Iterator[bytes]:
    from pathlib import Path

    from kafkapy.tools.perf import producer_perf

    if options.payload_monotonic:
        return producer_perf.monotonic_payloads()
    if options.payload_file is None:
        assert options.record_size is not None
        return producer_perf.random_payloads(options.record_size)
    delimiter = options.payload_delimiter.replace("\\n", "\n").replace("\\t", "\t")
    if not delimiter:
        raise ConfigError("--payload-delimiter is empty")
    lines = producer_perf.read_payload_file(options.payload_file, delimiter)
    env.warn(f"Reading payloads from: {Path(options.payload_file).resolve()}")
    env.warn(f"Number of messages read: {len(lines)}")
    return producer_perf.file_payloads(lines)


COMMAND: Final = Command(
    "producer-perf",
    ProducerPerfOptions,
    run,
    as_argparse=True,
    reported_failures="records were not acknowledged",
    groups={
        "What to send": (
            "topic num-records record-size payload-file payload-delimiter payload-monotonic"
        ),
        "How to send": (
            "throughput producer-props producer.config transactional-id transaction-duration-ms"
        ),
        "What to show": "warmup-records reporting-interval print-metrics",
    },
    examples={
        "Write 10,000 records of 100 bytes as fast as possible.": (
            "--topic orders --num-records 10000 --record-size 100 --throughput -1"
            " --producer-props bootstrap.servers=localhost:9092"
        ),
        "Write 1,000 records a second, each acknowledged by all in-sync replicas.": (
            "--topic orders --num-records 3000 --record-size 100 --throughput 1000"
            " --producer-props bootstrap.servers=localhost:9092 acks=all"
        ),
    },
)
