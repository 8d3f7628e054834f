"""`kafkapy console-consumer`: Kafka's `kafka-console-consumer.sh` (`ConsoleConsumer`)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.tools.console.console_consumer import Source

GROUP_NUMBERS: Final = 100_000
INT64_MAX: Final = 2**63 - 1


@dataclass
class ConsoleConsumerOptions(ClusterOptions):
    """The flags of `ConsoleConsumer`."""

    topic: str | None = value("The topic to read.", metavar="TOPIC")
    include: str | None = value("A regular expression of topics to read.", metavar="REGEX")
    whitelist: str | None = value("Deprecated: --include.", metavar="REGEX")
    partition: int | None = value(
        "The only partition to read, by default from its end.",
        metavar="N",
        bits=32,
    )
    offset: str | None = value(
        "The start offset in --partition: a number, earliest or latest.", metavar="OFFSET"
    )
    from_beginning: bool = flag("Start at the earliest record when the group has no offset.")
    max_messages: int | None = value("Stop after this number of records.", metavar="N")
    timeout_ms: int | None = value("Stop if no record arrives for this time.", metavar="MS")
    group: str | None = value(
        "The consumer group. Without one, nothing is committed.", metavar="GROUP"
    )
    isolation_level: str = value(
        "read_committed skips records of open and aborted transactions.",
        metavar="LEVEL",
        default="read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
    )
    formatter: str | None = value("The formatter of records.", metavar="CLASS")
    property: list[str] = values(
        "A property of the formatter: print.timestamp, print.partition, print.offset,"
        " print.headers, print.key, print.value, key.separator, line.separator,"
        " headers.separator, null.literal, key.deserializer, value.deserializer,"
        " headers.deserializer; schema.registry.url prints values with schemas as JSON.",
        metavar="K=V",
        aliases=("formatter-property",),
    )
    formatter_config: str | None = value("The same properties in a file.", metavar="FILE")
    key_deserializer: str | None = value("The deserializer of keys.", metavar="CLASS")
    value_deserializer: str | None = value("The deserializer of values.", metavar="CLASS")
    skip_message_on_error: bool = flag("Continue after a record that cannot be formatted.")
    enable_systest_events: bool = flag("Print shutdown_complete at the end.")
    consumer_property: list[str] = values(
        "A consumer property.", metavar="K=V", aliases=("command-property",)
    )
    consumer_config: str | None = value(
        "Consumer properties in a file.", metavar="FILE", name="consumer.config"
    )


def run(options: ConsoleConsumerOptions, env: Environment) -> ExitStatus:
    """Print records until a limit, an error or a signal. Then the count goes to stderr."""
    check(options)
    properties = consumer_properties(options)
    from kafkapy.tools.console.console_consumer import ConsoleConsumer, print_messages

    normalise_limits(options)

    formatting = formatter_properties(options)
    render = renderer(COMMAND.name, options.formatter, formatting, options.output)
    out = env.stdout.buffer
    consumer = ConsoleConsumer(_source(options), properties, env.warn)
    processed = [0]

    def count() -> None:
        processed[0] += 1

    with message_output(
        env,
        count=lambda: processed[0],
        reset_offsets=consumer.reset_unwritten_offsets,
        close=consumer.close,
        enable_systest_events=options.enable_systest_events,
    ):
        print_messages(
            consumer.messages(options.timeout_ms, out.flush),
            render,
            out,
            max_messages=options.max_messages,
            skip_errors=options.skip_message_on_error,
            warn=env.warn,
            count=count,
        )
    return ExitStatus.SUCCESS


def check(options: ConsoleConsumerOptions) -> None:
    """
    Raises:
        UsageError: the options are invalid; with the text of `ConsoleConsumerOptions`.
    """
    options.include = options.include or options.whitelist
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of --include/--topic is required. ")
    require(options, "bootstrap_server")
    if options.partition is not None and options.topic is None:
        raise UsageError("The topic is required when partition is specified.")
    if options.offset is not None:
        if options.partition is None:
            raise UsageError("The partition is required when offset is specified.")
        if options.from_beginning:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
        _offset(options.offset)
    if options.isolation_level not in ("read_uncommitted", "read_committed"):
        raise UsageError(f"--isolation-level {options.isolation_level} is not a level")
    if options.include is not None:
        from kafkapy.admin.topic_filter import name_pattern

        try:
            name_pattern(options.include)
        except ConfigError as error:
            raise UsageError(str(error)) from None


def consumer_properties(options: ConsoleConsumerOptions) -> dict[str, str]:
    """The properties: flags override --consumer-property, which overrides --consumer.config.

    Raises:
        UsageError: different groups are given, or a group together with a partition.
        ConfigError: a file cannot be read.
    """
    from kafkapy.client.properties import parse_assignments

    common = properties_of(options.command_config)
    file = properties_of(options.consumer_config)
    words = parse_assignments(options.consumer_property)
    found = {"client.id": "console-consumer"} | common | file | words
    groups = [options.group, words.get("group.id"), file.get("group.id")]
    named = list(dict.fromkeys(group for group in groups if group is not None))
    if len(named) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via"
            " '--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            + ", ".join(f"'{group}'" for group in named)
        )
    if named and options.partition is not None:
        raise UsageError("Options group and partition cannot be specified together.")
    if named:
        found["group.id"] = named[0]
    else:
        found["group.id"] = f"console-consumer-{random.randrange(GROUP_NUMBERS)}"
        found.setdefault("enable.auto.commit", "false")
    reset = found.get("auto.offset.reset")
    if options.from_beginning and reset not in (None, "earliest"):
        raise UsageError(
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset="
            f"{reset}', please remove one option"
        )
    found["auto.offset.reset"] = "earliest" if options.from_beginning else reset or "latest"
    found["isolation.level"] = options.isolation_level
    found["bootstrap.servers"] = options.bootstrap_server or ""
    return found


def formatter_properties(options: ConsoleConsumerOptions) -> dict[str, str]:
    """The formatter's properties, by precedence: deserializer flags, --property, the file."""
    from kafkapy.client.properties import parse_assignments

    found = properties_of(options.formatter_config) | parse_assignments(options.property)
    if options.key_deserializer is not None:
        found["key.deserializer"] = options.key_deserializer
    if options.value_deserializer is not None:
        found["value.deserializer"] = options.value_deserializer
    return found


