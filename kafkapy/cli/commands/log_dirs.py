"""`kafkapy log-dirs`: Kafka's `kafka-log-dirs.sh` (`LogDirsCommand`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, flag, require, value
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ErrorCode
from kafkapy.common.java_numbers import is_natural

if TYPE_CHECKING:
    from kafkapy.admin.log_dirs import LogDir


@dataclass
class LogDirsOptions(ClusterOptions):
    """The flags of `LogDirsCommand`."""

    describe: bool = flag("REQUIRED: describe the log directories.")
    topic_list: str | None = value("Only the partitions of these topics.", metavar="TOPIC,...")
    broker_list: str | None = value("Only these brokers; default: all.", metavar="ID,...")


def run(options: LogDirsOptions, env: Environment) -> ExitStatus:
    """Query the brokers, and print their log directories."""
    from kafkapy.admin.log_dirs import describe_log_dirs

    require(options, "bootstrap_server", "describe")
    wanted = _ids(options.broker_list)
    topics = set(filter(None, (options.topic_list or "").split(","))) or None
    with options.connect(env, "log-dirs-tool") as cluster:
        live = sorted(cluster.metadata([]).brokers)
        unknown = sorted(set(wanted or ()).difference(live))
        if unknown:
            raise CommandFailed(
                "ERROR: The given brokers do not exist from --broker-list:"
                f" {','.join(map(str, unknown))}. Current existent brokers:"
                f" {','.join(map(str, live))}"
            )
        chosen = live if wanted is None else sorted(set(wanted))
        found = {b: describe_log_dirs(cluster, b) for b in chosen}
    show(env, report(found, topics), options.output)
    return ExitStatus.SUCCESS


def report(found: Mapping[int, Sequence[LogDir]], topics: set[str] | None) -> Report:
    """Brokers with their directories. `topics` selects partitions; all directories are shown."""
    brokers: list[dict[str, Any]] = [
        {"broker": broker_id, "logDirs": [_log_dir(each, topics) for each in dirs]}
        for broker_id, dirs in found.items()
    ]
    document = {"brokers": brokers, "version": 1}
    text = [
        "Querying brokers for log directories information",
        "Received log directory information from brokers " + ",".join(map(str, found)),
        json.dumps(document, separators=(",", ":"), ensure_ascii=False),
    ]
    columns = ("Broker", "Log directory", "Partition", "Bytes", "Behind", "")
    rows = [
        (
            broker["broker"],
            log_dir["logDir"],
            p["partition"],
            p["size"],
            p["offsetLag"],
            "moving in" if p["isFuture"] else "",
        )
        for broker in brokers
        for log_dir in broker["logDirs"]
        for p in log_dir["partitions"]
    ]
    empty = [
        (b["broker"], d["logDir"], "", "", "", "offline" if d["error"] else "")
        for b in brokers
        for d in b["logDirs"]
        if not d["partitions"]
    ]
    return Report("log-dirs", brokers, text, [Table(columns, sorted([*rows, *empty], key=str))])


def _log_dir(log_dir: LogDir, topics: set[str] | None) -> dict[str, Any]:
    from kafkapy.admin.errors import java_exception

    return {
        "partitions": [
            {
                "partition": str(tp),
                "size": log.size_bytes,
                "offsetLag": log.offset_lag,
                "isFuture": log.is_future,
            }
            for (tp, _), log in log_dir.logs.items()
            if topics is None or tp.topic in topics
        ],
        "error": None if log_dir.error is ErrorCode.NONE else java_exception(log_dir.error),
        "logDir": log_dir.path,
    }


def _ids(text: str | None) -> list[int] | None:
    words = [word for word in (text or "").split(",") if word]
    if not words:
        return None
    wrong = [word for word in words if not is_natural(word.strip())]
    if wrong:
        raise UsageError(f"'{wrong[0]}' is not a broker id")
    return [int(word) for word in words]


COMMAND: Final = Command(
    "log-dirs",
    LogDirsOptions,
    run,
    reported_failures="a log directory is offline",
    groups={
        "What to do": "describe topic-list broker-list",
    },
    examples={
        "Show the size of every replica.": "--describe {B}",
        "Show the replicas of one topic on one broker.": (
            "--describe --topic-list orders --broker-list 0 {B}"
        ),
    },
)
