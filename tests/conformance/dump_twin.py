"""Apache Kafka's DumpLogSegments and ours over the same files: the same text, byte for byte.

Kafka's standard error is compared without its log lines and stack traces, as sets of lines: the
order of the files in it is a hash's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.processes import apache_kafka

KAFKAPY = Path(sys.executable).parent / "kafkapy"
OFFSETS_TOPIC = "__consumer_offsets-"
TRANSACTIONS_TOPIC = "__transaction_state-"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_NOT_COMPARED = re.compile(r"\[\d{4}-\d\d-\d\d |\s+at |Exception in thread|SLF4J|Caused by")


class Case(NamedTuple):
    """One command line over some files."""

    name: str
    flags: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return [*self.flags, "--files", ",".join(self.files)]


class Said(NamedTuple):
    """Output and exit status of a tool."""

    stdout: bytes
    stderr: tuple[str, ...]
    status: int


class Difference(NamedTuple):
    """A case in which the tools differ, and the first line of it."""

    case: Case
    what: str
    kafka: str
    ours: str

    def __str__(self) -> str:
        return f"{self.case.name}: {self.what}\n  kafka {self.kafka}\n  ours  {self.ours}"


def cases(log_dir: Path) -> list[Case]:
    """The ways operators read a log directory; paths are relative to it."""
    found = {
        suffix: tuple(
            str(path.relative_to(log_dir))
            for path in sorted(log_dir.glob(f"*/*{suffix}"))
            if not path.parent.name.startswith("__cluster")
        )
        for suffix in SUFFIXES
    }
    logs = found[".log"]
    groups = tuple(path for path in logs if path.startswith(OFFSETS_TOPIC))
    transactions = tuple(path for path in logs if path.startswith(TRANSACTIONS_TOPIC))
    indexes = found[".index"] + found[".timeindex"]
    made = [
        Case("batches", (), logs),
        Case("records", ("--deep-iteration",), logs),
        Case("contents", ("--print-data-log",), logs),
        Case("bare-contents", ("--print-data-log", "--skip-record-metadata"), logs),
        Case("bare-records", ("--deep-iteration", "--skip-record-metadata"), logs),
        Case("first-bytes", ("--print-data-log", "--max-bytes", "5000"), logs),
        Case("old-class", ("--value-decoder-class", "kafka.serializer.StringDecoder"), logs[:3]),
        Case("indexes", (), indexes),
        Case("indexes-verified", ("--verify-index-only",), indexes),
        Case("indexes-sane", ("--index-sanity-check",), indexes),
        Case("aborted", (), found[".txnindex"]),
        Case("producers", (), found[".snapshot"]),
        Case("groups", ("--offsets-decoder",), groups),
        Case("groups-bare", ("--offsets-decoder", "--skip-record-metadata"), groups),
        Case("transactions", ("--transaction-log-decoder",), transactions),
    ]
    return [case for case in made if case.files]


def kafka(case: Case, log_dir: Path) -> Said:
    """Run Apache Kafka's tool, its stdout in UTF-8."""
    command = apache_kafka.java_command(apache_kafka.DUMP_LOG_SEGMENTS, *case.words)
    command[1:1] = ["-Dstdout.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8"]
    return _run(command, log_dir)


def ours(case: Case, log_dir: Path) -> Said:
    """Run kafkapy's command."""
    return _run([str(KAFKAPY), "dump-log-segments", *case.words], log_dir)


def _run(command: Sequence[str], log_dir: Path) -> Said:
    done = subprocess.run(
        command, cwd=log_dir, capture_output=True, timeout=apache_kafka.TOOL_LIMIT_S
    )
    lines = done.stderr.decode(errors="replace").replace(str(log_dir), "@").splitlines()
    kept = tuple(sorted(line for line in lines if not _NOT_COMPARED.match(line)))
    return Said(done.stdout, kept, done.returncode)


def difference(case: Case, kafka: Said, ours: Said) -> Difference | None:
    """The first line that is not the same; None when all is."""
    if kafka.status != ours.status:
        last = "\n".join(ours.stderr[-1:])
        return Difference(case, "exit status", str(kafka.status), f"{ours.status} {last}")
    if kafka.stdout != ours.stdout:
        return Difference(case, *_first(kafka.stdout.split(b"\n"), ours.stdout.split(b"\n")))
    if kafka.stderr != ours.stderr:
        theirs, mine = ([line.encode() for line in said.stderr] for said in (kafka, ours))
        return Difference(case, *_first(theirs, mine))
    return None


def _first(kafka: list[bytes], ours: list[bytes]) -> tuple[str, str, str]:
    end = b"(end)"
    longest = max(len(kafka), len(ours))
    padded = ([*lines, *[end] * (longest - len(lines))] for lines in (kafka, ours))
    for number, (theirs, mine) in enumerate(zip(*padded, strict=True), 1):
        if theirs != mine:
            return f"line {number}", repr(theirs), repr(mine)
    raise AssertionError("the same lines")
