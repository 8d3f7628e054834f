"""`kafkapy console-share-consumer`: Kafka's `kafka-console-share-consumer.sh`
(`ConsoleShareConsumer`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.message_output import message_output, renderer
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    normalise_limits,
    properties_of,
    require,
    value,
    values,
)

DEFAULT_GROUP: Final = "console-share-consumer"


@dataclass
class ConsoleShareConsumerOptions(ClusterOptions):
    """The flags of `ConsoleShareConsumerOptions`."""

    topic: str | None = value("REQUIRED: the topic to read.", metavar="TOPIC")
    group: str | None = value(
        "The share group; console-share-consumer by default.", metavar="GROUP"
    )
    max_messages: int | None = value("Stop after this number of records.", metavar="N")
    timeout_ms: int | None = value("Stop if no record arrives for this time.", metavar="MS")
    release: bool = flag("Release records as they are read, so that they are delivered again.")
    reject: bool = flag("Reject records as they are read.")
    reject_message_on_error: bool = flag("Reject a record that cannot be formatted, and continue.")
    formatter: str | None = value("The formatter of records.", metavar="CLASS")
    formatter_property: list[str] = values(
        "A property of the formatter: print.timestamp, print.partition, print.offset,"
        " print.delivery, print.headers, print.key, print.value, key.separator,"
        " line.separator, headers.separator, null.literal, key.deserializer,"
        " value.deserializer, headers.deserializer; schema.registry.url prints values with"
        " schemas as JSON.",
        metavar="K=V",
        aliases=("property",),
    )
    formatter_config: str | None = value("The same properties in a file.", metavar="FILE")
    key_deserializer: str | None = value("The deserializer of keys.", metavar="CLASS")
    value_deserializer: str | None = value("The deserializer of values.", metavar="CLASS")
    command_property: list[str] = values(
        "A consumer property.", metavar="K=V", aliases=("consumer-property",)
    )
    consumer_config: str | None = value("Deprecated: --command-config.", metavar="FILE")
    enable_systest_events: bool = flag("Print shutdown_complete at the end.")


def run(options: ConsoleShareConsumerOptions, env: Environment) -> ExitStatus:
    """Print records until a limit, an error or a signal. Then the count goes to stderr."""
    require(options, "topic", "bootstrap_server")
    normalise_limits(options)
    if options.release and options.reject:
        raise UsageError("At most one of --reject and --release may be specified.")
    assert options.topic is not None
    from confluent_kafka import AcknowledgeType

    from kafkapy.tools.console.console_share_consumer import ConsoleShareConsumer

    acknowledge_type = AcknowledgeType.ACCEPT
    if options.release or options.reject:
        acknowledge_type = AcknowledgeType.RELEASE if options.release else AcknowledgeType.REJECT
    formatting = formatter_properties(options)
    render = renderer(COMMAND.name, options.formatter, formatting, options.output)
    out = env.stdout.buffer
    consumer = ConsoleShareConsumer(
        options.topic,
        consumer_properties(options),
        env.warn,
        acknowledge_type=acknowledge_type,
        rejects_errors=options.reject_message_on_error,
    )
    with message_output(
        env,
        count=lambda: consumer.count,
        reset_offsets=lambda: None,  # records that were not written are not acknowledged
        close=consumer.close,
        enable_systest_events=options.enable_systest_events,
    ):
        consumer.run(render, out, max_messages=options.max_messages, timeout_ms=options.timeout_ms)
    return ExitStatus.SUCCESS


def consumer_properties(options: ConsoleShareConsumerOptions) -> dict[str, str]:
    """The consumer's properties: flags override --command-property, which overrides files.

    Raises:
        UsageError: different groups are given.
        ConfigError: a file cannot be read.
    """
    from kafkapy.client.properties import parse_assignments

    file = properties_of(options.command_config, options.consumer_config)
    words = parse_assignments(options.command_property)
    groups = [options.group, words.get("group.id"), file.get("group.id")]
    named = list(dict.fromkeys(group for group in groups if group is not None))
    if len(named) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via"
            " '--command-property', or via '--command-config') do not match. Detected group ids: "
            + ", ".join(f"'{group}'" for group in named)
        )
    return {
        "client.id": "console-share-consumer",
        **file,
        **words,
        "group.id": named[0] if named else DEFAULT_GROUP,
        "bootstrap.servers": options.bootstrap_server or "",
    }


def formatter_properties(options: ConsoleShareConsumerOptions) -> dict[str, str]:
    """The formatter's properties: deserializer flags override --formatter-property, which overrides
    the file.
    """
    from kafkapy.client.properties import parse_assignments

    found = properties_of(options.formatter_config)
    found |= parse_assignments(options.formatter_property)
    if options.key_deserializer is not None:
        found["key.deserializer"] = options.key_deserializer
    if options.value_deserializer is not None:
        found["value.deserializer"] = options.value_deserializer
    return found


COMMAND: Final = Command(
    "console-share-consumer",
    ConsoleShareConsumerOptions,
    run,
    groups={
        "Connection": "command-property consumer-config",
        "What to read": "topic group",
        "When to stop": "max-messages timeout-ms",
        "Acknowledgement": "release reject reject-message-on-error",
        "Format of records": (
            "formatter-property formatter formatter-config key-deserializer value-deserializer"
            " enable-systest-events"
        ),
    },
    examples={
        "Read as a member of a share group; stop if no record arrives for 1 s.": (
            "--topic orders --group payments --timeout-ms 1000 {B}"
        ),
        "Show how often each record was delivered.": (
            "--topic orders --group payments --timeout-ms 1000"
            " --formatter-property print.delivery=true {B}"
        ),
    },
)
