"""The same Spark jobs through Spark's own Kafka connector and through the kafkapy source.

One Spark session has both. Each job runs on a kafkapy broker and on an Apache Kafka 3.9 broker;
all four results must be the same. Called by `scripts/conformance --spark`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dev import report
from dev.conformance import spark_connector
from tests.conformance.spark_jobs import JOBS, NOT_SERVED, Bench, brief, outcome
from tests.harness.processes import apache_kafka
from tests.harness.security.secure_broker import SecureBroker
from tests.harness.security.secure_kafka import SecureApacheBroker

FORMATS = ("kafka", "kafkapy")
RECORD = report.ROOT / "tests" / "data" / "spark_jobs.txt"
KEEP = {"log.retention.ms": "-1"}  # the records' times are of 2023


def session(jars: Sequence[Path]) -> SparkSession:
    """A local session with the connector's jars; its workers run this Python."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    return spark


def run(words: Sequence[str], print_line: Callable[[str], None]) -> tuple[str, bool]:
    """Run all jobs, or those whose names have one of the words, on both brokers.

    Returns the report's text, and whether all results were the same.
    """
    version, jars = spark_connector.jars()
    spark = session(jars)
    results: dict[tuple[str, str, str], Any] = {}
    wanted = {
        name: job for name, job in JOBS.items() if not words or any(word in name for word in words)
    }
    started = time.monotonic()
    for kind in (SecureBroker, SecureApacheBroker):
        with (
            tempfile.TemporaryDirectory(prefix="kafkapy-parity-") as scratch,
            kind(Path(scratch) / "logs", KEEP) as broker,
        ):
            for name, job in wanted.items():
                took = []
                for format in FORMATS:
                    secure = broker.spark_options()
                    bench = Bench(spark, format, broker.bootstrap_servers, Path(scratch), secure)
                    begun = time.monotonic()
                    results[name, format, kind.__name__] = outcome(job, bench)
                    took.append(f"{time.monotonic() - begun:.1f} s")
                found = verdict(results, name, kind.__name__)
                print_line(f"  {kind.__name__} {name}: {found} ({', '.join(took)})")
    spark.stop()
    if not words:
        keep_what_the_connector_gave(results)
    brokers = (SecureBroker.__name__, SecureApacheBroker.__name__)
    rows = [[name, *(verdict(results, name, each) for each in brokers)] for name in wanted]
    same = all(cell in ("same", NOT_SERVED) for row in rows for cell in row[1:])
    text = (
        f"{report.today()}, {report.kafkapy_version()}, `scripts/conformance --spark`,"
        f" {time.monotonic() - started:.0f} s. {len(wanted)} jobs"
        f" (`tests/conformance/spark_jobs.py`) ran with Spark's own connector {version} and with"
        " `kafkapy`, in one Spark 4.3.0 session, on a kafkapy broker and on Apache Kafka"
        f" {apache_kafka.VERSION}. *same*: both sources gave the same rows, micro-batch sizes and"
        " failures."
    )
    table = report.table(["job", "on kafkapy", "on Apache Kafka"], rows)
    return f"{report.wrapped(text)}\n\n{table}", same


def keep_what_the_connector_gave(results: dict[tuple[str, str, str], Any]) -> None:
    """Write a line per job; `tests/spark/test_parity.py` compares ours to it, without Java."""
    lines = [f"{name}: {brief(results[name, 'kafka', SecureBroker.__name__])}\n" for name in JOBS]
    RECORD.write_text("".join(lines))


def verdict(results: dict[tuple[str, str, str], Any], name: str, broker: str) -> str:
    """`same`, or the two different results; NOT_SERVED if the broker cannot run the job."""
    theirs, ours = (results[name, format, broker] for format in FORMATS)
    if theirs == ours:
        return NOT_SERVED if ours == NOT_SERVED else "same"
    return f"kafka: {brief(theirs)}; kafkapy: {brief(ours)}".replace("|", "/")


def main() -> int:
    """`python -m dev.conformance.spark_parity [WORD ...]`: some jobs, nothing written."""
    text, same = run(sys.argv[1:], lambda line: print(line, flush=True))
    print(text)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
