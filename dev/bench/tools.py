"""The tools on files beside Apache Kafka's, in turn, on the same machine in the same minutes.

    scripts/bench --tools [--only tools] [--runs N] [--no-write]

Records or lines per second over the whole command, start-up included; the largest resident memory
for an input of 100 MB and one of 2 GB. `dev/bench/tool_starts.py` measures the start-up alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from dev import report
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from tests.conformance import merger_twin
from tests.harness.processes import apache_kafka

KAFKAPY = Path(sys.executable).parent / "kafkapy"
NAME = "00000000000000000000.log"
RECORDS = 1_000_000
BATCH = 150
# Size of the base offset and of the length, which the length does not count.
BATCH_HEAD = 12
LINES = 500_000
LARGE_BYTES = 2_000_000_000
# Memory is flat if it grows by no more than this factor from 100 MB to 2 GB.
GROWTH_MAX = 1.1
START_MS = 1_700_000_000_000


class Job(NamedTuple):
    """The same work for both: Kafka's class, our command, their words."""

    name: str
    items: int
    main_class: str
    command: str
    words: Sequence[str]


def seconds(command: Sequence[str], env: Mapping[str, str] | None = None) -> float:
    """Wall time of a command in seconds; its output is discarded."""
    started = time.monotonic()
    null = subprocess.DEVNULL
    subprocess.run(command, stdin=null, stdout=null, stderr=null, env=env, check=True)
    return time.monotonic() - started


def compiled(scratch: Path) -> dict[str, str]:
    """The environment in which Python keeps compiled modules, as pip does when it installs."""
    return {**os.environ, "PYTHONPYCACHEPREFIX": str(scratch / "compiled")}


# A child's peak starts with the memory of the process that forked it, so a small process forks.
_PEAK: Final = """
import resource, subprocess, sys
null = subprocess.DEVNULL
subprocess.run(sys.argv[1:], stdin=null, stdout=null, stderr=null, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_mb(command: Sequence[str]) -> float:
    """The largest resident memory of a run."""
    trampoline = [sys.executable, "-S", "-c", _PEAK, *command]
    return int(subprocess.run(trampoline, capture_output=True, check=True).stdout) / 1024


def kafka(main_class: str, words: Sequence[str]) -> list[str]:
    """Kafka's tool with the JIT compilers that its scripts use, and without a CDS archive."""
    command = apache_kafka.java_command(main_class, *words)
    ours = ("-XX:TieredStopAtLevel", "-XX:CompileThresholdScaling", "-XX:SharedArchiveFile")
    return [word for word in command if not word.startswith(ours)]


def write_segment(path: Path, codec: Codec) -> Path:
    """Write a segment of records of 100 B, in batches of about 16 KB."""
    path.parent.mkdir(parents=True)
    with path.open("wb") as log:
        for base in range(0, RECORDS, BATCH):
            rows = [
                RecordData(b"key-%d" % i, b"%090d" % (i * 2_654_435_761), START_MS + i)
                for i in range(base, base + BATCH)
            ]
            log.write(build_batch(rows, base_offset=base, codec=codec, leader_epoch=0))
    return path


def jobs(scratch: Path) -> list[Job]:
    """Write the input files; returns the jobs to measure."""
    dump = (apache_kafka.DUMP_LOG_SEGMENTS, "dump-log-segments")
    made = []
    for codec in (Codec.NONE, Codec.LZ4):
        path = str(write_segment(scratch / codec.label / NAME, codec))
        for flag in ("--print-data-log", "--deep-iteration"):
            name = f"dump-log {flag}, {codec.label}"
            made.append(Job(name, RECORDS, *dump, (flag, "--files", path)))
    logs = [scratch / f"state-change.log.{number}" for number in (1, 2)]
    for number, log in enumerate(logs):
        merger_twin.write_log(log, number, LINES)
    merger = (merger_twin.MERGER, "state-change-log-merger")
    words = ("--logs", ",".join(map(str, logs)))
    made.append(Job("merger, two logs", 2 * LINES, *merger, words))
    return made


