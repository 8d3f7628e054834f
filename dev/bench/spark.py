"""Speed beside Spark's own Kafka connector: `scripts/bench --spark`.

Both read and write the same topics of one kafkapy broker, in turn, each in a Spark process of its
own, so that their memory can be measured separately. The first batch is that of a new session: in a
plain Python process, in one that has called `kafkapy.spark.prepare_local_workers`, and in a job of
spark-submit. The other jobs run once before they are timed. The third reader does nothing
(`spark_ready`) and shows the cost of Spark itself. `--quick` uses a tenth of the records; the
report says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from dev import report
from dev.conformance import spark_connector
from kafkapy.spark.workers.worker_python import PYTHON_VARIABLES
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import create_topic

_NOTES = """\
- In parentheses: processor seconds of Spark's processes (JVM and Python).
- *Spark alone*: a source that repeatedly passes one ready batch to Spark. No source in Python takes
  less time. Where it takes more than half of the connector's time, 2x cannot be reached.
- *.schema* selects the columns that the job needs. The connector cannot select columns, so its
  figure is that of the whole table."""
DOCUMENT = report.ROOT / "docs" / "evidence" / "benchmarks.md"
FULL = {100: 10_000_000, 1000: 2_000_000}
QUICK_SHARE = 10
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 2
LIMIT_S = 3600
PREPARED = "first batch, prepared"
SUBMITTED = "first batch, spark-submit"
COUNTED_ONE = "count, .schema('offset LONG')"
AGGREGATED_ONE = "parse and aggregate, .schema('value BINARY')"
GOALS = {
    "count": "at least 2x",
    "parse and aggregate": "at least 2x",
    COUNTED_ONE: "",
    AGGREGATED_ONE: "",
    "write": "at least 1x",
    "first batch": "at most as long",
    PREPARED: "at most as long",
    SUBMITTED: "at most as long",
}
OURS_ALONE = {
    COUNTED_ONE: "count",
    AGGREGATED_ONE: "parse and aggregate",
    PREPARED: "first batch",
}
"""Rows that only kafkapy has, and the connector's row that is shown beside each."""
CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
MASTER = "local[2]"
READY = "ready"
"""The source that does nothing, which is read and not written."""


