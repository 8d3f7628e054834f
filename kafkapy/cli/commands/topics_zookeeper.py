"""`kafkapy topics --zookeeper`: the older form of `TopicCommand`, with the text of Kafka 2.7."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.options import is_given, refuse, require
from kafkapy.cli.framework.output import Report
from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster
    from kafkapy.client.metadata import TopicMetadata

ALTERS_CONFIGS: Final = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be removed"
    " in future releases.",
    "         Going forward, please use kafka-configs.sh for this functionality",
)
ALTERS_ORDER: Final = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or"
    " ordering of the messages will be affected"
)
NO_IMPACT: Final = "Note: This will have no impact if delete.topic.enable is not set to true."


def check(options: object, action: str) -> None:
    """Validate options that only the older form needs.

    Raises:
        UsageError: a count is missing for --create, --alter has no change, or --delete-config is
            used with another action.
    """
    if action != "alter":
        refuse(options, "delete_config", action)
    if action == "create" and not is_given(options, "replica_assignment"):
        require(options, "partitions", "replication_factor")
    if action == "alter" and not (
        is_given(options, "config") or is_given(options, "delete_config")
    ):
        require(options, "partitions")


def alter(
    cluster: Cluster,
    found: Sequence[TopicMetadata],
    sets: Mapping[str, str],
    deletes: Sequence[str],
    count: int | None,
    assignment: Sequence[Sequence[int]] | None,
    print_line: Callable[[str], None],
) -> Report:
    """Change configs, add partitions, or both, topic by topic. Each change is printed when made.

    Raises:
        ConfigError: the count would not be an increase, or the topic is internal.
        ApiError: a broker refused.
    """
    from kafkapy.admin.configs import Resource, incremental_alter_configs
    from kafkapy.admin.topics import create_partitions
    from kafkapy.common.config_def import ResourceType

    for topic in found:
        if sets or deletes:
            resource = Resource(ResourceType.TOPIC, topic.name)
            incremental_alter_configs(cluster, resource, sets, deletes)
            for line in (*ALTERS_CONFIGS, f"Updated config for topic {topic.name}."):
                print_line(line)
        if count is not None:
            check_partition_count(topic.name, len(topic.partitions), count)
            print_line(ALTERS_ORDER)
            added = (
                None if assignment is None else {topic.name: assignment[len(topic.partitions) :]}
            )
            create_partitions(cluster, {topic.name: count}, added)
            print_line("Adding partitions succeeded!")
    data = [
        {
            "topic": topic.name,
            "partition_count": len(topic.partitions) if count is None else count,
            "set": dict(sets),
            "deleted": list(deletes),
        }
        for topic in found
    ]
    return Report("topics", data, [])


def check_partition_count(topic: str, present: int, wanted: int) -> None:
    """
    Raises:
        ConfigError: the topic is internal, or the number of partitions would not increase.
    """
    if topic in INTERNAL_TOPICS:
        raise ConfigError(
            f"The number of partitions for the internal topic {topic} cannot be changed."
        )
    if wanted <= present:
        raise ConfigError(
            f"The number of partitions for a topic can only be increased. Topic {topic} currently"
            f" has {present} partitions, {wanted} would not be an increase."
        )


def delete(cluster: Cluster, found: Sequence[TopicMetadata]) -> Report:
    """Delete topics.

    Raises:
        ConfigError: a topic is internal.
        ApiError: the controller refused.
    """
    from kafkapy.admin.topics import delete_topics

    for topic in found:
        if topic.name in INTERNAL_TOPICS:
            raise ConfigError(
                f"Topic {topic.name} is a kafka internal topic and is not allowed to be marked for"
                " deletion."
            )
    delete_topics(cluster, [topic.name for topic in found])
    text = [
        line
        for topic in found
        for line in (f"Topic {topic.name} is marked for deletion.", NO_IMPACT)
    ]
    data = [{"topic": topic.name, "deleted": True} for topic in found]
    return Report("topics", data, text)
