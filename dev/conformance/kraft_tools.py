"""Our tools on an Apache Kafka 4 node in KRaft mode: `scripts/conformance --kraft`.

One node, broker and controller in one, with two log directories and an authorizer, is started from
Apache Kafka's jars. Our tools run the command lines of tests/data/tools/kraft.txt. They must print
the output in that file, or the output of Kafka 4's own tool on the same node at the same time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dev import report
from dev.conformance import record_tools
from tests.harness.processes import apache_kafka
from tests.harness.tools.tool_differences import CHANGES, Differences, Printed, without_hints
from tests.harness.tools.tool_lines import DATA, Steps, ToolLine, masked, parse_line

TABLE: Final = DATA / "kraft.txt"
KAFKAPY: Final = Path(sys.executable).parent / "kafkapy"
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "log.initial.task.delay.ms": "86400000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
# Kafka 4 moved the tools that were Scala classes.
CLASSES: Final = record_tools.CLASSES | {
    "acls": "org.apache.kafka.tools.AclCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "dump-log-segments": "org.apache.kafka.tools.DumpLogSegments",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
}
LIMIT_S: Final = 90
_TRIES: Final = 40
_EXCEPTION: Final = re.compile(r"\b(?:org\.apache\.kafka|java)\.[\w.]+Exception: ")
"""An exception class in a message of Kafka 4's tools. kafkapy prints no Java classes."""
_NOTES: Final = """\
- *command lines*: kafkapy's tools run those of `tests/data/tools/kraft.txt`. Their output must be
  the output in that file.
- *beside Kafka's own tool*: output and exit status must be those of Kafka {release}'s tool, which
  runs on the same node at the same time. Exempt are column widths, exception classes, hash orders
  and the rules of `differences.toml`.
- Groups use the classic protocol, the consumer protocol, or are share groups.
- Replicas move between log directories only: there is no second broker.
- `__cluster_metadata` is not decoded: `--cluster-metadata-decoder` is refused.
"""
PrintLine = Callable[[str], None]


@dataclass
class Check:
    """A command line and its expected output. `beside`: that of Kafka 4's own tool is expected."""

    line: ToolLine
    beside: bool
    patterns: list[str] = field(default_factory=list)
    status: int = 0

    def complaint(self, ours: Printed, theirs: Printed | None) -> str | None:
        """Differences between our output and the expected one; None if there are none."""
        if theirs is not None:
            if self.line.unordered:
                ours, theirs = ours.sorted(), theirs.sorted()
            return None if ours == theirs else f"{self.line.text}\n- {theirs}\n+ {ours}"
        unmet = [each for each in self.patterns if not any(_fits(each, t) for t in ours.lines)]
        strange = [t for t in ours.lines if not any(_fits(each, t) for each in self.patterns)]
        if ours.status == self.status and not unmet and (not strange or not self.patterns):
            return None
        return f"{self.line.text}\n- {self.status} {unmet}\n+ {ours.status} {strange or ours.lines}"


def _without_widths(text: str) -> str:
    """A line with single blanks between columns, and a masked epoch of features.

    Kafka 3.9 and kafkapy have tabs between the columns of a feature. The epoch of features is an
    offset of the metadata log, which grows.
    """
    if text.startswith("Feature: "):
        text = re.sub(r"Epoch: \d+", "Epoch: <epoch>", text.replace("\t", " "))
    return re.sub(" {2,}(?=.)", " ", text)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def read_checks(path: Path = TABLE) -> Iterator[Check]:
    """Checks and steps of the table, in its order."""
    made: Check | None = None
    for text in path.read_text().splitlines():
        if text.startswith("| "):
            assert made is not None, text
            status = re.fullmatch(r"\| exit (\d+)", text)
            if status is None:
                made.patterns.append(text[2:].rstrip())
            else:
                made.status = int(status[1])
        elif text.strip() and not text.startswith("#"):
            if made is not None:
                yield made
            made = Check(parse_line(text.lstrip("=")), beside=text.startswith("="))
    if made is not None:
        yield made


