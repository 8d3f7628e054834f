"""`kafkapy verifiable-consumer`: Kafka's `kafka-verifiable-consumer.sh` (`VerifiableConsumer`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.interrupts import stoppable
from kafkapy.cli.framework.json_events import emitter
from kafkapy.cli.framework.options import (
    ClusterOptions,
    check_host_ports,
    flag,
    properties_of,
    require,
    value,
)

RESETS: Final = ("earliest", "latest", "none")
CLASSIC: Final = "classic"
PROTOCOLS: Final = (CLASSIC, "consumer")


@dataclass
class VerifiableConsumerOptions(ClusterOptions):
    """The flags of `VerifiableConsumer`."""

    broker_list: str | None = value("Deprecated: --bootstrap-server.", metavar="HOST:PORT,...")
    topic: str | None = value("REQUIRED: the topic to read.", metavar="TOPIC")
    group_id: str | None = value("REQUIRED: the group.", metavar="GROUP")
    group_instance_id: str | None = value("The name of a static member.", metavar="ID")
    group_protocol: str = value(
        "The group's protocol, classic or consumer.",
        metavar="PROTOCOL",
        default="classic",
    )
    group_remote_assignor: str | None = value(
        "With --group-protocol consumer: the broker's assignor.", metavar="NAME"
    )
    max_messages: int = value(
        "The number of records; negative for no limit.", metavar="N", default=-1
    )
    session_timeout: int = value("The session timeout.", metavar="MS", default=30000)
    verbose: bool = flag("Print a line for each record.")
    enable_autocommit: bool = flag("Enable automatic commits.")
    reset_policy: str = value(
        "The start without a committed offset.",
        metavar="POLICY",
        default="earliest",
        choices=RESETS,
    )
    assignment_strategy: str = value(
        "The partition assignment strategy.",
        metavar="CLASS",
        default="org.apache.kafka.clients.consumer.RangeAssignor",
    )
    consumer_config: str | None = value(
        "Consumer properties in a file; flags override them.",
        metavar="FILE",
        name="consumer.config",
    )


def run(options: VerifiableConsumerOptions, env: Environment) -> ExitStatus:
    """Read until the last record, or until SIGTERM or Ctrl-C."""
    from kafkapy.tools.librdkafka_client import Reporter, make_consumer
    from kafkapy.tools.perf.verifiable_consumer import VerifiableConsumer

    options.bootstrap_server = options.bootstrap_server or options.broker_list
    require(options, "topic", "group_id", "bootstrap_server")
    check_host_ports(options.bootstrap_server)
    assert options.topic is not None
    if options.reset_policy not in RESETS:
        raise UsageError(f"--reset-policy {options.reset_policy} is not earliest, latest or none")
    if options.group_protocol.lower() not in PROTOCOLS:
        raise UsageError(f"--group-protocol {options.group_protocol} is not classic or consumer")
    with stoppable() as interrupt:
        properties = consumer_properties(options)
        client = make_consumer(properties, Reporter(env.warn, properties))
        consumer = VerifiableConsumer(
            client,
            emitter(env),
            lambda: interrupt.seen,
            max_messages=options.max_messages,
            verbose=options.verbose,
            auto_commit=options.enable_autocommit,
        )
        try:
            consumer.run(options.topic)
        finally:
            consumer.finish()
    return ExitStatus.SUCCESS


def consumer_properties(options: VerifiableConsumerOptions) -> dict[str, str]:
    """The consumer's properties: flags override the file. With the consumer protocol, session
    timeout and assignor are settings of the broker.

    Raises:
        ConfigError: a file cannot be read.
    """
    found = properties_of(options.command_config, options.consumer_config)
    if options.group_instance_id is not None:
        found["group.instance.id"] = options.group_instance_id
    if options.group_protocol.lower() == CLASSIC:
        found["session.timeout.ms"] = str(options.session_timeout)
        found["partition.assignment.strategy"] = options.assignment_strategy
    else:
        found["group.protocol"] = options.group_protocol
        if options.group_remote_assignor is not None:
            found["group.remote.assignor"] = options.group_remote_assignor
    reset = "error" if options.reset_policy == "none" else options.reset_policy
    return found | {
        "bootstrap.servers": options.bootstrap_server or "",
        "group.id": options.group_id or "",
        "enable.auto.commit": str(options.enable_autocommit).lower(),
        "auto.offset.reset": reset,
    }


COMMAND: Final = Command(
    "verifiable-consumer",
    VerifiableConsumerOptions,
    run,
    as_argparse=True,
    groups={
        "Connection": "broker-list consumer.config",
        "The group": (
            "group-id group-instance-id group-protocol group-remote-assignor session-timeout"
            " assignment-strategy"
        ),
        "What to read": "topic max-messages reset-policy enable-autocommit",
        "What to show": "verbose",
    },
    examples={
        "Read 100 records as a member of a group.": (
            "--topic orders --group-id billing --max-messages 100 {B}"
        ),
        "Print a line for each record.": (
            "--topic orders --group-id audit --max-messages 10 --verbose {B}"
        ),
    },
)
