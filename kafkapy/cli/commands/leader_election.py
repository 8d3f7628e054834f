"""`kafkapy leader-election`: Kafka's `kafka-leader-election.sh` (`LeaderElectionCommand`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, flag, is_given, option_name, value
from kafkapy.cli.framework.output import show
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

SCOPES: Final = ("topic", "all_topic_partitions", "path_to_json_file")
# Kafka's tool sets these for its client. The property file overrides them.
TIMEOUTS: Final = {"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"}


@dataclass
class LeaderElectionOptions(ClusterOptions):
    """The flags of `LeaderElectionCommand`."""

    election_type: str | None = value(
        "REQUIRED: preferred elects the first replica of each partition; unclean elects a"
        " replica that is not in sync if no in-sync replica is alive: records may be lost.",
        metavar="preferred|unclean",
        choices=("preferred", "unclean"),
    )
    topic: str | None = value("Elect for one partition of this topic.", metavar="TOPIC")
    partition: int | None = value("With --topic: the partition.", metavar="N", bits=32)
    all_topic_partitions: bool = flag("Elect for every partition.")
    path_to_json_file: str | None = value(
        'Elect for the partitions of this file: {"partitions":[{"topic":"t","partition":0}]}.',
        metavar="FILE",
    )
    admin_config: str | None = value(
        "A property file for the connection: security and timeouts.",
        metavar="FILE",
        name="admin.config",
    )
    dry_run: bool = flag("Print the request without sending it.")


def run(options: LeaderElectionOptions, env: Environment) -> ExitStatus:
    """Elect leaders, and print the result of each partition."""
    check(options)
    if options.dry_run:
        from kafkapy.cli.views.reassign import requests_report

        with options.connect_dry(env, "kafkapy", TIMEOUTS) as dry:
            _elect(dry, options)
            show(env, requests_report("leader-election", dry.requests), options.output)
        return ExitStatus.SUCCESS
    from kafkapy.cli.views.elections import election_report

    with options.connect(env, "kafkapy", defaults=TIMEOUTS) as cluster:
        kind, results = _elect(cluster, options)
    report, failed = election_report(kind, results)
    show(env, report, options.output)
    if failed:
        raise CommandFailed(f"{failed} replica(s) could not be elected")
    return ExitStatus.SUCCESS


def check(options: LeaderElectionOptions) -> None:
    """
    Raises:
        UsageError: the options are invalid; with the text of
            `LeaderElectionCommandOptions.validate`.
    """
    if options.command_config is None:
        options.command_config = options.admin_config
    missing = [n for n in ("bootstrap_server", "election_type") if not is_given(options, n)]
    if missing:
        raise UsageError(f"Missing required option(s): {', '.join(map(option_name, missing))}")
    assert options.election_type is not None
    if options.election_type.upper() not in ("PREFERRED", "UNCLEAN"):
        raise UsageError(f"Cannot parse argument '{options.election_type}' of option election-type")
    if sum(is_given(options, name) for name in SCOPES) != 1:
        raise UsageError(
            "One and only one of the following options is required: "
            + ", ".join(map(option_name, SCOPES))
        )
    if options.topic is not None and options.partition is None:
        raise UsageError("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise UsageError("Option partition is only allowed if topic is used")


def _elect(
    cluster: Cluster, options: LeaderElectionOptions
) -> tuple[str, dict[TopicPartition, ApiError | None]]:
    from kafkapy.admin.elections import ElectionType, elect_leaders
    from kafkapy.tools.json_input import read_text
    from kafkapy.tools.reassign.partition_files import parse_partitions

    assert options.election_type is not None
    kind = ElectionType[options.election_type.upper()]
    partitions = None
    if options.topic is not None and options.partition is not None:
        partitions = [TopicPartition(options.topic, options.partition)]
    elif options.path_to_json_file is not None:
        text = read_text(options.path_to_json_file)
        partitions = parse_partitions(text, "Replica election data")
    return kind.name, elect_leaders(cluster, kind, partitions)


COMMAND: Final = Command(
    "leader-election",
    LeaderElectionOptions,
    run,
    help="Elect preferred or unclean leaders of partitions.",
    groups={
        "Connection": "admin.config",
        "What to do": (
            "election-type all-topic-partitions topic partition path-to-json-file dry-run"
        ),
    },
    examples={
        "Elect the preferred leaders of all partitions.": (
            "--election-type preferred --all-topic-partitions {B}"
        ),
        "Elect a leader for one partition, even one that is not in sync: records can be lost.": (
            "--election-type unclean --topic orders --partition 0 {B}"
        ),
    },
)
