"""Apache Kafka's DumpLogSegments over a log directory: does it complain about any file?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.harness.processes import apache_kafka

FILES_PER_RUN = 200
COMPLAINTS = re.compile(
    r"mismatch|out of order|non-consecutive|corrupt|invalid|isvalid: false|exception|error"
    r"|could not|failed|unexpected|unknown|not found|bytes remain|missing|leader epoch cache",
    re.IGNORECASE,
)


class Dump:
    """Result of running the tool in one way: numbers of files and output lines, complaints."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.files = 0
        self.lines = 0
        self.complaints: list[str] = []

    def __str__(self) -> str:
        return f"{self.what}: {self.files} files, {len(self.complaints)} complaints"


def chunks(paths: Sequence[Path]) -> Iterable[Sequence[Path]]:
    return (paths[at : at + FILES_PER_RUN] for at in range(0, len(paths), FILES_PER_RUN))


def dump(what: str, paths: Sequence[Path], *flags: str) -> Dump:
    """Run the tool over `paths`. Record payloads are not printed, so any odd word is its own."""
    report = Dump(what)
    for part in chunks(paths):
        names = ",".join(str(path) for path in part)
        done = apache_kafka.run_tool(apache_kafka.DUMP_LOG_SEGMENTS, *flags, "--files", names)
        lines = done.stdout.decode(errors="replace").splitlines()
        report.files += sum(line.startswith("Dumping ") for line in lines)
        report.lines += len(lines)
        said = [*lines, *done.stderr.decode(errors="replace").splitlines()]
        report.complaints += [line for line in said if COMPLAINTS.search(strip_names(line))]
        if done.returncode != 0:
            report.complaints.append(f"exit status {done.returncode}")
    if report.files != len(paths):
        report.complaints.append(f"dumped {report.files} of {len(paths)} files")
    return report


def strip_names(line: str) -> str:
    """The line without file names: a topic may be called anything."""
    return "" if line.startswith("Dumping ") else line


def dump_directory(log_dir: Path) -> list[Dump]:
    """Every file the broker wrote in the ways Kafka's operators read them."""
    found = {
        suffix: sorted(log_dir.glob(f"*/*{suffix}"))
        for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    }
    offsets = [path for path in found[".log"] if path.parent.name.startswith("__consumer_offsets-")]
    indexes = found[".index"] + found[".timeindex"]
    return [
        dump(".log --deep-iteration", found[".log"], "--deep-iteration"),
        dump(".index", found[".index"]),
        dump(".timeindex", found[".timeindex"]),
        dump("indexes --index-sanity-check", indexes, "--index-sanity-check"),
        dump(".txnindex", found[".txnindex"]),
        dump(".snapshot", found[".snapshot"]),
        dump("__consumer_offsets --offsets-decoder", offsets, "--offsets-decoder"),
    ]


def check_directory(log_dir: Path) -> list[Dump]:
    """dump_directory, and AssertionError with the complaints if there are any."""
    dumps = dump_directory(log_dir)
    wrong = [f"{item.what}: {line}" for item in dumps for line in item.complaints]
    assert not wrong, "\n".join(wrong[:40])
    assert dumps[0].files, f"no segment in {log_dir}"
    return dumps
