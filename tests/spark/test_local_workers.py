"""local_workers: sessions that scripts make themselves, and what is left of them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.spark.spark_jobs import printed, running_job
from tests.harness.spark.spark_topics import Topic

SESSION = """
import os
from pyspark.sql import SparkSession
import kafkapy.spark

print("PREPARED", kafkapy.spark.prepare_local_workers(), kafkapy.spark.prepare_local_workers())
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
options = {"kafka.bootstrap.servers": os.environ["SERVERS"], "subscribe": os.environ["TOPIC"]}
"""
COUNT = """
frame = spark.read.format("kafkapy").options(**options).load()
print("ROWS", frame.count(), frame.selectExpr("max(CAST(value AS STRING))").first()[0])
command = lambda _: open("/proc/self/cmdline").read()
found = spark.sparkContext.parallelize(range(2), 2).map(command).collect()
print("PYTHON", *(command.replace(chr(0), " ") for command in found))
spark.stop()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("AGAIN", spark.read.format("kafkapy").options(**options).load().count())
"""
STREAM = """
stream = spark.readStream.format("kafkapy").options(startingOffsets="earliest", **options).load()
query = stream.writeStream.format("noop").start()
query.processAllAvailable()
print("RUNNING", os.getpid(), flush=True)
query.awaitTermination()
"""
LATE = """
from pyspark.sql import SparkSession
import kafkapy.spark

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("PREPARED", kafkapy.spark.prepare_local_workers())
command = lambda _: open("/proc/self/cmdline").read().replace(chr(0), " ")
print("PYTHON", spark.sparkContext.parallelize([0]).map(command).first())
"""


@pytest.fixture
def wired(broker: BrokerProcess, tmp_path: Path) -> dict[str, str]:
    """The environment of a job that reads a topic of ten records."""
    topic = Topic(broker.bootstrap_servers, 2)
    topic.write(10)
    (tmp_path / "tmp").mkdir()
    return {"SERVERS": topic.servers, "TOPIC": topic.name, "TMPDIR": str(tmp_path / "tmp")}


def test_workers_of_a_plain_session_are_forked(wired: dict[str, str], tmp_path: Path) -> None:
    job = [sys.executable, "-c", SESSION + COUNT]
    with running_job(job, tmp_path / "log", PYSPARK_PYTHON=sys.executable, **wired) as process:
        found = printed(process)
    assert found["PREPARED"] == "True True"
    assert found["ROWS"] == "10 value 9"
    assert found["PYTHON"].count(" -m kafkapy.spark.workers.fork_server ") == 2
    assert found["AGAIN"] == "10"
    assert not list((tmp_path / "tmp").glob("kafkapy-*"))


def test_another_python_of_the_users_stays(wired: dict[str, str], tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    job = [sys.executable, "-c", "import kafkapy.spark, os\n"
           "print('PREPARED', kafkapy.spark.prepare_local_workers())\n"
           "print('PYTHON', os.environ['PYSPARK_PYTHON'])"]  # fmt: skip
    with running_job(job, tmp_path / "log", PYSPARK_PYTHON=str(python), **wired) as process:
        found = printed(process)
    assert found == {"PREPARED": "False", "PYTHON": str(python)}


def test_a_session_that_is_there_already_goes_on(wired: dict[str, str], tmp_path: Path) -> None:
    job = [sys.executable, "-c", LATE]
    with running_job(job, tmp_path / "log", PYSPARK_PYTHON=sys.executable, **wired) as process:
        found = printed(process)
    assert found["PREPARED"] == "False"
    assert " -m pyspark.daemon " in found["PYTHON"]


def test_a_killed_driver_leaves_nothing(wired: dict[str, str], tmp_path: Path) -> None:
    job = [sys.executable, "-c", SESSION + STREAM]
    with running_job(job, tmp_path / "log", **wired) as process:
        assert process.stdout is not None
        running = next(line for line in process.stdout if line.startswith("RUNNING"))
        os.kill(int(running.split()[1]), signal.SIGKILL)
        process.stdout.read()
