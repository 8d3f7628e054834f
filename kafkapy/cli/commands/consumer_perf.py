"""`kafkapy consumer-perf`: Kafka's `kafka-consumer-perf-test.sh` (`ConsumerPerformance`)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.live_line import LiveLine
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    check_host_ports,
    flag,
    is_given,
    properties_of,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.cli.views.perf_metrics import with_metrics
from kafkapy.client.properties import parse_assignments
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.tools.perf.consumer_perf import Result, Span

GROUP_NUMBERS: Final = 100_000
IGNORED: Final = (
    "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by"
    " the test"
)


@dataclass
class ConsumerPerfOptions(ClusterOptions):
    """The flags of `ConsumerPerfOptions`."""

    broker_list: str | None = value("Deprecated: --bootstrap-server.", metavar="HOST:PORT,...")
    topic: str | None = value("The topic to read.", metavar="TOPIC")
    include: str | None = value(
        "Read the topics that match the regular expression instead.", metavar="REGEX"
    )
    messages: int | None = value(
        "REQUIRED: the number of records.", metavar="N", aliases=("num-records",)
    )
    group: str | None = value("The group. Default: a random one.", metavar="GROUP")
    fetch_size: int = value(
        "The bytes to fetch of a partition at a time.", metavar="BYTES", default=1048576
    )
    from_latest: bool = flag("Start at the end of partitions without a committed offset.")
    socket_buffer_size: int = value("TCP receive buffer.", metavar="BYTES", default=2097152)
    consumer_config: str | None = value(
        "Consumer properties in a file.", metavar="FILE", name="consumer.config"
    )
    command_property: list[str] = values("A consumer property.", metavar="K=V")
    print_metrics: bool = flag("Print the client's metrics at the end.")
    show_detailed_stats: bool = flag("Print a line for each interval instead of one at the end.")
    timeout: int = value("Stop if no record arrives for this time.", metavar="MS", default=10000)
    reporting_interval: int = value("The interval of the lines.", metavar="MS", default=5000)
    date_format: str = value("The format of times.", default="yyyy-MM-dd HH:mm:ss:SSS")
    hide_header: bool = flag("Omit the header.")
    threads: int | None = value("Accepted for compatibility: ignored.", metavar="N")
    num_fetch_threads: int | None = value("Accepted for compatibility: ignored.", metavar="N")


def run(options: ConsumerPerfOptions, env: Environment) -> ExitStatus:
    """Read records, and print one line for the run or one for each interval."""
    from kafkapy.tools.java_format import DateFormat
    from kafkapy.tools.librdkafka_client import Reporter, make_consumer
    from kafkapy.tools.perf import consumer_perf
    from kafkapy.tools.perf.client_metrics import ClientMetrics

    options.bootstrap_server = options.bootstrap_server or options.broker_list
    require(options, "bootstrap_server", "messages")
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of --include/--topic is required.")
    check_host_ports(options.bootstrap_server)
    assert options.messages is not None
    if is_given(options, "threads") or is_given(options, "num_fetch_threads"):
        env.warn(IGNORED)
    quiet = options.output is OutputFormat.json
    dates, live = DateFormat(options.date_format), LiveLine(env, is_enabled=not quiet)
    detailed = options.show_detailed_stats and not quiet
    header = consumer_perf.DETAILED_HEADER if detailed else consumer_perf.HEADER
    if not options.hide_header and not quiet:
        env.line(header)

    def on_interval(span: Span) -> None:
        live.clear()
        if detailed:
            env.line(span.detailed_line(dates))
            env.stdout.flush()
        else:
            live.show(span.detailed_line(dates))

    topics = _topics(options, env)
    metrics = ClientMetrics("consumer")
    extra = metrics.config() if options.print_metrics else {}
    with terminable():
        properties = consumer_properties(options)
        consumer = make_consumer(properties, Reporter(env.warn, properties), extra)
        # On a terminal, the live line is updated each second.
        interval = options.reporting_interval
        if env.on_terminal and not detailed:
            interval = min(interval, 1000)
        workload = consumer_perf.Workload(topics, options.messages, options.timeout, interval)
        try:
            result = consumer_perf.run(consumer, workload, on_interval)
            if options.print_metrics:
                metrics.wait_for_update(consumer.poll)
        finally:
            consumer.close()
    live.clear()
    if result.timed_out:
        warning = (
            "WARNING: Exiting before consuming the expected number of messages: timeout"
            f" ({options.timeout} ms) exceeded. You can use the --timeout option to increase the"
            " timeout."
        )
        (env.warn if quiet else env.line)(warning)
    text = [] if detailed else [result.span.line(dates)]
    report = _report(result, text)
    show(env, with_metrics(report, metrics) if options.print_metrics else report, options.output)
    return ExitStatus.SUCCESS


def _topics(options: ConsumerPerfOptions, env: Environment) -> list[str]:
    """The topic, or those that match the regular expression now."""
    from kafkapy.admin.topic_filter import name_pattern
    from kafkapy.common.topic_partition import INTERNAL_TOPICS

    if options.topic is not None:
        return [options.topic]
    assert options.include is not None
    pattern = name_pattern(options.include)
    options.command_config = options.command_config or options.consumer_config
    with options.connect(env) as cluster:
        names = cluster.metadata().topics
    chosen = [n for n in names if n not in INTERNAL_TOPICS and pattern.fullmatch(n)]
    if not chosen:
        raise ConfigError(f"No topic matches {options.include}")
    return sorted(chosen)


def _report(result: Result, text: list[str]) -> Report:
    span = result.span
    data = {
        "start_ms": span.start_ms,
        "end_ms": span.end_ms,
        "bytes": span.bytes_total,
        "records": span.records_total,
        "rebalance_ms": span.rebalance_ms,
        "timed_out": result.timed_out,
    }
    rows = list(data.items())
    return Report("consumer-perf", [data], text, [Table(("What", "Value"), rows)] if text else [])


def consumer_properties(options: ConsumerPerfOptions) -> dict[str, str]:
    """The consumer's properties: flags override --command-property, which overrides the file, as
    in Kafka's tool.

    Raises:
        ConfigError: a file cannot be read.
    """
    found = {"client.id": "perf-consumer-client"}
    found |= properties_of(options.command_config, options.consumer_config)
    found |= parse_assignments(options.command_property)
    return found | {
        "bootstrap.servers": options.bootstrap_server or "",
        "group.id": options.group or f"perf-consumer-{random.randrange(GROUP_NUMBERS)}",
        "receive.buffer.bytes": str(options.socket_buffer_size),
        "max.partition.fetch.bytes": str(options.fetch_size),
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
        "check.crcs": "false",
    }


COMMAND: Final = Command(
    "consumer-perf",
    ConsumerPerfOptions,
    run,
    reported_failures="--timeout passed before the last record",
    groups={
        "Connection": "broker-list consumer.config command-property socket-buffer-size",
        "What to read": (
            "topic include messages group from-latest fetch-size timeout threads num-fetch-threads"
        ),
        "What to show": (
            "show-detailed-stats reporting-interval date-format hide-header print-metrics"
        ),
    },
    examples={
        "Read 10,000 records as fast as possible.": "--topic orders --messages 10000 {B}",
        "Show a line each second.": (
            "--topic orders --messages 10000 --show-detailed-stats --reporting-interval 1000 {B}"
        ),
    },
)
