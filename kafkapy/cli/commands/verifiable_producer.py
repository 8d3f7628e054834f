"""`kafkapy verifiable-producer`: Kafka's `kafka-verifiable-producer.sh` (`VerifiableProducer`)."""

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
    properties_of,
    require,
    value,
)

ACKS: Final = (0, 1, -1)


@dataclass
class VerifiableProducerOptions(ClusterOptions):
    """The flags of `VerifiableProducer`."""

    broker_list: str | None = value("Deprecated: --bootstrap-server.", metavar="HOST:PORT,...")
    topic: str | None = value("REQUIRED: the topic to write to.", metavar="TOPIC")
    max_messages: int = value(
        "The number of records; negative for no limit.", metavar="N", default=-1
    )
    throughput: float = value("Records a second; -1 for no limit.", metavar="N", default=-1)
    acks: int = value(
        "The acknowledgements that a record needs: 0, 1 or -1.", metavar="ACKS", default=-1
    )
    producer_config: str | None = value(
        "Producer properties in a file.", metavar="FILE", name="producer.config"
    )
    message_create_time: int = value(
        "The timestamp of the first record, at least 1; the elapsed time is added to later ones. -1"
        " for the present time.",
        metavar="MS",
        default=-1,
    )
    value_prefix: int | None = value("Values are PREFIX.NUMBER.", metavar="PREFIX")
    repeating_keys: int | None = value("Keys repeat from 0 to N-1.", metavar="N")


def run(options: VerifiableProducerOptions, env: Environment) -> ExitStatus:
    """Send records. A failed send is an event, and does not change the exit status."""
    from kafkapy.tools.librdkafka_client import Reporter, make_producer
    from kafkapy.tools.perf.verifiable_producer import NumberedRecords, VerifiableProducer

    options.bootstrap_server = options.bootstrap_server or options.broker_list
    require(options, "topic", "bootstrap_server")
    check_host_ports(options.bootstrap_server)
    assert options.topic is not None
    if options.acks not in ACKS:
        raise UsageError(f"argument --acks: invalid choice: '{options.acks}' (choose from 0,1,-1)")
    create_time_ms = options.message_create_time
    if create_time_ms < -1:
        raise UsageError(
            f"Invalid timestamp: {create_time_ms}. Timestamp should always be non-negative or null."
        )
    records = NumberedRecords(
        options.topic,
        options.max_messages,
        options.throughput,
        options.value_prefix,
        options.repeating_keys,
        None if create_time_ms == -1 else create_time_ms,
    )
    with stoppable() as interrupt:
        properties = producer_properties(options)
        client = make_producer(properties, Reporter(env.warn, properties))
        producer = VerifiableProducer(client, records, emitter(env), lambda: interrupt.seen)
        try:
            producer.run()
        finally:
            producer.finish()
    return ExitStatus.SUCCESS


def producer_properties(options: VerifiableProducerOptions) -> dict[str, str]:
    """The producer's properties: the file overrides this tool's defaults, which disable retries.

    Raises:
        ConfigError: a file cannot be read.
    """
    found = {"acks": str(options.acks), "retries": "0"}
    found |= properties_of(options.command_config, options.producer_config)
    return found | {"bootstrap.servers": options.bootstrap_server or ""}


COMMAND: Final = Command(
    "verifiable-producer",
    VerifiableProducerOptions,
    run,
    as_argparse=True,
    reported_failures="records were not acknowledged",
    groups={
        "Connection": "broker-list producer.config",
        "What to send": "topic max-messages value-prefix repeating-keys message-create-time",
        "How to send": "throughput acks",
    },
    examples={
        "Write the numbers 0 to 99, ten a second.": (
            "--topic orders --max-messages 100 --throughput 10 {B}"
        ),
        "Write with keys that repeat after five records.": (
            "--topic orders --max-messages 100 --repeating-keys 5 {B}"
        ),
    },
)
