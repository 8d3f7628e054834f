"""`kafkapy topics`: Kafka's `kafka-topics.sh` (`TopicCommand`), and its form up to 2.8."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.commands import topics_zookeeper
from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    is_given,
    one_action,
    option_name,
    refuse,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, line_printer, show
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.common.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster
    from kafkapy.client.metadata import TopicMetadata

ACTIONS: Final = ("list_", "describe", "create", "alter", "delete")
REPORTS: Final = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
# The actions that accept an option; other actions refuse it.
ACTIONS_WITH_OPTION: Final = {
    "partitions": ("create", "alter"),
    "replication_factor": ("create",),
    "replica_assignment": ("create", "alter"),
    "config": ("create", "alter"),
    "disable_rack_aware": ("create", "alter"),
    "if_not_exists": ("create",),
    "if_exists": ("alter", "delete", "describe"),
    "exclude_internal": ("list_", "describe"),
    "topic_id": ("describe",),
    "topics_with_overrides": ("describe",),
    **dict.fromkeys(REPORTS, ("describe",)),
}
# kafkapy's brokers refuse these if true. The brokers of the cluster may support them.
BROKERS_DECIDE: Final = frozenset(
    {"remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"}
)
CONFIGS_TOOL: Final = (
    "(the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)"
)


@dataclass
class TopicsOptions(ClusterOptions):
    """The flags of `TopicCommand`."""

    zookeeper: str | None = value(
        "Deprecated: ZooKeeper instead of --bootstrap-server.", metavar="HOST:PORT,.../CHROOT"
    )
    create: bool = flag("Create a new topic.")
    list_: bool = flag("List the topics.")
    describe: bool = flag("Describe topics.")
    alter: bool = flag("Change the number of partitions of topics.")
    delete: bool = flag("Delete topics.")
    topic: str | None = value(
        "The topic. Except with --create, a regular expression of whole names.", metavar="TOPIC"
    )
    topic_id: str | None = value("The topic's id; with --describe only.", metavar="ID")
    partitions: int | None = value(
        "The number of partitions: with --create of the new topic (default: the"
        " cluster's), with --alter the new total.",
        metavar="N",
        bits=32,
    )
    replication_factor: int | None = value(
        "Replicas of each partition; with --create only (default: the cluster's).",
        metavar="N",
        bits=32,
    )
    replica_assignment: str | None = value(
        "Brokers of each partition, instead of counts.", metavar="B:B,B:B,..."
    )
    config: list[str] = values(
        "A topic config; with --create, and with --alter --zookeeper.", metavar="NAME=VALUE"
    )
    delete_config: list[str] = values(
        "A topic config to remove, with --alter --zookeeper; otherwise use kafkapy configs.",
        metavar="NAME",
    )
    under_replicated_partitions: bool = flag("Describe only under-replicated partitions.")
    unavailable_partitions: bool = flag("Describe only partitions without a live leader.")
    under_min_isr_partitions: bool = flag(
        "Describe only partitions with fewer in-sync replicas than min.insync.replicas."
    )
    at_min_isr_partitions: bool = flag(
        "Describe only partitions with exactly min.insync.replicas in-sync replicas."
    )
    topics_with_overrides: bool = flag("Describe only topics with config overrides.")
    if_exists: bool = flag("Do nothing if the topic does not exist.")
    if_not_exists: bool = flag("Do nothing if the topic exists already.")
    exclude_internal: bool = flag("Omit internal topics.")
    disable_rack_aware: bool = flag(
        "With --zookeeper; accepted for compatibility: the brokers decide."
    )
    force: bool = flag("Accepted for compatibility: there is no confirmation.")
    partition_size_limit_per_response: int = value(
        "The maximum number of partitions in a response with eligible leaders.",
        metavar="N",
        default=2000,
        bits=32,
    )


def run(options: TopicsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action."""
    action = check(options)
    if options.zookeeper is not None:
        from kafkapy.tools.zookeeper.bootstrap import servers_of

        options.bootstrap_server = servers_of(options.zookeeper)
    with options.connect(env) as cluster:
        report = _ACTIONS[action](cluster, options, env)
        show(env, report, options.output)
    return ExitStatus.SUCCESS


