"""The table of commands.

A command's module is imported when that command is called, and never before: starting quickly is a
feature.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkapy.cli.framework.command import Command

# name -> (module, one line of help). `COMMAND` of the module is what runs.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "server": ("kafkapy.cli.commands.server", "Start or stop a broker on this machine."),
    "zookeeper": (
        "kafkapy.cli.commands.zookeeper",
        "Start or stop a ZooKeeper on this machine; move znodes to a file and back.",
    ),
    "cluster": (
        "kafkapy.cli.commands.cluster",
        "Run a local cluster and inject faults; print a cluster's id.",
    ),
    "topics": ("kafkapy.cli.commands.topics", "Create, list, describe, alter and delete topics."),
    "configs": (
        "kafkapy.cli.commands.configs",
        "Describe and alter dynamic configs of topics and brokers.",
    ),
    "reassign": (
        "kafkapy.cli.commands.reassign.command",
        "Move replicas between brokers and log directories.",
    ),
    "leader-election": (
        "kafkapy.cli.commands.leader_election",
        "Elect preferred or unclean leaders.",
    ),
    "preferred-replica-election": (
        "kafkapy.cli.commands.preferred_replica_election",
        "Elect preferred leaders, as up to Kafka 2.8.",
    ),
    "log-dirs": (
        "kafkapy.cli.commands.log_dirs",
        "Show sizes and lags of the replicas in brokers' log directories.",
    ),
    "delete-records": (
        "kafkapy.cli.commands.delete_records",
        "Delete the oldest records of partitions.",
    ),
    "console-producer": (
        "kafkapy.cli.commands.console_producer",
        "Write lines from stdin to a topic.",
    ),
    "console-consumer": (
        "kafkapy.cli.commands.console_consumer",
        "Read records of a topic to stdout.",
    ),
    "consumer-groups": (
        "kafkapy.cli.commands.consumer_groups",
        "List, describe and delete consumer groups; reset and delete their offsets.",
    ),
    "get-offsets": (
        "kafkapy.cli.commands.get_offsets",
        "Print offsets of partitions: latest, earliest, or by time.",
    ),
    "producer-perf": (
        "kafkapy.cli.commands.producer_perf",
        "Measure how fast records are acknowledged.",
    ),
    "consumer-perf": ("kafkapy.cli.commands.consumer_perf", "Measure how fast records are read."),
    "verifiable-producer": (
        "kafkapy.cli.commands.verifiable_producer",
        "Write numbered records; print a JSON line for each.",
    ),
    "verifiable-consumer": (
        "kafkapy.cli.commands.verifiable_consumer",
        "Read as a member of a group; print a JSON line for each event.",
    ),
    "replica-verification": (
        "kafkapy.cli.commands.replica_verification",
        "Compare the replicas of partitions, batch by batch.",
    ),
    "dump-log-segments": (
        "kafkapy.cli.commands.dump_log_segments",
        "Show the files of a log directory: segments, indexes, snapshots.",
    ),
    "dump-log": ("kafkapy.cli.commands.dump_log_segments", "The same as dump-log-segments."),
    "state-change-log-merger": (
        "kafkapy.cli.commands.state_change_log_merger",
        "Merge state-change logs in the order of time, or draw a partition's.",
    ),
    "transactions": ("kafkapy.cli.commands.transactions", "List, describe and abort transactions."),
    "acls": ("kafkapy.cli.commands.acls", "Add, remove and list access control entries."),
    "delegation-tokens": (
        "kafkapy.cli.commands.delegation_tokens",
        "Create, describe, renew and expire delegation tokens.",
    ),
    "e2e-latency": (
        "kafkapy.cli.commands.e2e_latency",
        "Measure the time from a send to the read of the record.",
    ),
    "zookeeper-shell": ("kafkapy.cli.commands.zookeeper_shell", "Read and change znodes."),
    "broker-api-versions": (
        "kafkapy.cli.commands.broker_api_versions",
        "Print the API versions that each broker serves.",
    ),
    "agent": ("kafkapy.cli.commands.agent", "Follow files and write their lines to a topic."),
    "spark-submit": (
        "kafkapy.cli.commands.spark_submit",
        "Run spark-submit with topics as sources and sinks.",
    ),
    "completion": (
        "kafkapy.cli.framework.completion",
        "Install or print shell completion.",
    ),
    "version": (
        "kafkapy.cli.commands.version",
        "Print the versions of kafkapy and of what it runs on.",
    ),
}


# What people come for -> commands, in the order of the help.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Run": ("server", "zookeeper", "cluster"),
    "Topics": ("topics", "configs", "delete-records", "reassign", "leader-election",
               "preferred-replica-election", "log-dirs"),
    "Data": ("console-producer", "console-consumer", "get-offsets", "agent", "producer-perf",
             "consumer-perf", "e2e-latency", "verifiable-producer", "verifiable-consumer"),
    "Groups and transactions": ("consumer-groups", "transactions"),
    "Diagnosis": ("replica-verification", "dump-log-segments", "dump-log",
                  "state-change-log-merger", "zookeeper-shell", "broker-api-versions"),
    "Security": ("acls", "delegation-tokens"),
    "Spark": ("spark-submit",),
    "kafkapy itself": ("completion", "version"),
}  # fmt: skip


def load(name: str) -> Command[Any]:
    """The command of that name, which is in COMMANDS; its module is imported."""
    command: Command[Any] = importlib.import_module(COMMANDS[name][0]).COMMAND
    return command


def commands() -> dict[str, Command[Any]]:
    """Every command by name, imported: for what is written about all of them."""
    return {name: load(name) for name in COMMANDS}
