"""`reassign --generate`: the current assignment, and the proposal of a planner."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkapy.cli.commands.reassign.options import ReassignOptions, Strategy, broker_ids
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus
from kafkapy.cli.framework.output import Report, show
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import INTERNAL_TOPICS, TopicPartition

if TYPE_CHECKING:
    from kafkapy.admin.cluster_replicas import Assignment
    from kafkapy.admin.reassignments import Reassignment
    from kafkapy.client.cluster import Cluster
    from kafkapy.client.metadata import ClusterMetadata

MIXED_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make"
    " replica assignment without rack information."
)


def generate(cluster: Cluster, options: ReassignOptions, env: Environment) -> ExitStatus:
    """Print the current and the proposed assignment. kafkapy's planner starts from the replicas
    after the running moves.
    """
    from kafkapy.admin.cluster_replicas import summarise
    from kafkapy.admin.planning.minimal_plan import minimal_plan
    from kafkapy.cli.views.reassign import proposal_report, summary_lines

    topics = named_topics(options)
    listed = None if options.broker_list is None else broker_ids(options.broker_list)
    # Before the metadata, so that a move that completes in between is complete there.
    running = _running(cluster) if options.plans else {}
    metadata = cluster.metadata(topics, refresh=True)
    current = _replicas(metadata, topics, options)
    live = [BrokerPlace(b.broker_id, b.rack) for b in metadata.brokers.values()]
    if not options.plans:
        assert listed is not None
        show(env, kafka_proposal(current, live, listed, options), options.output)
        return ExitStatus.SUCCESS
    # The replicas that a running move removes are no copies to keep.
    for tp in current.keys() & running.keys():
        current[tp] = running[tp].after(current[tp])
    brokers = _brokers(live, listed, current, options, env)
    proposed = minimal_plan(
        current,
        brokers,
        replication_factor=options.replication_factor,
        balance=options.strategy is Strategy.minimal,
    )
    summary = summarise(current, proposed, brokers, _sizes(cluster, current, metadata, env))
    show(env, proposal_report(current, proposed, summary), options.output)
    for line in summary_lines(summary):
        env.warn(line)
    return ExitStatus.SUCCESS


def _running(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    """The running moves; empty if the brokers do not return them (before Kafka 2.4).

    Raises:
        ApiError: the controller refused. Without the moves, the plan would be wrong.
    """
    from kafkapy.admin.reassignments import running_reassignments

    try:
        return running_reassignments(cluster)
    except ApiError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}


def kafka_proposal(
    current: Assignment, live: Collection[BrokerPlace], listed: list[int], options: ReassignOptions
) -> Report:
    """Kafka's own proposal. Brokers that are down are left out without a warning."""
    from kafkapy.admin.planning.naive_plan import naive_plan
    from kafkapy.cli.views.reassign import proposal_report

    brokers = _with_racks([b for b in live if b.broker_id in listed], options)
    proposed = naive_plan(current, brokers, random.Random().randrange)
    return proposal_report(current, proposed, None)


def named_topics(options: ReassignOptions) -> list[str] | None:
    """The topics of the file; None without a file.

    Raises:
        JsonInputError: the file is malformed.
        CommandFailed: the file has a topic twice.
    """
    from kafkapy.tools.json_input import read_text
    from kafkapy.tools.reassign.partition_files import duplicates, java_list, parse_topics

    if options.topics_to_move_json_file is None:
        return None
    topics = parse_topics(read_text(options.topics_to_move_json_file))
    repeated = duplicates(topics)
    if repeated:
        raise CommandFailed(
            f"Error: List of topics to reassign contains duplicate entries: {java_list(repeated)}"
        )
    return topics


def _replicas(
    metadata: ClusterMetadata, topics: list[str] | None, options: ReassignOptions
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of the topics; without a file, of all topics that the plan includes."""
    from kafkapy.admin.errors import java_text, topic_error

    if topics is None:
        internal = INTERNAL_TOPICS if options.replication_factor is not None else frozenset()
        topics = sorted(name for name in metadata.topics if name not in internal)
    for name in topics:
        if not metadata.topics[name].partitions:
            error = topic_error(metadata.topics[name].error, name, f"Topic {name} not found.")
            raise ApiError(error.code, java_text(error))
    return {
        TopicPartition(name, index): partition.replicas
        for name in topics
        for index, partition in metadata.topics[name].partitions.items()
    }


def _brokers(
    live: list[BrokerPlace],
    listed: list[int] | None,
    current: Assignment,
    options: ReassignOptions,
    env: Environment,
) -> list[BrokerPlace]:
    """The brokers for the replicas: live brokers, limited to --broker-list if it is given, without
    those to decommission.

    Raises:
        CommandFailed: a broker with replicas is down, and no option covers it; or a broker to
            decommission is unknown.
    """
    decommissioned = [] if options.decommission is None else broker_ids(options.decommission)
    alive = {broker.broker_id for broker in live}
    chosen = sorted(alive if listed is None else alive.intersection(listed))
    for broker_id in sorted(set(listed or ()) - alive):
        env.warn(f"Broker {broker_id} is not alive: no replicas are assigned to it.")
    replica_brokers = {broker_id for replicas in current.values() for broker_id in replicas}
    unreachable = sorted(replica_brokers - alive - set(decommissioned))
    if unreachable and listed is None:
        raise CommandFailed(
            f"Error: Broker {unreachable[0]} has replicas and is not alive. Start it; or name the"
            " brokers for the replicas with --broker-list; or move its replicas away"
            f" with --decommission {unreachable[0]}."
        )
    unknown = sorted(set(decommissioned) - alive - replica_brokers)
    if unknown:
        raise CommandFailed(f"Error: Unknown broker id {unknown[0]}")
    return _with_racks(
        [b for b in live if b.broker_id in chosen and b.broker_id not in decommissioned], options
    )


def _with_racks(brokers: list[BrokerPlace], options: ReassignOptions) -> list[BrokerPlace]:
    brokers = sorted(brokers)
    if options.disable_rack_aware:
        return [BrokerPlace(broker.broker_id) for broker in brokers]
    racks = {broker.rack for broker in brokers}
    if None in racks and len(racks) > 1:
        raise CommandFailed(f"Error: {MIXED_RACKS}")
    return brokers


def _sizes(
    cluster: Cluster, current: Assignment, metadata: ClusterMetadata, env: Environment
) -> dict[TopicPartition, int] | None:
    """The bytes of each partition's largest replica on a live broker; None if a broker does not
    return them, because a sum without them would be too low.
    """
    from kafkapy.admin.log_dirs import describe_log_dirs

    replica_brokers = {broker_id for replicas in current.values() for broker_id in replicas}
    sizes: dict[TopicPartition, int] = {}
    try:
        for broker_id in sorted(replica_brokers & metadata.brokers.keys()):
            for directory in describe_log_dirs(cluster, broker_id):
                for (tp, _), log in directory.logs.items():
                    sizes[tp] = max(log.size_bytes, sizes.get(tp, 0))
    except ApiError as error:
        env.warn(f"The bytes to copy are unknown: {error}")
        return None
    return sizes
