"""`kafkapy console-producer`: Kafka's `kafka-console-producer.sh` (`ConsoleProducer`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import (
    ClusterOptions,
    check_host_ports,
    flag,
    properties_of,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.framework.termination import terminable

if TYPE_CHECKING:
    from kafkapy.tools.console.line_reader import LineReader

PROMPT: Final = ">"
# Option -> the producer property that it sets, and this tool's default of the property.
PROPERTY_OF_OPTION: Final = {
    "batch_size": ("batch.size", "16384"),
    "message_send_max_retries": ("retries", "3"),
    "retry_backoff_ms": ("retry.backoff.ms", "100"),
    "timeout": ("linger.ms", "1000"),
    "request_required_acks": ("acks", "-1"),
    "request_timeout_ms": ("request.timeout.ms", "1500"),
    "metadata_expiry_ms": ("metadata.max.age.ms", "300000"),
    "max_block_ms": ("max.block.ms", "60000"),
    "max_memory_bytes": ("buffer.memory", "33554432"),
    "socket_buffer_size": ("send.buffer.bytes", "102400"),
    "compression_codec": ("compression.type", "none"),
    "max_partition_memory_bytes": ("batch.size", "16384"),
}


@dataclass
class ConsoleProducerOptions(ClusterOptions):
    """The flags of `ConsoleProducer`."""

    broker_list: str | None = value("Deprecated: --bootstrap-server.", metavar="HOST:PORT,...")
    topic: str | None = value("REQUIRED: the topic to write to.", metavar="TOPIC")
    sync: bool = flag("Wait for each record to be acknowledged.")
    compression_codec: str | None = value(
        "none, gzip, snappy, lz4 or zstd; gzip if no codec follows. Default: none.",
        metavar="CODEC",
        optional_value="gzip",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
    )
    batch_size: int | None = value("Bytes of a batch. Default: 16384.", metavar="BYTES")
    max_partition_memory_bytes: int | None = value("The same as --batch-size.", metavar="BYTES")
    message_send_max_retries: int | None = value("The number of retries. Default: 3.", metavar="N")
    retry_backoff_ms: int | None = value("The time between retries. Default: 100.", metavar="MS")
    timeout: int | None = value(
        "The time that a batch waits for more records. Default: 1000.", metavar="MS"
    )
    request_required_acks: str | None = value(
        "The acknowledgements that a record needs: 0, 1, or -1 for all in-sync replicas."
        " Default: -1.",
        metavar="ACKS",
    )
    request_timeout_ms: int | None = value(
        "The time limit for a response. Default: 1500.", metavar="MS"
    )
    metadata_expiry_ms: int | None = value(
        "The time between refreshes of the metadata. Default: 300000.", metavar="MS"
    )
    max_block_ms: int | None = value(
        "The time limit to find the topic in the metadata. Default: 60000.", metavar="MS"
    )
    max_memory_bytes: int | None = value("The buffer size of all batches.", metavar="BYTES")
    socket_buffer_size: int | None = value("TCP send buffer. Default: 102400.", metavar="BYTES")
    line_reader: str | None = value(
        "The reader of the lines: Kafka's own, or Confluent's of values with schemas, which"
        " --property configures.",
        metavar="CLASS",
    )
    property: list[str] = values(
        "A property of the line reader: parse.key, key.separator, parse.headers,"
        " headers.delimiter, headers.separator, headers.key.separator, null.marker,"
        " ignore.error; schema.registry.url writes JSON by a schema: value.schema.id, or the"
        " latest of the topic, and key.schema.id.",
        metavar="K=V",
        aliases=("reader-property",),
    )
    reader_config: str | None = value("The same properties in a file.", metavar="FILE")
    producer_property: list[str] = values(
        "A producer property.", metavar="K=V", aliases=("command-property",)
    )
    producer_config: str | None = value(
        "Producer properties in a file.", metavar="FILE", name="producer.config"
    )


def run(options: ConsoleProducerOptions, env: Environment) -> ExitStatus:
    """Send the lines of stdin."""
    options.bootstrap_server = options.bootstrap_server or options.broker_list
    require(options, "topic", "bootstrap_server")
    check_host_ports(options.bootstrap_server)
    assert options.topic is not None
    from kafkapy.tools.console.console_producer import ConsoleProducer, lines_of, send_lines

    reader = _reader(options, options.topic)
    producer = ConsoleProducer(options.topic, producer_properties(options), env.warn)

    def prompt() -> None:
        env.write(PROMPT)
        env.stdout.flush()

    lines = lines_of(env.stdin.buffer, prompt if env.interactive else None)
    with terminable():
        producer.wait_for_topic()
        send_lines(lines, reader, producer, sync=options.sync)
    data = {"topic": options.topic, "sent": producer.sent}
    show(env, Report("console-producer", [data], []), options.output)
    return ExitStatus.SUCCESS


def _reader(options: ConsoleProducerOptions, topic: str) -> LineReader:
    from kafkapy.tools.console.line_reader import (
        REGISTRY_CLASSES,
        LineReader,
        check_reader_class,
    )

    properties = reader_properties(options)
    if options.line_reader is not None:
        check_reader_class(options.line_reader)
    if options.line_reader not in REGISTRY_CLASSES and "schema.registry.url" not in properties:
        return LineReader(properties)
    from kafkapy.tools.console.registry_values import registry_serializer

    return LineReader(
        properties,
        registry_serializer(properties, topic, "key"),
        registry_serializer(properties, topic, "value"),
    )


def reader_properties(options: ConsoleProducerOptions) -> dict[str, str]:
    """The line reader's properties: --property overrides the file."""
    from kafkapy.client.properties import parse_assignments

    return properties_of(options.reader_config) | parse_assignments(options.property)


def producer_properties(options: ConsoleProducerOptions) -> dict[str, str]:
    """The producer's properties: flags override properties, which override this tool's defaults."""
    from kafkapy.client.properties import parse_assignments

    found = {"client.id": "console-producer"}
    found |= properties_of(options.command_config, options.producer_config)
    found |= parse_assignments(options.producer_property)
    for option, (name, default) in PROPERTY_OF_OPTION.items():
        given = getattr(options, option)
        if given is not None:
            found[name] = str(given)
        else:
            found.setdefault(name, default)
    found["bootstrap.servers"] = options.bootstrap_server or ""
    return found


COMMAND: Final = Command(
    "console-producer",
    ConsoleProducerOptions,
    run,
    reported_failures="without --sync, records were not acknowledged",
    groups={
        "Connection": (
            "broker-list producer-property producer.config request-timeout-ms metadata-expiry-ms"
            " socket-buffer-size"
        ),
        "What to write": "topic property reader-config line-reader",
        "How to write": (
            "sync request-required-acks compression-codec batch-size max-partition-memory-bytes"
            " timeout max-memory-bytes message-send-max-retries retry-backoff-ms max-block-ms"
        ),
    },
    examples={
        "Write each line that you type as a record; Ctrl-D ends it.": "--topic orders {B}",
        "Read key and value from each line: 7:hello.": (
            "--topic orders --property parse.key=true --property key.separator=: {B}"
        ),
        "Write with TLS or a login.": "--topic orders --producer.config client.properties {B}",
    },
)
