"""Benchmark of one-shot commands beside Apache Kafka's tools on the same broker.

    scripts/bench --tools [--only starts] [--runs N] [--no-write]

The figures are wall times of the whole process, ours and Kafka's in turn: how long an operator
waits at the prompt. The work is small on purpose: a topic of four partitions, a group, a segment of
a few records.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from dev import report
from dev.bench.tools import KAFKAPY, NAME, compiled, kafka, seconds
from dev.conformance import record_tools
from tests.conformance import merger_twin
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.tools.tool_lines import Steps, parse_line

TITLE: Final = "Start-up of the tools"
SHARE_MAX: Final = 0.1
LOG_LINES: Final = 100
# The records of the steps are older than the retention time: nothing may delete them meanwhile.
SETTINGS: Final = {"log.initial.task.delay.ms": "86400000"}
STEPS: Final = (
    "@settle orders 4",
    "@produce orders 0 100",
    "@commit readers orders:0:40",
    "@settle __consumer_offsets 4",
)
# Commands that send requests to the broker; {DIR} has the files of `files`.
COMMANDS: Final = (
    "topics --list",
    "topics --describe",
    "configs --describe --topic orders",
    "consumer-groups --list",
    "consumer-groups --describe --group readers",
    "get-offsets --topic orders",
    "reassign --list",
    "reassign --verify --reassignment-json-file {DIR}/moves.json",
    "leader-election --election-type preferred --all-topic-partitions",
    "log-dirs --describe",
    "delete-records --offset-json-file {DIR}/offsets.json",
    "broker-api-versions",
    "cluster cluster-id",
)
FILE_CLASSES: Final = {
    "dump-log-segments": apache_kafka.DUMP_LOG_SEGMENTS,
    "state-change-log-merger": merger_twin.MERGER,
}
FILE_COMMANDS: Final = (
    "!dump-log-segments --print-data-log --files {LOG}",
    "!state-change-log-merger --logs {DIR}/state-change.log.1,{DIR}/state-change.log.2",
)


class Start(NamedTuple):
    """A command line of ours, and of Kafka's."""

    name: str
    ours: list[str]
    theirs: list[str]


def starts(servers: str, scratch: Path, segment: Path) -> list[Start]:
    """Command lines to measure."""
    classes = record_tools.CLASSES | FILE_CLASSES
    made = []
    for text in (*COMMANDS, *FILE_COMMANDS):
        line = parse_line(text.replace("{LOG}", str(segment)))
        tool, words = line.words[0], line.arguments(servers, scratch)
        made.append(
            Start(
                text.lstrip("!").replace("{DIR}/", "").replace("{LOG}", NAME),
                [str(KAFKAPY), tool, *words],
                kafka(classes[tool], words),
            )
        )
    return made


def row(start: Start, runs: int, env: Mapping[str, str]) -> list[object]:
    """Milliseconds, ours and Kafka's in turn, after one run that is not counted."""
    seconds(start.theirs)
    seconds(start.ours, env)
    ours, theirs = [], []
    for _ in range(runs):
        theirs.append(seconds(start.theirs) * 1000)
        ours.append(seconds(start.ours, env) * 1000)
    share = median(ours) / median(theirs)
    met = "yes" if share <= SHARE_MAX else "no"
    return [f"`{start.name}`", f"{median(ours):.0f}", f"{median(theirs):.0f}", f"{share:.3f}", met]


def files(scratch: Path) -> None:
    """Write the files that the commands read."""
    place = {"topic": "orders", "partition": 0}
    moves = {"version": 1, "partitions": [{**place, "replicas": [0]}]}
    (scratch / "moves.json").write_text(json.dumps(moves))
    offsets = {"version": 1, "partitions": [{**place, "offset": 10}]}
    (scratch / "offsets.json").write_text(json.dumps(offsets))
    for number in (1, 2):
        merger_twin.write_log(scratch / f"state-change.log.{number}", number, LOG_LINES)


def main(runs: int, document: Path | None, introduction: str) -> None:
    """Measure, print, and write a part of `document`."""
    machine = report.machine()
    rows = []
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as directory:
        scratch = Path(directory)
        files(scratch)
        with BrokerProcess(scratch / "logs", SETTINGS) as broker:
            servers = broker.bootstrap_servers
            create = ["--create", "--topic", "orders", "--partitions", "4"]
            seconds([str(KAFKAPY), "topics", *create, "--bootstrap-server", servers])
            steps = Steps(servers, scratch)
            for step in STEPS:
                steps.do(parse_line(step))
            for start in starts(servers, scratch, scratch / "logs" / "orders-0" / NAME):
                rows.append(row(start, runs, compiled(scratch)))
                print(" | ".join(map(str, rows[-1])), flush=True)
    head = [
        "command",
        "kafkapy, ms",
        f"Apache Kafka {apache_kafka.VERSION}, ms",
        "share",
        "a tenth",
    ]
    about = (
        f"{report.today()}, {report.kafkapy_version()}, {machine} before the first run. Medians"
        f" of {runs} runs in turn on one kafkapy broker; wall time of the whole process. *share*:"
        " kafkapy's time, divided by Apache Kafka's. *a tenth*: whether the share is at most 0.1."
    )
    body = f"{report.wrapped(about)}\n\n{report.table(head, rows)}"
    if document is not None:
        report.replace_part(document, TITLE, body, introduction)