@contextmanager
def node() -> Iterator[tuple[apache_kafka.ApacheBroker, Path]]:
    """A node of two log directories, `one` and `two`, and the directory they are in."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-kraft-") as scratch:
        one, two = (Path(scratch) / name for name in ("one", "two"))
        overrides = {**SETTINGS, "log.dirs": f"{one},{two}"}
        with apache_kafka.ApacheBroker(one, overrides, release=apache_kafka.KAFKA_4) as broker:
            yield broker, Path(scratch)


class Run:
    """A run of the table on one node: the complaints, and the counts of each tool."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.complaints: list[str] = []
        self.counts: dict[str, list[int]] = {}
        self._servers = servers
        self._directory = directory
        self._steps = Steps(servers, directory)
        self._rules = Differences(apache=True)
        self._stdin = b""

    def do(self, check: Check) -> None:
        """Run a step or a command line."""
        words = check.line.words
        if words[0] == "@input":
            self._stdin = "".join(f"{word}\n" for word in words[1:]).encode()
        elif check.line.is_step:
            self._steps.do(check.line)
        else:
            self._judge(check)
            self._stdin = b""

    def close(self) -> None:
        self._steps.close()

    def _judge(self, check: Check) -> None:
        theirs = self._theirs(check.line) if check.beside else None
        once = bool(CHANGES.intersection(check.line.words) or self._stdin)
        for _ in range(1 if once else _TRIES):
            complaint = check.complaint(self._ours(check.line), theirs)
            if complaint is None:
                break
        counted = self.counts.setdefault(check.line.words[0], [0, 0, 0])
        for place, is_counted in enumerate((True, check.beside, complaint is not None)):
            counted[place] += is_counted
        if complaint is not None:
            self.complaints.append(complaint)

    def _ours(self, line: ToolLine) -> Printed:
        command = [str(KAFKAPY), line.words[0], *line.arguments(self._servers, self._directory)]
        done = subprocess.run(command, input=self._stdin, capture_output=True, timeout=LIMIT_S)
        return without_hints(self._printed(done))

    def _theirs(self, line: ToolLine) -> Printed:
        words = line.arguments(self._servers, self._directory)
        done = apache_kafka.run_tool(CLASSES[line.words[0]], *words, release=apache_kafka.KAFKA_4)
        printed = self._rules.ruled(self._printed(done))
        lines = tuple(_EXCEPTION.sub("", each) for each in printed.lines)
        return Printed(printed.status, lines)

    def _printed(self, done: subprocess.CompletedProcess[bytes]) -> Printed:
        text = done.stdout.decode() + "\n" + done.stderr.decode()
        lines = masked(text, [self._servers], self._directory)
        return Printed(done.returncode, tuple(map(_without_widths, lines)))


def run(print_line: PrintLine) -> tuple[bool, str]:
    """Run the table. Returns whether it is met, and a part for docs/evidence/conformance.md."""
    with node() as (broker, directory):
        found = Run(broker.bootstrap_servers, directory)
        try:
            for check in read_checks():
                print_line(f"  {check.line.text}")
                found.do(check)
        finally:
            found.close()
    for complaint in found.complaints:
        print_line(f"WRONG {complaint}")
    total = [sum(counts) for counts in zip(*found.counts.values(), strict=True)]
    print_line(f"{total[0]} command lines, {total[1]} beside Kafka 4's own, {total[2]} wrong")
    rows = [[tool, *counts] for tool, counts in (*sorted(found.counts.items()), ("all", total))]
    head = ["tool", "command lines", "beside Kafka's own tool", "wrong"]
    release = apache_kafka.KAFKA_4.version
    about = report.wrapped(
        f"{report.today()}, {report.kafkapy_version()}, one node of Apache Kafka {release} in KRaft"
        " mode (broker and controller, two log directories, `StandardAuthorizer`)."
    )
    notes = _NOTES.format(release=release)
    return not found.complaints, f"{about}\n\n{notes}\n{report.table(head, rows)}"