def row(job: Job, runs: int, env: Mapping[str, str]) -> list[object]:
    """Thousands per second, ours and Kafka's in turn."""
    seconds([str(KAFKAPY), job.command, "--help"], env)
    ours, theirs = [], []
    for _ in range(runs):
        theirs.append(seconds(kafka(job.main_class, job.words)))
        ours.append(seconds([str(KAFKAPY), job.command, *job.words], env))
    speeds = [job.items / median(times) / 1000 for times in (ours, theirs)]
    share = speeds[0] / speeds[1]
    met = "yes" if share >= 1 else "no"
    return [job.name, f"{speeds[0]:.0f}", f"{speeds[1]:.0f}", f"{share:.2f}", met]


def memory_rows(scratch: Path) -> list[list[object]]:
    """Peak memory by the size of the input."""
    segments = (scratch / "none" / NAME, scratch / "large" / NAME)
    segments[1].parent.mkdir()
    logs = (scratch / "state-change.log.1", scratch / "state-change.large")
    for small, large in (segments, logs):
        repeat(small, large)
    rows: list[list[object]] = []
    for command, files in (
        (["dump-log", "--files"], segments),
        (["dump-log", "--deep-iteration", "--files"], segments),
        (["dump-log", "--print-data-log", "--files"], segments),
        (["state-change-log-merger", "--logs"], logs),
    ):
        peaks = [peak_mb([str(KAFKAPY), *command, str(path)]) for path in files]
        sizes = [path.stat().st_size / 1e6 for path in files]
        cells = (f"{mb:.0f} MB of {size:,.0f} MB" for mb, size in zip(peaks, sizes, strict=True))
        flat = "yes" if peaks[1] <= peaks[0] * GROWTH_MAX else "no"
        rows.append([" ".join(command[:-1]), *cells, flat])
    return rows


def repeat(small: Path, large: Path) -> None:
    """Write a file of about LARGE_BYTES that repeats the small one."""
    data = small.read_bytes()
    with large.open("wb") as out:
        while out.tell() + len(data) < LARGE_BYTES:
            out.write(data)
        # Brokers write segments of less than 2 GiB in whole batches.
        out.write(data[: cut(data, LARGE_BYTES - out.tell())])


def cut(data: bytes, size: int) -> int:
    """End of the last whole line, or of the last whole batch, in the first `size` bytes."""
    if data.startswith(b"["):
        return data.rfind(b"\n", 0, size) + 1
    end = 0
    while (after := end + BATCH_HEAD + int.from_bytes(data[end + 8 : end + 12], "big")) <= size:
        end = after
    return end


def main(runs: int, document: Path | None, introduction: str) -> None:
    """Measure, print, and write the part "Tools on files" of `document`."""
    machine = report.machine()
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as scratch:
        rows = []
        for job in jobs(Path(scratch)):
            rows.append(row(job, runs, compiled(Path(scratch))))
            print(" | ".join(map(str, rows[-1])), flush=True)
        memory = memory_rows(Path(scratch))
    for cells in memory:
        print(" | ".join(map(str, cells)), flush=True)
    head = [
        "what",
        "kafkapy, k/s",
        f"Apache Kafka {apache_kafka.VERSION}, k/s",
        "share",
        "at least 1",
    ]
    about = (
        f"{report.today()}, {report.kafkapy_version()}, {machine} before the first run. Medians"
        f" of {runs} runs in turn: thousands of records of 100 B, or of lines, per second of the"
        " whole command's wall time."
    )
    body = (
        f"{report.wrapped(about)}\n\n"
        + report.table(head, rows)
        + "\n\nThe largest resident memory:\n\n"
        + report.table(["what", "small input", "large input", "flat"], memory)
    )
    if document is not None:
        report.replace_part(document, "Tools on files", body, introduction)
