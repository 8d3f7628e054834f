"""From a log file to an answer: file -> broker -> consumer group -> Spark job, each step timed.

Then the same file through a cluster that is hurt on purpose.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from dev.demo.cluster import survive
from dev.demo.stage import (
    PARTITIONS,
    TOPIC,
    DemoFailure,
    check,
    feed,
    kafkapy,
    out,
    read_back,
    step,
)
from dev.report import ROOT
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.errors import KafkapyError
from kafkapy.testing.kafka_broker import KafkaBroker

SAMPLE = ROOT / "kafkapy" / "tools" / "sample.log"
MACHINE_LOG = Path("/var/log/dpkg.log")
JOB = ROOT / "scripts" / "jobs" / "log_summary.py"


def choose(argument: str | None) -> Path:
    """The file to feed. Raises DemoFailure if it cannot be read or has no line."""
    if argument is None:
        usable = os.access(MACHINE_LOG, os.R_OK) and MACHINE_LOG.stat().st_size > 0
        return MACHINE_LOG if usable else SAMPLE
    path = Path(argument)
    try:
        with path.open("rb") as stream:
            if not stream.read(1):
                raise DemoFailure(f"{path} is empty")
    except OSError as fault:
        raise DemoFailure(f"cannot read {path}: {fault.strerror}") from None
    return path


def travel(path: Path, scratch: Path) -> None:
    """Run the first act: broker, topic, producer, consumer group, Spark job."""
    broker = KafkaBroker(log_dir=scratch / "logs")
    try:
        with step(f"A broker in {scratch}"):
            servers = broker.start().bootstrap_servers
            out.print(f"kafkapy server, pid {broker.pid}, listens on {servers}")
        where = ("--bootstrap-server", servers, "--topic", TOPIC)
        with step(f"A topic of {PARTITIONS} partitions"):
            kafkapy("topics", "--create", *where, "--partitions", str(PARTITIONS))
        with step(f"Feeding {path} ({path.stat().st_size:,} bytes)"), path.open("rb") as stream:
            total = sum(1 for _ in stream)
            stream.seek(0)
            sent = feed(stream, total, servers)
        with step("What the broker says of it"):
            kafkapy("topics", "--describe", *where)
        with step("Reading it back with a consumer group"):
            check(sent, read_back(servers, sent.lines))
        with step("Asking Spark (a JVM starts first: this takes a little)"):
            job = str(JOB.relative_to(ROOT))
            kafkapy("spark-submit", "--master", "local[2]", "--from", TOPIC, *where[:2], job)
    finally:
        broker.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("file", nargs="?", help=f"a text file (default: {MACHINE_LOG} or a sample)")
    argument = parser.parse_args().file
    started = time.monotonic()
    try:
        path = choose(argument)
        with terminable(), tempfile.TemporaryDirectory(prefix="kafkapy-demo-") as scratch:
            travel(path, Path(scratch))
            survive(path, Path(scratch))
    except (DemoFailure, KafkapyError) as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; everything is stopped", file=sys.stderr)
        return 130
    out.print(
        f"\n[bold green]Done[/] in {time.monotonic() - started:.1f} s; nothing is left behind."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
