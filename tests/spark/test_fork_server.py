"""Whole jobs of `kafkapy spark-submit`: their topic, words and status, and with a fork server, also
when it ends, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.spark.spark_jobs import printed, running_job
from tests.harness.spark.spark_topics import Topic

COUNT = """
import os
import signal
import sys
from pyspark.sql import SparkSession
import kafkapy.spark

spark = SparkSession.builder.getOrCreate()
frame = kafkapy.spark.read(spark)
print("ROWS", frame.count(), frame.selectExpr("max(CAST(value AS STRING))").first()[0])
draw = lambda _: (open("/proc/self/cmdline").read(), __import__("numpy").random.random())
found = spark.sparkContext.parallelize(range(2), 2).map(draw).collect()
print("PYTHON", *(command.replace(chr(0), " ") for command, _ in found))
print("DRAWN", len({number for _, number in found}))

def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])

workers = spark.sparkContext.parallelize([0])
fork_server = workers.map(lambda _: parent(os.getppid())).first()
print("FORK_SERVER", open(f"/proc/{fork_server}/cmdline").read().replace(chr(0), " "))
os.kill(fork_server, signal.SIGKILL)
print("WITHOUT", kafkapy.spark.read(spark).count(), workers.count())
print("WORDS", *sys.argv[1:])
sys.exit(3)
"""
STREAM = """
import os
from pyspark.sql import SparkSession
import kafkapy.spark

spark = SparkSession.builder.getOrCreate()
query = kafkapy.spark.read_stream(spark).writeStream.format("noop").start()
query.processAllAvailable()
print("RUNNING", os.getpid(), flush=True)
query.awaitTermination()
"""


def submitted(
    topic: Topic, script: Path, *more: str, **environ: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    """A job in local mode; its script is given `more` words."""
    words = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    words += ["--from", topic.name, "--bootstrap-server", topic.servers, str(script), *more]
    command = [str(Path(sys.executable).parent / "kafkapy"), "spark-submit", *words]
    return running_job(command, script.parent / "log", **environ)


@pytest.fixture
def topic(broker: BrokerProcess) -> Topic:
    made = Topic(broker.bootstrap_servers, 2)
    made.write(10)
    return made


def test_a_script_has_forked_workers_whose_servers_end_costs_only_speed(
    topic: Topic, tmp_path: Path
) -> None:
    """Also where the name of a file for temporary files is longer than a socket's may be, and in an
    activated virtual environment.
    """
    script = tmp_path / "job.py"
    script.write_text(COUNT)
    temporary = tmp_path / ("a directory's long name, " * 8)
    temporary.mkdir()
    environ = {"TMPDIR": str(temporary), "PS1": "(.venv) ", "BASH_FUNC_f%%": "() {  :\n}"}
    with submitted(topic, script, "--from", "mine", **environ) as process:
        found = printed(process)
    said = (tmp_path / "log").read_text()
    assert process.returncode == 3, said  # the script's own
    assert " INFO SparkContext: " in said  # a script's log in a file is as Spark writes it
    assert found["WORDS"] == "--from mine"
    assert found["ROWS"] == "10 value 9"
    assert found["PYTHON"].count(" -m kafkapy.spark.workers.fork_server ") == 2
    assert found["DRAWN"] == "2"
    assert " -m kafkapy.spark.workers.fork_server " in found["FORK_SERVER"]
    assert found["WITHOUT"] == "10 1"


@pytest.mark.parametrize("whom", ["spark-submit", "driver", "terminal"])
def test_a_killed_job_leaves_nothing(topic: Topic, tmp_path: Path, whom: str) -> None:
    (tmp_path / "job.py").write_text(STREAM)
    with submitted(topic, tmp_path / "job.py") as process:
        assert process.stdout is not None
        running = next(line for line in process.stdout if line.startswith("RUNNING"))
        if whom == "terminal":
            os.killpg(process.pid, signal.SIGINT)
        else:
            driver = int(running.split()[1])
            os.kill(process.pid if whom == "spark-submit" else driver, signal.SIGKILL)
        process.stdout.read()
