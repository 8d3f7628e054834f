"""A standalone Spark cluster whose Python lacks kafkapy, and a broker killed under a stream.

    python -m scripts._spark_cluster

Master and two workers are processes; `kafkapy spark-submit` ships the package. While a producer
writes, the broker is killed with SIGKILL and started again. Every record must be at the sink, no
offset missing. Part of `scripts/conformance --spark`.
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

from kafkapy.spark.submit import find_spark_home
from scripts import _report
from tests.support.broker_process import BrokerProcess, ServerProcess, free_port
from tests.support.spark_topics import Topic
from tests.support.waiting import wait_until

PARTITIONS = 2
KILLS = 2
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
    """A master or worker; `ready` is what its output says when it serves."""

    def __init__(self, scratch: Path, name: str, ready: str, *words: str) -> None:
        spark_class = find_spark_home(os.environ) / "bin" / "spark-class"
        super().__init__([str(spark_class), *words], 0, scratch / f"{name}.out", name)
        self._ready = ready

    def answers(self) -> bool:
        """Whether the output says so."""
        return self._ready in self.output_text()


def python_without_kafkapy(scratch: Path) -> Path:
    """A Python with this one's packages but kafkapy, which is a path of an editable install."""
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


def run(say: Callable[[str], None]) -> tuple[str, bool]:
    """The report's text, and whether nothing was lost."""
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
        with master, workers[0], workers[1], BrokerProcess(scratch / "logs") as broker:
            say("  a master and two workers run")
            sent, rows, distinct, ids = stream_through_kills(broker, scratch, url, say)
    good = distinct == sent and ids == sent
    text = (
        f"{_report.today()}, {_report.kafkapy_version()}, `python -m scripts._spark_cluster`,"
        f" {time.monotonic() - started:.0f} s. `kafkapy spark-submit --master spark://...`, a"
        " master and two workers as processes, executors whose Python cannot import kafkapy. While"
        f" a stream wrote Parquet, the broker was killed {KILLS} times with SIGKILL. {sent:,}"
        f" records sent, {rows:,} rows at the sink, {distinct:,} of them distinct by (partition,"
        f" offset), {ids:,} distinct values:"
        f" {'nothing is missing' if good else 'RECORDS MISSING'}.\n"
    )
    return text, good


def stream_through_kills(
    broker: BrokerProcess, scratch: Path, url: str, say: Callable[[str], None]
) -> tuple[int, int, int, int]:
    """Records sent; rows at the sink, distinct places and distinct values of them."""
    python = python_without_kafkapy(scratch)
    topic = Topic(broker.bootstrap_servers, PARTITIONS)
    (scratch / "job.py").write_text(JOB)
    out, end = scratch / "out", scratch / "end"
    kafkapy = Path(sys.executable).parent / "kafkapy"
    words = ["--master", url, "--conf", "spark.ui.enabled=false", "--executor-memory", "600m"]
    words += ["--from", topic.name, "--bootstrap-server", broker.bootstrap_servers]
    words += [str(scratch / "job.py"), str(out), str(scratch / "checkpoint"), str(end)]
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
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
                broker.kill()
                say(f"  the broker was killed ({number + 1})")
                burst()
                broker.start()
                assert producer.flush(120) == 0
                wait_until(lambda: arrived() or driver.poll() is not None, "the rows", LIMIT_S)
            end.touch()
            status = driver.wait(LIMIT_S)
        finally:
            driver.kill()
    assert status == 0, (scratch / "driver.out").read_text()[-4000:]
    return (sent, *rows_of(out))


def rows_of(out: Path) -> tuple[int, int, int]:
    """Rows, distinct (partition, offset), distinct values of the committed Parquet files."""
    files = [str(path) for path in out.glob("*.parquet") if path.stat().st_size]
    rows = dataset.dataset(files, format="parquet").to_table().to_pylist()
    places = {(row["partition"], row["offset"]) for row in rows}
    return len(rows), len(places), len({row["value"] for row in rows})


def main() -> int:
    """Run it by itself; nothing is written."""
    text, good = run(lambda line: print(line, flush=True))
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
