"""A standalone Spark cluster whose Python lacks kafkapy, and leaders killed under a stream.

    python -m dev.conformance.spark_cluster

Master and two workers are processes; `kafkapy spark-submit` ships the package. There are three
brokers, and three replicas of each partition. While a producer writes, the leader of a partition is
killed with SIGKILL. The stream must continue with the new leader, and the old one restarts later.
Every record must reach the sink, without a missing offset. Part of `scripts/conformance --spark`.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from pyarrow import dataset

from dev import report
from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.submit.submit import find_spark_home
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import ServerProcess, free_port
from tests.harness.processes.waiting import wait_until
from tests.harness.spark.spark_topics import Topic

BROKERS = (1, 2, 3)
PARTITIONS = 3
KILLS = 3
BURST = 500
LIMIT_S = 600.0

JOB = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import kafkapy.spark
out, checkpoint, end = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
stream = kafkapy.spark.read_stream(spark).select("partition", "offset", "value").writeStream
query = stream.format("parquet").option("checkpointLocation", checkpoint).start(out)
while not Path(end).exists():
    query.awaitTermination(0.5)
query.processAllAvailable()
query.stop()
"""


class SparkDaemon(ServerProcess):
    """A master or worker. `ready` is a text that its output has once it serves."""

    def __init__(self, scratch: Path, name: str, ready: str, *words: str) -> None:
        spark_class = find_spark_home(os.environ) / "bin" / "spark-class"
        super().__init__([str(spark_class), *words], 0, scratch / f"{name}.out", name)
        self._ready = ready

    def answers(self) -> bool:
        """Whether the output has the text."""
        return self._ready in self.output_text()


def python_without_kafkapy(scratch: Path) -> Path:
    """A Python with this one's packages, except kafkapy, which is an editable install's path."""
    home = scratch / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(site.getsitepackages()[0] + "\n")
    python = home / "bin" / "python"
    found = subprocess.run([python, "-c", "import numba, pyarrow, crc32c"], cwd=scratch)
    assert found.returncode == 0, "the executors' Python must have what the package needs"
    lacks = subprocess.run([python, "-c", "import kafkapy"], cwd=scratch, capture_output=True)
    assert b"No module named 'kafkapy'" in lacks.stderr, "the executors' Python has kafkapy"
    return python


