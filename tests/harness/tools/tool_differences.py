"""Accepted differences between Apache Kafka's tools and ours, with reasons: `differences.toml`.

[[rule]]        a pattern in Kafka's lines, and its replacement in ours; "" drops the line
[[line]]        one command: exactly what ours prints (and its status, where that differs), or
                `ours_like`, patterns of which every line of ours matches one; `broker`: the
                difference is our broker's, not the tool's
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.scripted.cli import kafkapy
from tests.harness.tools.tool_lines import DIFFERENCES, RECORD, Steps, ToolLine, masked

# Words of command lines that must not run twice.
CHANGES = frozenset(
    {
        *("--create", "--alter", "--delete", "--add", "--remove", "--execute"),
        *("--delete-offsets", "abort"),
    }
)
_TRIES = 20
# Kafka's log lines, and lines that only ours print: hints and references to help.
_NOISE = ("Try 'kafkapy", "Hint: ", "WARN ")


@dataclass(frozen=True, slots=True)
class Printed:
    """Result of a tool: its exit status and its lines, masked."""

    status: int
    lines: tuple[str, ...]

    def sorted(self) -> Printed:
        """For lines without an order: Kafka's blocks begin with a blank, whatever comes first."""
        return Printed(self.status, tuple(sorted(line.strip() for line in self.lines)))


class Differences:
    """The rules and the lines of the file."""

    def __init__(self, path: Path = DIFFERENCES, *, apache: bool = False) -> None:
        """`apache`: ours run on Apache Kafka's brokers, so entries about our broker are out."""
        found: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text())
        self.rules = [(re.compile(r["theirs"]), r["ours"], r["reason"]) for r in found["rule"]]
        entries = [e for e in found.get("line", []) if not (apache and e.get("broker", False))]
        self.lines = {entry["command"]: entry for entry in entries}

    def expected(self, line: ToolLine, theirs: Printed) -> Printed:
        """The result required of our tool, given that of Kafka's tool."""
        entry = self.lines.get(line.text)
        if entry is not None and "ours" in entry:
            return Printed(entry.get("status", theirs.status), tuple(entry["ours"]))
        return self.ruled(theirs)

    def ruled(self, theirs: Printed) -> Printed:
        """Kafka's lines with the rules applied."""
        lines = [part for text in theirs.lines for part in self._ruled_line(text).split("\n")]
        return Printed(theirs.status, tuple(text.rstrip() for text in lines if text.strip()))

    def complaint(self, line: ToolLine, theirs: Printed, ours: Printed) -> str | None:
        """Description of a mismatch between our result and the required one, or None."""
        alike = self.is_like(line, ours)
        if alike is not None:
            return None if alike else f"{line.text}\n{ours}"
        expected = self.expected(line, theirs)
        if line.unordered:
            expected, ours = expected.sorted(), ours.sorted()
        return None if expected == ours else f"{line.text}\n- {expected}\n+ {ours}"

    def is_like(self, line: ToolLine, ours: Printed) -> bool | None:
        """Whether ours matches the patterns of an entry; None if no entry has patterns."""
        patterns = self.lines.get(line.text, {}).get("ours_like")
        if patterns is None:
            return None
        met = {
            pattern for text in ours.lines for pattern in patterns if re.fullmatch(pattern, text)
        }
        known = all(any(re.fullmatch(p, text) for p in patterns) for text in ours.lines)
        return known and met == set(patterns)

    def is_needed(self, line: ToolLine, theirs: Printed) -> bool:
        """Whether a listed command would fail without its entry."""
        if "ours_like" in self.lines[line.text]:
            return True
        ruled, listed = self.ruled(theirs), self.expected(line, theirs)
        return (ruled.sorted() != listed.sorted()) if line.unordered else (ruled != listed)

    def _ruled_line(self, text: str) -> str:
        for pattern, ours, _ in self.rules:
            text = pattern.sub(ours, text)
        return text


def run_ours(
    lines: Sequence[ToolLine],
    brokers: Sequence[str],
    directory: Path,
    is_right: Callable[[int, Printed], bool] | None = None,
) -> dict[int, Printed]:
    """Run our tools in this process, and the steps between them; results by index of the line.

    With `is_right`, a line that only reads is run again until its result is right, or for a few
    seconds. Our tools send their requests sooner than a JVM starts, and a change takes some time to
    reach every broker.
    """
    servers = ",".join(brokers)
    steps = Steps(servers, directory)
    found = {}
    try:
        for index, line in enumerate(lines):
            if line.is_step:
                steps.do(line)
                continue
            found[index] = _run(line, brokers, directory)
            if is_right is None or CHANGES.intersection(line.words):
                continue
            for _ in range(_TRIES):
                if is_right(index, found[index]):
                    break
                found[index] = _run(line, brokers, directory)
    finally:
        steps.close()
    return found


def _run(line: ToolLine, brokers: Sequence[str], directory: Path) -> Printed:
    outcome = kafkapy(line.words[0], *line.arguments(",".join(brokers), directory))
    text = masked(outcome.stdout + "\n" + outcome.stderr, brokers, directory)
    return without_hints(Printed(outcome.status, tuple(text)))


def without_hints(printed: Printed) -> Printed:
    """The lines of ours without those that Kafka's tools log or do not print at all."""
    kept = (line for line in printed.lines if not line.startswith(_NOISE))
    return Printed(printed.status, tuple(kept))


def read_record(path: Path = RECORD) -> dict[str, list[Printed]]:
    """Recorded results of Kafka's tools by command, which may occur more than once in the table."""
    found: dict[str, list[Printed]] = {}
    for entry in json.loads(path.read_text()):
        printed = Printed(entry["status"], tuple(entry["lines"]))
        found.setdefault(entry["command"], []).append(printed)
    return found
