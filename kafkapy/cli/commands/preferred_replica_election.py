"""`kafkapy preferred-replica-election`: `kafka-preferred-replica-election.sh`, up to Kafka 2.8.

`PreferredReplicaLeaderElectionCommand`. Kafka 3.0 removed it; `leader-election` replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, OutputFormat, value
from kafkapy.cli.framework.output import Report, show
from kafkapy.common.topic_partition import TopicPartition

DEPRECATED: Final = (
    "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"
)
TIMEOUTS: Final = {"default.api.timeout.ms": "60000", "request.timeout.ms": "30000"}


@dataclass
class PreferredReplicaElectionOptions(ClusterOptions):
    """The flags of `PreferredReplicaLeaderElectionCommand`."""

    path_to_json_file: str | None = value(
        'The partitions: {"partitions":[{"topic":"t","partition":0}]}; default: all.',
        metavar="FILE",
    )
    zookeeper: str | None = value(
        "Instead of --bootstrap-server: write the request to ZooKeeper, for the controller.",
        metavar="HOST:PORT/PATH",
    )
    admin_config: str | None = value(
        "A property file for the connection: security and timeouts.",
        metavar="FILE",
        name="admin.config",
    )


def run(options: PreferredReplicaElectionOptions, env: Environment) -> ExitStatus:
    """Elect preferred leaders through the brokers, or request it in ZooKeeper."""
    if (options.bootstrap_server is None) == (options.zookeeper is None):
        raise UsageError("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")
    if options.command_config is None:
        options.command_config = options.admin_config
    if options.output is not OutputFormat.json:
        env.line(DEPRECATED)
    return (_by_znode if options.zookeeper is not None else _over_brokers)(options, env)


def _partitions(options: PreferredReplicaElectionOptions) -> list[TopicPartition] | None:
    from kafkapy.tools.json_input import read_text
    from kafkapy.tools.reassign.partition_files import parse_partitions

    if options.path_to_json_file is None:
        return None
    text = read_text(options.path_to_json_file)
    return parse_partitions(text, "Preferred replica election data")


def _over_brokers(options: PreferredReplicaElectionOptions, env: Environment) -> ExitStatus:
    from kafkapy.admin.elections import ElectionType, elect_leaders
    from kafkapy.cli.views.elections import preferred_election_report

    partitions = _partitions(options)
    with options.connect(env, defaults=TIMEOUTS) as cluster:
        results = elect_leaders(cluster, ElectionType.PREFERRED, partitions)
    report, failed = preferred_election_report(results)
    show(env, report, options.output)
    if failed:
        raise CommandFailed(f"{failed} preferred replica(s) could not be elected")
    return ExitStatus.SUCCESS


def _by_znode(options: PreferredReplicaElectionOptions, env: Environment) -> ExitStatus:
    from kafkapy.tools.zookeeper.election import request_preferred_election

    assert options.zookeeper is not None
    requested = request_preferred_election(options.zookeeper, _partitions(options))
    names = [str(tp) for tp in requested.partitions]
    text = [
        f"Created preferred replica election path with {','.join(names)}",
        f"Successfully started preferred replica election for partitions Set({', '.join(names)})",
        *(
            f"Skipping preferred replica leader election for partition {tp} since it doesn't exist."
            for tp in requested.absent
        ),
    ]
    data = [
        {"topic": tp.topic, "partition": tp.partition, "requested": exists}
        for found, exists in ((requested.partitions, True), (requested.absent, False))
        for tp in found
    ]
    show(env, Report("preferred-replica-election", data, text), options.output)
    return ExitStatus.SUCCESS


COMMAND: Final = Command(
    "preferred-replica-election",
    PreferredReplicaElectionOptions,
    run,
    help="Elect preferred leaders, as Kafka's tool up to 2.8; leader-election replaces it.",
    groups={
        "Connection": "zookeeper admin.config",
        "What to do": "path-to-json-file",
    },
    examples={
        "Elect the preferred leaders of all partitions.": "{B}",
        "Do so for the partitions of a file.": "--path-to-json-file partitions.json {B}",
    },
)