def run(print_line: Callable[[str], None]) -> tuple[str, bool]:
    """Run the cluster. Returns the report's text, and whether no record was lost."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafkapy-spark-cluster-") as directory:
        scratch = Path(directory)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        port = free_port()
        url = f"spark://127.0.0.1:{port}"
        deploy = "org.apache.spark.deploy"
        master = SparkDaemon(
            scratch, "master", "I have been elected leader",
            f"{deploy}.master.Master", "--host", "127.0.0.1",
            "--port", str(port), "--webui-port", str(free_port()),
        )  # fmt: skip
        workers = [
            SparkDaemon(
                scratch, f"worker-{i}", "Successfully registered with master",
                f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                "--webui-port", str(free_port()), "--work-dir", str(scratch / f"work-{i}"), url,
            )
            for i in range(2)
        ]  # fmt: skip
        brokers = BrokerGroup(scratch, BROKERS, {"min.insync.replicas": "2"})
        with master, workers[0], workers[1], brokers:
            print_line("  a master, two workers and three brokers run")
            sent, rows, distinct, ids, gaps = stream_through_kills(
                brokers, scratch, url, print_line
            )
    good = distinct == sent and ids == sent and not gaps
    verdict = "nothing is missing" if good else "RECORDS MISSING"
    result = (
        f"{report.today()}, {report.kafkapy_version()}, `python -m dev.conformance.spark_cluster`,"
        f" {time.monotonic() - started:.0f} s: {verdict}."
        f" Of {sent:,} records sent, {rows:,} rows reached the sink: {distinct:,} distinct by"
        f" (partition, offset), {gaps:,} missing offsets in between, {ids:,} distinct values."
    )
    job = (
        "The job ran with `kafkapy spark-submit --master spark://...` on a master and two workers;"
        " the executors' Python cannot import kafkapy. A stream wrote Parquet from"
        f" {len(BROKERS)} brokers (3 replicas). Meanwhile the leader of a partition was killed"
        f" {KILLS} times with SIGKILL."
    )
    return f"{report.wrapped(result)}\n\n{report.wrapped(job)}\n", good


def stream_through_kills(
    brokers: BrokerGroup, scratch: Path, url: str, print_line: Callable[[str], None]
) -> tuple[int, int, int, int, int]:
    """The number of sent records, then the counts of `rows_of`."""
    python = python_without_kafkapy(scratch)
    servers = brokers.bootstrap_servers
    topic = Topic(servers, PARTITIONS, replication_factor=len(BROKERS))
    (scratch / "job.py").write_text(JOB)
    out, end = scratch / "out", scratch / "end"
    kafkapy = Path(sys.executable).parent / "kafkapy"
    words = ["--master", url, "--conf", "spark.ui.enabled=false", "--executor-memory", "600m"]
    words += ["--from", topic.name, "--bootstrap-server", servers]
    words += [str(scratch / "job.py"), str(out), str(scratch / "checkpoint"), str(end)]
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    sent = 0

    def burst() -> None:
        nonlocal sent
        for i in range(sent, sent + BURST):
            producer.produce(topic.name, b"%d" % i, partition=i % PARTITIONS)
        sent += BURST

    def arrived() -> bool:
        return out.exists() and any(out.glob("*.parquet")) and rows_of(out)[0] >= sent

    with (scratch / "driver.out").open("wb") as log:
        environ = {**os.environ, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        driver = subprocess.Popen(
            [str(kafkapy), "spark-submit", *words], stdout=log, stderr=log, env=environ
        )
        try:
            burst()
            assert producer.flush(60) == 0
            wait_until(lambda: arrived() or driver.poll() is not None, "the first rows", LIMIT_S)
            for number in range(KILLS):
                burst()
                killed = leader_of(servers, TopicPartition(topic.name, number % PARTITIONS))
                brokers.brokers[killed].kill()
                print_line(f"  broker {killed} was killed ({number + 1})")
                burst()
                assert producer.flush(120) == 0
                wait_until(lambda: arrived() or driver.poll() is not None, "the rows", LIMIT_S)
                brokers.start(killed)
                wait_until(lambda: in_sync(servers, topic.name), "all replicas in sync", LIMIT_S)
            end.touch()
            status = driver.wait(LIMIT_S)
        finally:
            driver.kill()
    assert status == 0, (scratch / "driver.out").read_text()[-4000:]
    return (sent, *rows_of(out))


def leader_of(servers: str, topic_partition: TopicPartition) -> int:
    """The broker id of the partition's leader."""
    with Cluster(servers) as cluster:
        return cluster.leader_of(topic_partition)


def in_sync(servers: str, topic: str) -> bool:
    """Whether every replica of the topic is in sync."""
    with Cluster(servers) as cluster:
        partitions = cluster.metadata([topic]).topics[topic].partitions.values()
        return {len(partition.isr) for partition in partitions} == {len(BROKERS)}


def rows_of(out: Path) -> tuple[int, int, int, int]:
    """Counts in the committed Parquet files: rows, distinct (partition, offset), distinct values,
    and missing offsets before the last one of each partition."""
    files = [str(path) for path in out.glob("*.parquet") if path.stat().st_size]
    rows = dataset.dataset(files, format="parquet").to_table().to_pylist()
    places = {(row["partition"], row["offset"]) for row in rows}
    ends: dict[int, int] = {}
    for partition, offset in places:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    left_out = sum(ends.values()) - len(places)
    return len(rows), len(places), len({row["value"] for row in rows}), left_out


def main() -> int:
    """Run this check alone; no document is written."""
    text, good = run(lambda line: print(line, flush=True))
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
