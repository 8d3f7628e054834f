"""`kafkapy verifiable-share-consumer`: Kafka's `kafka-verifiable-share-consumer.sh`
(`VerifiableShareConsumer`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
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


@dataclass
class VerifiableShareConsumerOptions(ClusterOptions):
    """The flags of `VerifiableShareConsumer`, without flags that alter the group's configs."""

    topic: str | None = value("REQUIRED: the topic to read.", metavar="TOPIC")
    group_id: str | None = value("REQUIRED: the share group.", metavar="GROUP")
    max_messages: int = value(
        "The number of records; negative for no limit.", metavar="N", default=-1
    )
    verbose: bool = flag("Print a line for each record.")


def run(options: VerifiableShareConsumerOptions, env: Environment) -> ExitStatus:
    """Read until the last record, or until SIGTERM or Ctrl-C."""
    from kafkapy.tools.librdkafka_client import Reporter, make_share_consumer
    from kafkapy.tools.perf.verifiable_share_consumer import VerifiableShareConsumer

    require(options, "topic", "group_id", "bootstrap_server")
    check_host_ports(options.bootstrap_server)
    assert options.topic is not None
    properties = properties_of(options.command_config) | {
        "bootstrap.servers": options.bootstrap_server or "",
        "group.id": options.group_id or "",
    }
    with stoppable() as interrupt:
        consumer = VerifiableShareConsumer(
            make_share_consumer(properties, Reporter(env.warn, properties)),
            emitter(env),
            lambda: interrupt.seen,
            max_messages=options.max_messages,
            verbose=options.verbose,
        )
        try:
            consumer.run(options.topic)
        finally:
            consumer.finish()
    return ExitStatus.SUCCESS


COMMAND: Final = Command(
    "verifiable-share-consumer",
    VerifiableShareConsumerOptions,
    run,
    as_argparse=True,
    groups={"What to read": "topic group-id max-messages", "What to show": "verbose"},
    examples={
        "Read 100 records as a member of a share group.": (
            "--topic orders --group-id payments --max-messages 100 {B}"
        ),
        "Print a line for each record.": (
            "--topic orders --group-id audit --max-messages 10 --verbose {B}"
        ),
    },
)