def _source(options: ConsoleConsumerOptions) -> Source:
    from kafkapy.tools.console.console_consumer import EARLIEST, LATEST, Source

    start = EARLIEST if options.from_beginning else LATEST
    if options.offset is not None:
        start = {"earliest": EARLIEST, "latest": LATEST}.get(
            options.offset.lower(), _offset(options.offset)
        )
    return Source(options.topic, options.include, options.partition, start)


def _offset(text: str) -> int:
    """The offset; 0 for `earliest` and `latest`, which the caller handles.

    Raises:
        UsageError: it is neither a number nor one of these words.
    """
    if text.lower() in ("earliest", "latest"):
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= INT64_MAX):
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest',"
            " 'latest', or a non-negative long."
        )
    return int(text)


COMMAND: Final = Command(
    "console-consumer",
    ConsoleConsumerOptions,
    run,
    reported_failures="--timeout-ms passed without a record",
    groups={
        "Connection": "consumer-property consumer.config",
        "What to read": (
            "topic include whitelist partition offset from-beginning group isolation-level"
        ),
        "When to stop": "max-messages timeout-ms",
        "Format of records": (
            "property formatter formatter-config key-deserializer value-deserializer"
            " skip-message-on-error enable-systest-events"
        ),
    },
    examples={
        "Read the first ten records of a topic.": (
            "--topic orders --from-beginning --max-messages 10 {B}"
        ),
        "Show keys and times too; stop if no record arrives for 5 s.": (
            "--topic orders --from-beginning --timeout-ms 5000 --property print.key=true"
            " --property print.timestamp=true {B}"
        ),
        "Read one partition from an offset.": (
            "--topic orders --partition 0 --offset 3 --max-messages 1 {B}"
        ),
        "Read as a member of a group, which commits its offsets.": (
            "--topic orders --group billing --timeout-ms 5000 {B}"
        ),
    },
)
