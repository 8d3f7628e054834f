"""The table of commands.

A command's module is imported only when that command is called, so that commands start quickly.
"""

from __future__ import annotations

from typing import Final

from kafkapy.cli.framework.jopt import OptionSpec

# The options in front of a command.
ROOT_OPTIONS: Final = (
    OptionSpec(("version",), kind="bool", help="Print the version and exit."),
    OptionSpec(("help", "h"), kind="bool", help="Show this message and exit."),
)

# The commands, each with one line of help.
COMMANDS: Final[dict[str, str]] = {
    "server": "Start or stop a broker, or install it as a systemd service.",
    "zookeeper": "Start or stop a ZooKeeper on this machine; export and import znodes.",
    "cluster": "Run a local cluster and inject faults; print a cluster's id.",
    "topics": "Create, list, describe, alter and delete topics.",
    "configs": "Describe and alter dynamic configs of topics and brokers.",
    "client-metrics": "Configure the metrics that clients push to the brokers.",
    "reassign": "Move replicas between brokers and log directories.",
    "leader-election": "Elect preferred or unclean leaders.",
    "preferred-replica-election": "Elect preferred leaders, as Kafka's tool up to 2.8.",
    "log-dirs": "Show sizes and lags of the replicas in brokers' log directories.",
    "delete-records": "Delete the oldest records of partitions.",
    "console-producer": "Write lines from stdin to a topic.",
    "console-consumer": "Read records of a topic to stdout.",
    "console-share-consumer": "Read records of a topic to stdout as a member of a share group.",
    "consumer-groups": "List, describe and delete consumer groups; reset and delete their offsets.",
    "groups": "List the groups of all types.",
    "share-groups": "List, describe and delete share groups; reset and delete their offsets.",
    "get-offsets": "Print offsets of partitions: latest, earliest, or by time.",
    "producer-perf": "Measure the throughput and the latency of a producer.",
    "consumer-perf": "Measure the throughput of a consumer.",
    "verifiable-producer": "Write numbered records; print a JSON line for each.",
    "verifiable-consumer": "Read as a member of a group; print a JSON line for each event.",
    "verifiable-share-consumer": (
        "Read as a member of a share group; print a JSON line for each event."
    ),
    "replica-verification": "Compare the replicas of partitions, batch by batch.",
    "dump-log-segments": "Show the files of a log directory: segments, indexes, snapshots.",
    "dump-log": "The same as dump-log-segments.",
    "state-change-log-merger": (
        "Merge state-change logs by time, or draw the timeline of a partition."
    ),
    "transactions": "List, describe and abort transactions.",
    "features": "Describe, upgrade and downgrade the features of a cluster.",
    "acls": "Add, remove and list access control entries.",
    "delegation-tokens": "Create, describe, renew and expire delegation tokens.",
    "e2e-latency": "Measure the latency from the send of a record to its read.",
    "zookeeper-shell": "Read and change znodes.",
    "broker-api-versions": "Print the API versions that each broker serves.",
    "schema-registry": "Serve schemas with the REST API of Confluent Schema Registry.",
    "schemas": "List, register, compare and delete the schemas of a schema registry.",
    "agent": "Follow files and write their lines to a topic.",
    "spark-submit": "Run spark-submit with topics as sources and sinks.",
    "completion": "Install or print shell completion.",
    "version": "Print the versions of kafkapy, Kafka and Python.",
}
# Modules that do not have the name of their command.
_MODULES: Final = {
    "reassign": "kafkapy.cli.commands.reassign.command",
    "dump-log": "kafkapy.cli.commands.dump_log_segments",
    "completion": "kafkapy.cli.framework.completion",
}

# Headings of the help and their commands, in the order of the help.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Run": ("server", "zookeeper", "cluster", "features"),
    "Topics": ("topics", "configs", "delete-records", "reassign", "leader-election",
               "preferred-replica-election", "log-dirs"),
    "Data": ("console-producer", "console-consumer", "console-share-consumer", "get-offsets",
             "schema-registry", "schemas", "agent", "producer-perf", "consumer-perf", "e2e-latency",
             "verifiable-producer", "verifiable-consumer", "verifiable-share-consumer"),
    "Groups and transactions": ("consumer-groups", "share-groups", "groups", "transactions"),
    "Diagnosis": ("replica-verification", "dump-log-segments", "dump-log",
                  "state-change-log-merger", "zookeeper-shell", "broker-api-versions",
                  "client-metrics"),
    "Security": ("acls", "delegation-tokens"),
    "Spark": ("spark-submit",),
    "kafkapy itself": ("completion", "version"),
}  # fmt: skip


def module_of(name: str) -> str:
    """The module of a command. Its `COMMAND` is the definition of the command."""
    return _MODULES.get(name) or f"kafkapy.cli.commands.{name.replace('-', '_')}"
