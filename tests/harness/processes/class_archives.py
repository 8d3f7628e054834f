"""Archives of the classes that servers and Spark load, with which their JVMs start sooner.

    python -m tests.harness.processes.class_archives

makes those that this machine lacks, which takes a minute, and prints JVM options for Spark. With an
archive a broker of Apache Kafka, a ZooKeeper and a job of Spark need 40 % less processor time to
start. A JVM uses an archive only if it fits (`apache_kafka.archive_of` names it by what it has to
fit).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyspark
from kazoo.client import KazooClient

from tests.harness.processes import apache_kafka, zookeeper_server

# The JVMs of Spark end before what the second compiler makes is worth its time.
SPARK_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LIMIT_S: Final = 300.0
SPARK_JOB: Final = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
spark.createDataFrame([(1, "a"), (2, "b")], "n INT, s STRING").createOrReplaceTempView("rows")
spark.sql("SELECT max(n) FROM rows GROUP BY s").collect()
spark.stop()
"""


def ensure(archive: Path, run: Callable[[Path, str], None]) -> None:
    """Make an archive if there is none: `run(directory, option)` runs a JVM with an option.

    Where no archive comes of it, the JVMs do without.
    """
    if archive.exists():
        return
    print(f"kafkapy: making {archive}", file=sys.stderr)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        try:
            run(Path(scratch), f"-XX:ArchiveClassesAtExit={made}")
        except (OSError, RuntimeError, subprocess.SubprocessError, apache_kafka.Unavailable) as why:
            print(f"kafkapy: no class archive: {why}", file=sys.stderr)
        if made.exists():
            for old in archive.parent.glob(apache_kafka.archives_for(archive)):
                old.unlink()
            made.replace(archive)


def run_kafka(directory: Path, option: str) -> None:
    """A broker that serves a producer and a consumer."""
    zookeeper = apache_kafka.ZooKeeperProcess(directory / "zookeeper")
    broker = apache_kafka.ApacheBroker(directory / "broker", zookeeper=zookeeper)
    broker.command.insert(1, option)
    with zookeeper, broker:
        words = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "t")
        apache_kafka.run_tool(apache_kafka.CONSOLE_PRODUCER, *words, stdin=b"v\n", limit_s=LIMIT_S)
        more = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "30000")
        apache_kafka.run_tool(apache_kafka.CONSOLE_CONSUMER, *words, *more, limit_s=LIMIT_S)


def run_zookeeper(directory: Path, option: str) -> None:
    """A ZooKeeper that serves a session."""
    server = zookeeper_server.ZooKeeperServer(directory / "zookeeper")
    server.command.insert(1, option)
    with server:
        client = KazooClient(server.connect())
        client.start()
        client.create("/znode", b"value", ephemeral=True)
        client.stop()
        client.close()


def run_spark(directory: Path, option: str) -> None:
    """A job that plans, generates code and has Python's rows."""
    job = directory / "job.py"
    job.write_text(SPARK_JOB)
    environment = {
        **os.environ,
        "SPARK_SUBMIT_OPTS": " ".join((*SPARK_FLAGS, option)),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
    command += ["--master", "local[2]", str(job)]
    subprocess.run(
        command, env=environment, cwd=directory, capture_output=True, timeout=LIMIT_S, check=False
    )


def main() -> None:
    if apache_kafka.installed():
        ensure(apache_kafka.class_archive(), run_kafka)
    ensure(zookeeper_server.class_archive(), run_zookeeper)
    spark = apache_kafka.archive_of("spark", Path(pyspark.__file__).parent / "jars")
    ensure(spark, run_spark)
    print(*SPARK_FLAGS, *apache_kafka.sharing(spark))


if __name__ == "__main__":
    main()