def check(options: TopicsOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text and in the order of
            `TopicCommandOptions.checkArgs`.
    """
    listed = "--list, --describe, --create, --alter or --delete"
    action = one_action(options, ACTIONS, listed)
    if options.bootstrap_server is None and options.zookeeper is None:
        raise UsageError("--bootstrap-server must be specified")
    if options.bootstrap_server is not None and options.zookeeper is not None:
        raise UsageError("Only one of --bootstrap-server or --zookeeper must be specified")
    if options.describe and options.if_exists and not (options.topic or options.topic_id):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action in ("create", "alter", "delete"):
        require(options, "topic")
    if options.zookeeper is not None:
        topics_zookeeper.check(options, action)
    elif options.alter:
        if options.config:
            raise UsageError(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                f'"[alter]" {CONFIGS_TOOL}'
            )
        require(options, "partitions")
    for name, allowed in ACTIONS_WITH_OPTION.items():
        if action not in allowed:
            refuse(options, name, action)
    if options.delete_config and options.zookeeper is None:
        raise UsageError(
            'Option combination "[[bootstrap-server], [delete-config]]" can\'t be used with option '
            f'"[{option_name(action)}]" {CONFIGS_TOOL}'
        )
    if options.create:
        refuse(options, "replica_assignment", "partitions", "replication_factor")
    for report in REPORTS:
        refuse(options, report, "topics_with_overrides")
    return action


def _list(cluster: Cluster, options: TopicsOptions, env: Environment) -> Report:
    found = _matching(cluster, options)
    data = [
        {
            "topic": topic.name,
            "topic_id": None if topic.topic_id == ZERO_UUID else str(topic.topic_id),
            "partition_count": len(topic.partitions),
            "internal": topic.is_internal,
        }
        for topic in found
    ]
    rows = [(t.name, len(t.partitions), "internal" if t.is_internal else "") for t in found]
    # Kafka prints the joined names, so it prints an empty line if there are no topics.
    text = ["\n".join(topic.name for topic in found)]
    return Report("topics", data, text, [Table(("Topic", "Partitions", ""), rows)])


def _describe(cluster: Cluster, options: TopicsOptions, env: Environment) -> Report:
    from kafkapy.admin.topic_descriptions import describe_topics
    from kafkapy.cli.views.topics import describe_report

    found = _existing(cluster, options)
    page_size = options.partition_size_limit_per_response
    descriptions, refusal = describe_topics(cluster, found, page_size)
    is_legacy_text = options.zookeeper is not None
    chosen = [name for name in REPORTS if is_given(options, name)]
    report = describe_report(
        descriptions, chosen, options.topics_with_overrides, is_legacy_text=is_legacy_text
    )
    if refusal is not None:
        if descriptions:
            show(env, report, options.output)
        raise refusal
    return report


def _create(cluster: Cluster, options: TopicsOptions, env: Environment) -> Report:
    from kafkapy.admin.topics import NewTopic, create_topic
    from kafkapy.tools.config_changes import format_version_warnings

    assert options.topic is not None
    configs = parse_topic_configs(options.config)
    print_line = line_printer(env, options.output)
    for line in format_version_warnings(configs):
        print_line(line)
    if "." in options.topic or "_" in options.topic:
        print_line(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore"
            " ('_') could collide. To avoid issues it is best to use either, but not both."
        )
    if options.replication_factor is not None and not 1 <= options.replication_factor <= 32767:
        raise ConfigError("The replication factor must be between 1 and 32767 inclusive")
    if options.partitions is not None and options.partitions < 1:
        raise ConfigError("The partitions must be greater than 0")
    assignment = None
    if options.replica_assignment is not None:
        assignment = dict(enumerate(parse_replica_assignment(options.replica_assignment)))
    topic = NewTopic(
        options.topic, options.partitions, options.replication_factor, assignment, configs
    )
    try:
        create_topic(cluster, topic)
    except ApiError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
            return Report("topics", [{"topic": topic.name, "created": False}], [])
        raise
    data = [{"topic": topic.name, "created": True}]
    return Report("topics", data, [f"Created topic {topic.name}."])


def _alter(cluster: Cluster, options: TopicsOptions, env: Environment) -> Report:
    from kafkapy.admin.topics import create_partitions

    found = _existing(cluster, options)
    count, text = options.partitions, options.replica_assignment
    assignment = None if text is None else parse_replica_assignment(text)
    if options.zookeeper is not None:
        sets = parse_topic_configs(options.config)
        return topics_zookeeper.alter(
            cluster,
            found,
            sets,
            options.delete_config,
            count,
            assignment,
            line_printer(env, options.output),
        )
    assert count is not None
    assignments = None
    if assignment is not None:
        assignments = {topic.name: assignment[len(topic.partitions) :] for topic in found}
    if found:
        create_partitions(cluster, {topic.name: count for topic in found}, assignments)
    data = [{"topic": topic.name, "partition_count": count} for topic in found]
    return Report("topics", data, [])


def _delete(cluster: Cluster, options: TopicsOptions, env: Environment) -> Report:
    from kafkapy.admin.topics import delete_topics

    found = _existing(cluster, options)
    if options.zookeeper is not None:
        return topics_zookeeper.delete(cluster, found)
    delete_topics(cluster, [topic.name for topic in found])
    data = [{"topic": topic.name, "deleted": True} for topic in found]
    return Report("topics", data, [])


_ACTIONS: Final[dict[str, Callable[[Cluster, TopicsOptions, Environment], Report]]] = {
    "list_": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}


def _matching(cluster: Cluster, options: TopicsOptions) -> list[TopicMetadata]:
    """The topics that match the filter or have the id, sorted by name."""
    from kafkapy.admin.topic_filter import TopicFilter

    topics = cluster.metadata(None).topics
    if options.topic_id is not None:
        wanted = Uuid.parse(options.topic_id)
        if wanted != ZERO_UUID:
            return [topic for topic in topics.values() if topic.topic_id == wanted]
    chosen = TopicFilter(options.topic, options.exclude_internal).choose(topics)
    return [topics[name] for name in chosen]


def _existing(cluster: Cluster, options: TopicsOptions) -> list[TopicMetadata]:
    """The matching topics. Without --if-exists, a topic or id that matches none is an error."""
    found = _matching(cluster, options)
    if not found and not options.if_exists and options.topic_id is not None:
        raise ConfigError(f"TopicId '{options.topic_id}' does not exist as expected")
    if not found and not options.if_exists and options.topic is not None:
        raise ConfigError(f"Topic '{options.topic}' does not exist as expected")
    return found


def parse_topic_configs(words: list[str]) -> dict[str, str]:
    """`name=value` words, validated against the table of topic configs.

    Raises:
        ConfigError: a word is not name=value, or the table does not allow it.
    """
    from kafkapy.common.topic_configs import TOPIC_CONFIGS, validate_topic_configs

    configs: dict[str, str] = {}
    for word in words:
        parts = re.split(r"\s*=\s*", word)
        if len(parts) != 2 or not parts[1]:
            raise ConfigError(
                "requirement failed: Invalid topic config: all configs to be added must be in the"
                ' format "key=val".'
            )
        configs[parts[0].strip()] = parts[1].strip()
    for name in BROKERS_DECIDE & configs.keys():
        TOPIC_CONFIGS.parse(name, configs[name])
    validate_topic_configs({k: v for k, v in configs.items() if k not in BROKERS_DECIDE})
    return configs


def parse_replica_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3`: the brokers of partition 0, of partition 1, and so on.

    Raises:
        ConfigError: a part is not a list of numbers, a broker occurs twice in it, or the lists have
            different lengths.
    """
    assignment: list[list[int]] = []
    for index, part in enumerate(text.rstrip(",").split(",")):
        try:
            brokers = [int(word) for word in part.strip().rstrip(":").split(":")]
            if any(not -INT_MAX <= broker <= INT_MAX for broker in brokers):
                raise ValueError
        except ValueError:
            raise ConfigError(f"Replica assignment '{part}' is not a list of broker ids") from None
        duplicates = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if duplicates:
            raise ConfigError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, duplicates))
            )
        if assignment and len(brokers) != len(assignment[0]):
            raise ConfigError(f"Partition {index} has different replication factor: {brokers}")
        assignment.append(brokers)
    return assignment


COMMAND: Final = Command(
    "topics",
    TopicsOptions,
    run,
    failure="Error while executing topic command : {}",
    groups={
        "Connection": "zookeeper",
        "What to do": "list describe create alter delete",
        "Which topics": (
            "topic topic-id exclude-internal under-replicated-partitions unavailable-partitions"
            " under-min-isr-partitions at-min-isr-partitions topics-with-overrides"
            " partition-size-limit-per-response"
        ),
        "Partitions, replicas and configs": (
            "partitions replication-factor replica-assignment config delete-config"
            " disable-rack-aware"
        ),
        "Existing and missing topics": "if-exists if-not-exists force",
    },
    examples={
        "Create a topic.": "--create --topic orders --partitions 3 --replication-factor 1 {B}",
        "List the topics.": "--list {B}",
        "Show the leaders and replicas of a topic.": "--describe --topic orders {B}",
        "Show the under-replicated partitions of the cluster.": (
            "--describe --under-replicated-partitions {B}"
        ),
    },
)
