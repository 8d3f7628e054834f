"""`kafkapy transactions`: Kafka's `kafka-transactions.sh` (`TransactionsCommand`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    option_name,
    refuse_other_actions,
    require,
    single_verb,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

TERMINATE: Final = "forceTerminateTransaction"
VERBS: Final = ("list", "describe", "describe-producers", "abort", "find-hanging", TERMINATE)
# Transactions may not be open for longer than 15 minutes by default (transaction.max.timeout.ms).
TIMEOUT_MINUTES: Final = 15
_MINUTE_MS: Final = 60_000


@dataclass
class TransactionsOptions(ClusterOptions):
    """The flags of all verbs."""

    words: list[str] = values("The action.", metavar="|".join(VERBS), choices=VERBS)
    version: bool = flag("Print the version and exit.", short="v")
    duration_filter: int | None = value(
        "only transactions that are open for longer.", actions=("list",), metavar="MS"
    )
    transactional_id_pattern: str | None = value(
        "only transactional ids that match the regular expression.",
        actions=("list",),
        metavar="REGEX",
    )
    transactional_id: str | None = value(
        "the transactional id.",
        actions=("describe", TERMINATE),
        aliases=("transactionalId",),
        metavar="ID",
    )
    topic: str | None = value(
        "the topic.", actions=("describe-producers", "abort", "find-hanging"), metavar="TOPIC"
    )
    partition: int | None = value(
        "the partition.",
        actions=("describe-producers", "abort", "find-hanging"),
        metavar="N",
        bits=32,
    )
    broker_id: int | None = value(
        "the broker; default: the leader.",
        actions=("describe-producers", "find-hanging"),
        metavar="ID",
        bits=32,
    )
    start_offset: int | None = value(
        "the start offset of the transaction.", actions=("abort",), metavar="OFFSET"
    )
    producer_id: int | None = value("the producer.", actions=("abort",), metavar="ID")
    producer_epoch: int | None = value("its epoch.", actions=("abort",), metavar="EPOCH", bits=16)
    coordinator_epoch: int | None = value(
        "its coordinator's epoch.", actions=("abort",), metavar="EPOCH", bits=32
    )
    max_transaction_timeout: int = value(
        "the longest time that a transaction may be open.",
        actions=("find-hanging",),
        metavar="MINUTES",
        default=TIMEOUT_MINUTES,
    )


def run(options: TransactionsOptions, env: Environment) -> ExitStatus:
    """Run the verb."""
    verb = single_verb(options.words, VERBS)
    refuse_other_actions(options, verb)
    require(options, "bootstrap_server")
    check(verb, options)
    with options.connect(env) as cluster:
        report = _VERBS[verb](cluster, options)
    show(env, report, options.output)
    return ExitStatus.SUCCESS


def check(verb: str, options: TransactionsOptions) -> None:
    """
    Raises:
        ConfigError: an option that the verb needs is missing.
    """
    if verb in ("describe", TERMINATE):
        _require_arguments(options, "transactional_id")
    elif verb == "describe-producers":
        _require_arguments(options, "topic", "partition")
    elif verb == "abort":
        _require_arguments(options, "topic", "partition")
        if options.start_offset is None and options.producer_id is None:
            raise ConfigError(
                "The transaction to abort must be identified either with --start-offset (for"
                " brokers on 3.0 or above) or with --producer-id, --producer-epoch, and"
                " --coordinator-epoch (for older brokers)"
            )
        if options.start_offset is None:
            _require_arguments(options, "producer_epoch", "coordinator_epoch")
    elif verb == "find-hanging":
        if options.topic is None and options.broker_id is None:
            raise ConfigError(
                "The `find-hanging` command requires either --topic or --broker-id to limit the"
                " scope of the search"
            )
        if options.partition is not None and options.topic is None:
            raise ConfigError("The --partition argument requires --topic to be provided")


def _require_arguments(options: TransactionsOptions, *names: str) -> None:
    for name in names:
        if getattr(options, name) is None:
            raise ConfigError(f"Missing required argument --{option_name(name)}")


def _list(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.admin.topic_filter import name_pattern
    from kafkapy.admin.transactions import list_transactions

    pattern = options.transactional_id_pattern
    found = list_transactions(
        cluster,
        duration_ms=options.duration_filter,
        id_pattern=name_pattern(pattern) if pattern else None,
    )
    columns = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
    return _report(columns, found)


def _describe(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.admin.transactions import describe_transaction

    assert options.transactional_id is not None
    try:
        found = describe_transaction(cluster, options.transactional_id)
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise
        raise ConfigError(
            f"Failed to describe transaction state of transactional-id"
            f" `{options.transactional_id}`: {error}"
        ) from error
    now_ms = int(time.time() * 1000)
    row = (
        found.coordinator,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.start_ms,
        None if found.start_ms is None else now_ms - found.start_ms,
        ",".join(map(str, found.partitions)),
    )
    columns = (
        *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
        *("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs"),
        "TopicPartitions",
    )
    return _report(columns, [row])


def _describe_producers(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.tools.hanging_transactions import producers_of

    found = producers_of(cluster, _partition(options), options.broker_id)
    rows = [
        (
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.last_sequence,
            state.last_timestamp_ms,
            state.start_offset,
        )
        for state in found
    ]
    columns = (
        *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence"),
        *("LastTimestamp", "CurrentTransactionStartOffset"),
    )
    return _report(columns, rows)


def _abort(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.admin.transactions import abort_transaction
    from kafkapy.tools.hanging_transactions import producers_of

    partition = _partition(options)
    if options.start_offset is None:
        assert options.producer_id is not None
        assert options.producer_epoch is not None
        assert options.coordinator_epoch is not None
        producer = (options.producer_id, options.producer_epoch, options.coordinator_epoch)
    else:
        states = producers_of(cluster, partition)
        matching = [s for s in states if s.start_offset == options.start_offset]
        if not matching:
            raise ConfigError(
                "Could not find any open transactions starting at offset"
                f" {options.start_offset} on partition {partition}"
            )
        producer = matching[0][:3]
    try:
        abort_transaction(cluster, partition, *producer)
    except ApiError as error:
        raise ConfigError(f"Failed to abort transaction on {partition}: {error}") from error
    data = {"topic": partition.topic, "partition": partition.partition, "aborted": True}
    return Report("transactions", [data], [])


def _terminate(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.admin.transactions import terminate_transaction

    transactional_id = options.transactional_id
    assert transactional_id is not None
    try:
        terminate_transaction(cluster, transactional_id)
    except ApiError as error:
        raise ConfigError(
            f"Failed to force terminate transactionalId `{transactional_id}`: {error}"
        ) from error
    data = {"transactional_id": transactional_id, "terminated": True}
    return Report("transactions", [data], [])


def _find_hanging(cluster: Cluster, options: TransactionsOptions) -> Report:
    from kafkapy.tools.hanging_transactions import find_hanging, partitions_on

    now_ms = int(time.time() * 1000)
    scope = partitions_on(cluster, options.topic, options.partition, options.broker_id)
    timeout_ms = options.max_transaction_timeout * _MINUTE_MS
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer.producer_id,
            each.producer.producer_epoch,
            each.producer.coordinator_epoch,
            each.producer.start_offset,
            each.producer.last_timestamp_ms,
            (now_ms - each.producer.last_timestamp_ms) // _MINUTE_MS,
        )
        for each in find_hanging(cluster, scope, now_ms, timeout_ms, options.broker_id)
    ]
    columns = (
        *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch"),
        *("StartOffset", "LastTimestamp", "Duration(min)"),
    )
    return _report(columns, rows)


def _partition(options: TransactionsOptions) -> TopicPartition:
    assert options.topic is not None
    assert options.partition is not None
    return TopicPartition(options.topic, options.partition)


def _report(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Report:
    """Kafka's table: cells are padded to the width of their column, with a tab after each."""
    cells = [list(columns), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    text = [
        "".join(f"{cell:{width}}\t" for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    keys = [_json_key(column) for column in columns]
    data = [dict(zip(keys, row, strict=True)) for row in rows]
    return Report("transactions", data, text, [Table(columns, rows)])


def _json_key(column: str) -> str:
    """The JSON key of a column: `last_timestamp` for `LastTimestamp`."""
    name = column.replace("(min)", "Minutes")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


_VERBS: Final[dict[str, Callable[[Cluster, TransactionsOptions], Report]]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    TERMINATE: _terminate,
}

COMMAND: Final = Command(
    "transactions",
    TransactionsOptions,
    run,
    as_argparse=True,
    operands="words",
    groups={
        "list and find-hanging": (
            "duration-filter transactional-id-pattern max-transaction-timeout"
        ),
        f"describe and {TERMINATE}": "transactional-id",
        "describe-producers, abort and find-hanging": "topic partition broker-id",
        "abort": "start-offset producer-id producer-epoch coordinator-epoch",
    },
    examples={
        "List the transactional ids and their states.": "list {B}",
        "Find transactions that are open for longer than 15 minutes.": (
            "find-hanging --topic orders --max-transaction-timeout 15 {B}"
        ),
        "Abort the transaction that starts at an offset.": (
            "abort --topic orders --partition 0 --start-offset 42 {B}"
        ),
        "Abort the open transaction of a transactional id, and fence its producer.": (
            f"{TERMINATE} --transactional-id payments-1 {{B}}"
        ),
    },
)