def child(format: str, servers: str, topic: str, runs: int, records: int) -> dict[str, Any]:
    """Every figure of one format on one topic, in seconds, and peak memory in MB."""
    _, size, codec = topic.split("-")
    from pyspark.sql import functions as F

    spark = new_session()
    options = options_of(spark, format, servers, topic, records)

    def load(columns: str | None = None) -> Any:
        reader = spark.read.format(format).options(**options)
        return (reader.schema(columns) if columns else reader).load()

    def count(columns: str | None = None) -> None:
        assert load(columns).count() == records

    def aggregate(columns: str | None = None) -> None:
        text = F.col("value").cast("string")
        number = F.regexp_extract(text, r"^(\d+)", 1).cast("long")
        frame = load(columns)
        frame.groupBy((number % 10).alias("bucket")).agg(F.count("*"), F.sum(number)).collect()

    def write() -> None:
        target = {
            "kafka.bootstrap.servers": servers,
            "topic": f"{topic}-out",
            "kafka.compression.type": codec,
        }
        text = F.concat(F.col("id").cast("string"), F.lit(filling(int(size)).decode()))
        frame = spark.range(0, records // 2, 1, 2).select(text.substr(1, int(size)).alias("value"))
        frame.write.format(format).options(**target).mode("append").save()

    found: dict[str, Any] = {"first batch": timed(lambda: first_batch(spark, format, options))}
    jobs = {"count": count, "parse and aggregate": aggregate}
    if format == "kafkapy":
        jobs[COUNTED_ONE] = lambda: count("offset LONG")
        jobs[AGGREGATED_ONE] = lambda: aggregate("value BINARY")
    if format != READY:
        jobs["write"] = write
    for name, job in jobs.items():
        job()  # a first run, for one-time compilation and start-up
        spent = [timed(job) for _ in range(runs)]
        found[name] = [median(figures) for figures in zip(*spent, strict=True)]
    found["memory"] = peaks()
    spark.stop()
    return found


def new_session() -> Any:
    """A session in this Python process, as scripts and notebooks create it."""
    from pyspark.sql import SparkSession

    _, jars = spark_connector.jars()
    for name in PYTHON_VARIABLES:
        os.environ.setdefault(name, sys.executable)
    builder = SparkSession.builder.master(MASTER).config("spark.jars", ",".join(map(str, jars)))
    for name, value in CONFS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def options_of(spark: Any, format: str, servers: str, topic: str, records: int) -> dict[str, str]:
    """Options to read all records of a topic, or as many from READY, which is registered first."""
    if format != READY:
        return {"kafka.bootstrap.servers": servers, "subscribe": topic}
    from dev.bench.spark_ready import ReadySource

    spark.dataSource.register(ReadySource)
    size = topic.split("-")[1]
    return {
        "records": f"{records}",
        "partitions": f"{PARTITIONS}",
        "size": size,
        "filling": filling(int(size)).decode(),
    }


def first_batch(spark: Any, format: str, options: dict[str, str]) -> None:
    """Start a stream, and stop it when the first batch is done."""
    stream = spark.readStream.format(format)
    stream = stream.options(**options, startingOffsets="earliest", maxOffsetsPerTrigger="1000")
    with tempfile.TemporaryDirectory() as scratch:
        query = stream.load().writeStream.format("noop")
        query = query.option("checkpointLocation", scratch).start()
        while not query.recentProgress:
            query.awaitTermination(0.01)
        query.stop()


def prepared(servers: str, topic: str) -> Spent:
    """kafkapy's first batch after `prepare_local_workers`."""
    from kafkapy.spark import prepare_local_workers

    assert prepare_local_workers()
    spark = new_session()
    options = options_of(spark, "kafkapy", servers, topic, 0)
    spent = timed(lambda: first_batch(spark, "kafkapy", options))
    spark.stop()
    return spent


def submitted(format: str, servers: str, topic: str) -> Spent:
    """The first batch of a job that spark-submit runs, this process being its driver."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = options_of(spark, format, servers, topic, 0)
    jvm = os.getppid()
    spent = timed(lambda: first_batch(spark, format, options), jvm)
    spark.stop()
    return spent


class Spent(NamedTuple):
    """Cost of a job in seconds: wall time, and processor time of Spark's processes."""

    wall_s: float
    processor_s: float


def timed(job: Callable[[], None], top: int | None = None) -> Spent:
    """Run a job; returns its cost. `top` is that of `processor_s`."""
    used, started = processor_s(top), time.monotonic()
    job()
    return Spent(time.monotonic() - started, processor_s(top) - used)


def processor_s(top: int | None) -> float:
    """Processor seconds of Spark's processes and of their ended children."""
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in descendants(top))
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(top: int | None = None) -> list[tuple[int, list[str]]]:
    """Process `top` and its descendants, except this process, with their fields of `stat` after
    the name. Without `top`, the descendants of this process."""
    top = top or os.getpid()
    all_fields: dict[int, list[str]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            all_fields[int(entry.parent.name)] = entry.read_text().rpartition(")")[2].split()
    found = []
    for pid, fields in all_fields.items():
        above = pid
        while above in all_fields and above != top:
            above = int(all_fields[above][1])
        if above == top and pid != os.getpid():
            found.append((pid, fields))
    return found


def peaks() -> dict[str, int]:
    """Peak resident MB of the JVM, and of the largest Python worker, below this process."""
    found = {"JVM": 0, "worker": 0}
    for pid, _ in descendants():
        status = Path(f"/proc/{pid}/status").read_text()
        words = dict(line.split(":", 1) for line in status.splitlines())
        kind = "JVM" if "java" in words["Name"] else "worker"
        peak = int(words.get("VmHWM", "0").split()[0]) >> 10
        found[kind] = max(found[kind], peak)
    return found


def fill(servers: str, size: int, codec: str, records: int) -> str:
    """A topic of records that begin with a number."""
    from confluent_kafka import Producer

    topic = f"bench-{size}-{codec}"
    create_topic(servers, topic, PARTITIONS)
    create_topic(servers, f"{topic}-out", PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": "20",
            "compression.type": codec,
            "batch.size": "100000",
            "log_level": 0,
        }
    )
    rest = filling(size)
    for i in range(records):
        value = (b"%d" % i + rest)[:size]
        while True:
            try:
                producer.produce(topic, value, partition=i % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(300) == 0
    return topic


def filling(size: int) -> bytes:
    """Filler after the number in a record: at least `size` bytes, which callers cut."""
    return b" GET /item/17 HTTP/1.1 200 agent" * (size // 30 + 1)


def run(records: dict[int, int], codecs: list[str], runs: int) -> str:
    """Measure all sizes and codecs. Returns the report."""
    version, _ = spark_connector.jars()
    rows: list[list[object]] = []
    with (
        tempfile.TemporaryDirectory(prefix="kafkapy-spark-bench-") as scratch,
        BrokerProcess(Path(scratch) / "logs", {"log.retention.ms": "-1"}) as broker,
    ):
        for size, count in records.items():
            for codec in codecs:
                topic = fill(broker.bootstrap_servers, size, codec, count)
                found = {
                    format: in_session(format, broker.bootstrap_servers, topic, runs, count)
                    for format in ("kafka", "kafkapy", READY)
                }
                theirs = found["kafka"]
                theirs |= {name: theirs[whole] for name, whole in OURS_ALONE.items()}
                found["kafkapy"][PREPARED] = in_prepared(broker.bootstrap_servers, topic)
                for format in ("kafka", "kafkapy"):
                    found[format][SUBMITTED] = in_submit(format, broker.bootstrap_servers, topic)
                rows += table_rows(size, codec, count, found)
                print(*rows[-len(GOALS) - 1 :], sep="\n", flush=True)
    reduced = records != FULL or set(codecs) != set(CODECS)
    text = report.wrapped(
        f"{report.today()}, {report.kafkapy_version()}, `scripts/bench --spark`, runs of each:"
        f" {runs}, Spark 4.3.0 with `local[2]`, the connector {version}, one kafkapy broker,"
        f" {report.machine()}."
    )
    text += f"\n\n{_NOTES}"
    if reduced:
        text += (
            "\n- **Reduced sizes**: not the whole measurement, and no measure on a busy machine."
        )
    head = ["records", "codec", "what", "connector", "kafkapy", "Spark alone", "kafkapy is", "goal"]
    return f"{text}\n\n{report.table(head, rows)}\n"


def table_rows(
    size: int, codec: str, count: int, found: dict[str, dict[str, Any]]
) -> list[list[object]]:
    """The lines of one topic."""
    theirs, ours, ready = found["kafka"], found["kafkapy"], found[READY]
    what = f"{count:,} of {size} B"
    rows: list[list[object]] = []
    for name, goal in GOALS.items():
        figures = [
            f"{each[name][0]:.2f} s ({each[name][1]:.2f})" if name in each else ""
            for each in (theirs, ours, ready)
        ]
        times = f"{theirs[name][0] / ours[name][0]:.1f}x as fast"
        rows.append([what, codec, name, *figures, times, goal])
    memory = [
        f"JVM {m['JVM']:,}, worker {m['worker']:,} MB"
        for m in (theirs["memory"], ours["memory"], ready["memory"])
    ]
    return [*rows, [what, codec, "peak memory", *memory, "", ""]]


def in_session(format: str, servers: str, topic: str, runs: int, count: int) -> dict[str, Any]:
    """Run `child` in a process of its own."""
    words = ["--child", format, servers, topic, str(runs), str(count)]
    found: dict[str, Any] = last_line([sys.executable, "-m", "dev.bench.spark", *words], {})
    return found


def in_prepared(servers: str, topic: str) -> Spent:
    """Run `prepared` in a process of its own."""
    words = ["--prepared", servers, topic]
    return Spent(*last_line([sys.executable, "-m", "dev.bench.spark", *words], {}))


def in_submit(format: str, servers: str, topic: str) -> Spent:
    """Run `submitted` by the spark-submit of each format."""
    words = ["--master", MASTER]
    for name, value in CONFS.items():
        words += ["--conf", f"{name}={value}"]
    commands, environ = Path(sys.executable).parent, {}
    if format == "kafkapy":
        submit = [str(commands / "kafkapy"), "spark-submit"]
    else:
        submit = [str(commands / "spark-submit")]
        words += ["--jars", ",".join(map(str, spark_connector.jars()[1]))]
        environ = dict.fromkeys(PYTHON_VARIABLES, sys.executable)
    script = [__file__, "--submitted", format, servers, topic]
    return Spent(*last_line([*submit, *words, *script], environ))


def last_line(command: list[str], environ: dict[str, str]) -> Any:
    """Run a command; returns the last line of its output, parsed as JSON."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **environ, "PYTHONPATH": str(report.ROOT)},
    )
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(words: list[str]) -> int:
    """Write the report to docs/evidence/benchmarks.md, unless --no-write."""
    if words[:1] == ["--child"]:
        format, servers, topic, runs, count = words[1:]
        print(json.dumps(child(format, servers, topic, int(runs), int(count))))
        return 0
    if words[:1] == ["--prepared"]:
        print(json.dumps(prepared(*words[1:])))
        return 0
    if words[:1] == ["--submitted"]:
        print(json.dumps(submitted(*words[1:])))
        return 0
    parser = argparse.ArgumentParser(prog="scripts/bench --spark")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args(words)
    share = QUICK_SHARE if given.quick else 1
    records = {size: count // share for size, count in FULL.items()}
    text = run(records, given.codecs.split(","), given.runs)
    print(text)
    if not given.no_write:
        report.replace_part(DOCUMENT, "Spark, beside the JVM connector", text, "# Benchmarks\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
