"""`kafkapy get-offsets`: Kafka's `kafka-get-offsets.sh` (`GetOffsetShell`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import ClusterOptions, check_host_ports, flag, value
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import INTERNAL_TOPICS, TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster
    from kafkapy.client.offsets import OffsetResult
    from kafkapy.tools.offset_queries import PartitionFilter


@dataclass
class GetOffsetsOptions(ClusterOptions):
    """The flags of `GetOffsetShell`."""

    broker_list: str | None = value("Deprecated: --bootstrap-server.", metavar="HOST:PORT,...")
    topic: str | None = value(
        "A regular expression of whole topic names; default: every topic.", metavar="TOPIC"
    )
    partitions: str | None = value("Partitions; default: all.", metavar="0,1,...")
    topic_partitions: str | None = value(
        "Rules of topic expression and partitions, such as t:0,u:2-5,v.*,:1.", metavar="RULES"
    )
    time: str = value(
        "latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5),"
        " or milliseconds since the epoch: the first offset at or after that time.",
        metavar="TIME",
        default="latest",
    )
    exclude_internal_topics: bool = flag("Omit internal topics.")


def run(options: GetOffsetsOptions, env: Environment) -> ExitStatus:
    """Print the offset of every partition that has one."""
    from kafkapy.tools.offset_queries import in_text_order, parse_time

    options.bootstrap_server = options.bootstrap_server or options.broker_list
    if options.bootstrap_server is None:
        raise ConfigError("Missing required option(s) [bootstrap-server]")
    check_host_ports(options.bootstrap_server)
    chosen, timestamp = _filter(options), parse_time(options.time)
    with options.connect(env, "GetOffsetShell") as cluster:
        partitions = in_text_order(_partitions(cluster, options, chosen))
        if not partitions:
            raise ConfigError("Could not match any topic-partitions with the specified filters")
        results = cluster.list_offsets(dict.fromkeys(partitions, timestamp))
    found = {tp: results[tp] for tp in partitions if not results[tp].error}
    for tp in partitions:
        if results[tp].error:
            reason = results[tp].reason
            env.warn(f"Skip getting offsets for topic-partition {tp} due to error: {reason}")
    show(env, _report({tp: r for tp, r in found.items() if r.offset >= 0}), options.output)
    return ExitStatus.SUCCESS


def _filter(options: GetOffsetsOptions) -> PartitionFilter:
    from kafkapy.tools.offset_queries import by_rules, by_topic_and_partitions

    if options.topic_partitions is None:
        return by_topic_and_partitions(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None:
        raise ConfigError("--topic-partitions cannot be used with --topic or --partitions")
    return by_rules(options.topic_partitions)


def _partitions(
    cluster: Cluster, options: GetOffsetsOptions, chosen: PartitionFilter
) -> list[TopicPartition]:
    hidden = INTERNAL_TOPICS if options.exclude_internal_topics else frozenset()
    everything = [
        TopicPartition(topic.name, partition)
        for topic in cluster.metadata(None).topics.values()
        for partition in topic.partitions
        if topic.name not in hidden
    ]
    return [tp for tp in everything if chosen(tp)]


def _report(found: dict[TopicPartition, OffsetResult]) -> Report:
    data = [
        {
            **tp._asdict(),
            "offset": result.offset,
            "timestamp": None if result.timestamp < 0 else result.timestamp,
            "leader_epoch": None if result.leader_epoch < 0 else result.leader_epoch,
        }
        for tp, result in found.items()
    ]
    text = [f"{tp.topic}:{tp.partition}:{result.offset}" for tp, result in found.items()]
    rows = [(tp.topic, tp.partition, result.offset) for tp, result in found.items()]
    return Report("get-offsets", data, text, [Table(("Topic", "Partition", "Offset"), rows)])


COMMAND: Final = Command(
    "get-offsets",
    GetOffsetsOptions,
    run,
    failure="Error occurred: {}",
    reported_failures="a partition returned an error instead of its offset",
    groups={
        "Connection": "broker-list",
        "What to show": "topic partitions topic-partitions time exclude-internal-topics",
    },
    examples={
        "Print the end offset of each partition of a topic.": "--topic orders {B}",
        "Print the first offsets.": "--topic orders --time earliest {B}",
        "Print the first offsets at or after a time, in milliseconds since 1970.": (
            "--topic orders --time 1735689600000 {B}"
        ),
    },
)
