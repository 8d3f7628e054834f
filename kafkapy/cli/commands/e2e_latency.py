"""`kafkapy e2e-latency`: Kafka's `kafka-e2e-latency.sh` (`EndToEndLatency`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.jopt import require_utf8
from kafkapy.cli.framework.live_line import LiveLine
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    properties_of,
    values,
)
from kafkapy.cli.framework.output import Report, Table, number_json, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.java_numbers import is_natural

USAGE: Final = (
    "USAGE: kafkapy e2e-latency broker_list topic num_messages producer_acks message_size_bytes"
    " [optional] properties_file"
)


class Arguments(NamedTuple):
    """The words of the command line."""

    servers: str
    topic: str
    messages: int
    acks: str
    size_bytes: int
    properties_file: str | None


@dataclass
class EndToEndOptions(ClusterOptions):
    """The command has only operands and the common options."""

    words: list[str] = values(
        "Servers, topic, number of messages, acks (1 or all), bytes of each, and a property file.",
        metavar="BROKER_LIST TOPIC NUM_MESSAGES ACKS SIZE_BYTES [PROPERTIES_FILE]",
    )


def run(options: EndToEndOptions, env: Environment) -> ExitStatus:
    """Send and read records, and print the latencies."""
    from kafkapy.tools.librdkafka_client import Reporter, make_consumer, make_producer
    from kafkapy.tools.perf.end_to_end import EndToEnd

    given = parse_words(options.words)
    options.bootstrap_server = given.servers
    options.command_config = options.command_config or given.properties_file
    common = properties_of(options.command_config) | {"bootstrap.servers": given.servers}
    quiet = options.output is OutputFormat.json
    live, reporter = LiveLine(env, is_enabled=not quiet), Reporter(env.warn, common)

    with terminable():
        partitions = _partitions(options, given.topic, env)
        producer = make_producer(common | {"acks": given.acks, "linger.ms": "0"}, reporter)
        consumer_overrides = {"group.id": "e2e-latency", "enable.auto.commit": "false"}
        consumer_overrides |= {"fetch.max.wait.ms": "0", "auto.offset.reset": "latest"}
        consumer = make_consumer(common | consumer_overrides, reporter)
        try:
            test = EndToEnd(producer, consumer, given.topic)
            test.seek_to_ends(partitions)
            latencies = test.run(given.messages, given.size_bytes, live.print_permanent, live.show)
        finally:
            consumer.close()
    live.clear()
    data = {
        "messages": latencies.messages,
        "average_ms": number_json(latencies.average_ms),
        **latencies.percentiles_ms,
    }
    table = Table(("What", "ms"), [(name, ms) for name, ms in data.items() if name != "messages"])
    show(env, Report("e2e-latency", [data], latencies.lines(), [table]), options.output)
    return ExitStatus.SUCCESS


def parse_words(words: list[str]) -> Arguments:
    """
    Raises:
        UsageError: the number of words is wrong, a number is malformed, acks is not 1 or all, or a
            word is not UTF-8.
    """
    if len(words) not in (5, 6):
        raise UsageError(USAGE)
    for word in words[:5]:
        require_utf8(word, "argument")
    servers, topic, messages, acks, size = words[:5]
    if not is_natural(messages) or not is_natural(size):
        raise UsageError(USAGE)
    if acks not in ("1", "all"):
        raise UsageError(
            "Latency testing requires synchronous acknowledgement. Please use 1 or all"
        )
    return Arguments(
        servers, topic, int(messages), acks, int(size), words[5] if words[5:] else None
    )


def _partitions(options: EndToEndOptions, topic: str, env: Environment) -> list[int]:
    """The partitions of the topic, which is created if it does not exist."""
    from kafkapy.admin.topics import NewTopic, create_topic
    from kafkapy.common.errors import ErrorCode
    from kafkapy.common.topic_partition import TopicPartition

    with options.connect(env) as cluster:
        found = cluster.metadata([topic]).topics[topic]
        if found.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            env.warn(
                f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and'
                " replication factor = 1"
            )
            create_topic(cluster, NewTopic(topic, 1, 1))
            cluster.leader_of(TopicPartition(topic, 0))
            found = cluster.metadata([topic], refresh=True).topics[topic]
        return list(found.partitions)


COMMAND: Final = Command(
    "e2e-latency",
    EndToEndOptions,
    run,
    operands="words",
    examples={
        "Send and read 1,000 records of 100 bytes, one after the other.": (
            "localhost:9092 orders 1000 1 100"
        ),
        "Do so with TLS or a login, acknowledged by all in-sync replicas.": (
            "localhost:9092 orders 1000 all 100 client.properties"
        ),
    },
)
