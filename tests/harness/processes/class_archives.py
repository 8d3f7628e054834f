"""Archives of the classes that servers and Spark load, with which their JVMs start faster.

    python -m tests.harness.processes.class_archives

makes those that this machine lacks, which takes a minute, and prints JVM options for Spark. With an
archive a broker of Apache Kafka, a ZooKeeper and a job of Spark need 40 % less processor time to
start. A JVM uses an archive only if it is valid for this JVM (`apache_kafka.archive_of` names it by
the conditions).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest import mock

import pyspark
from kazoo.client import KazooClient

from tests.harness.processes import apache_kafka, zookeeper_server
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.security.secure_kafka import SecureApacheBroker

# The JVMs of Spark end before the second compiler pays off.
SPARK_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LIMIT_S: Final = 300.0
SPARK_JOB: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
server = {"kafka.bootstrap.servers": sys.argv[1]}
rows = spark.createDataFrame([("a",), ("b",)], "value STRING")
rows.write.format("kafkapy").mode("append").options(**server, topic="t").save()
read = spark.read.format("kafkapy").options(**server, subscribe="t").load()
read.selectExpr("CAST(value AS STRING) AS value").createOrReplaceTempView("rows")
spark.sql("SELECT max(value), count(*) FROM rows GROUP BY value").collect()
stream = spark.readStream.format("kafkapy").options(**server, subscribe="t").load()
stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
spark.sparkContext.parallelize([1]).map(abs).collect()
spark.stop()
"""


AT_EXIT: Final = "-XX:ArchiveClassesAtExit="


def ensure(archive: Path, make: Callable[[Path, Path], None]) -> None:
    """Make an archive if there is none: `make(directory, archive)` writes one.

    If that fails, the JVMs run without an archive.
    """
    if archive.exists():
        return
    print(f"kafkapy: making {archive}", file=sys.stderr)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        try:
            make(Path(scratch), made)
        except (OSError, RuntimeError, subprocess.SubprocessError, apache_kafka.Unavailable) as why:
            print(f"kafkapy: no class archive: {why}", file=sys.stderr)
        if made.exists():
            for old in archive.parent.glob(apache_kafka.archives_for(archive)):
                old.unlink()
            made.replace(archive)


def make_for_kafka(directory: Path, archive: Path) -> None:
    """Archive the classes of several JVMs, which a JVM cannot archive at its exit: brokers with and
    without ZooKeeper, and tools that use TLS and SASL."""
    with mock.patch.dict(
        os.environ, JAVA_TOOL_OPTIONS=f"-XX:DumpLoadedClassList={directory}/%p.list"
    ):
        _run_kafka(directory)
    lists = [path.read_text().splitlines() for path in directory.glob("*.list")]
    every = dict.fromkeys(line for lines in lists for line in lines if not line.startswith("#"))
    (directory / "all").write_text("\n".join(every))
    command = [
        *(apache_kafka.java(), "-Xshare:dump", f"-XX:SharedClassListFile={directory}/all"),
        *(f"-XX:SharedArchiveFile={archive}", "-cp", f"{apache_kafka.jars()}/*"),
    ]
    subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)


def _run_kafka(directory: Path) -> None:
    zookeeper = apache_kafka.ZooKeeperProcess(directory / "zookeeper")
    with zookeeper, apache_kafka.ApacheBroker(directory / "broker", zookeeper=zookeeper):
        pass
    with SecureApacheBroker(directory / "secure") as broker:
        path = directory / "client.properties"
        config = str(apache_kafka.write_properties(path, broker.client_properties()))
        topic = ("--bootstrap-server", broker.secure_servers, "--topic", "t")
        send_lines_through_java(config, *topic)
        admin = (*topic[:2], "--command-config", config)
        for words in (
            (apache_kafka.TOPICS, *admin, "--describe"),
            (apache_kafka.CONFIGS, *admin, "--describe", "--entity-type", "brokers", "--all"),
            (apache_kafka.CONSUMER_GROUPS, *admin, "--describe", "--all-groups"),
        ):
            apache_kafka.run_tool(*words, limit_s=LIMIT_S)


def make_for_zookeeper(directory: Path, archive: Path) -> None:
    """Archive the classes of a ZooKeeper that serves a session."""
    server = zookeeper_server.ZooKeeperServer(directory / "zookeeper")
    server.command.insert(1, f"{AT_EXIT}{archive}")
    with server:
        client = KazooClient(server.connect())
        client.start()
        client.create("/znode", b"value", ephemeral=True)
        client.stop()
        client.close()


def make_for_spark(directory: Path, archive: Path) -> None:
    """Archive the classes of a job that reads, writes and streams through our source, and that
    plans queries and generates code."""
    job = directory / "job.py"
    job.write_text(SPARK_JOB)
    environment = {
        **os.environ,
        "SPARK_SUBMIT_OPTS": " ".join((*SPARK_FLAGS, f"{AT_EXIT}{archive}")),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
    with BrokerProcess(directory / "broker") as broker:
        command += ["--master", "local[2]", str(job), broker.bootstrap_servers]
        subprocess.run(
            command, env=environment, cwd=directory, capture_output=True, timeout=LIMIT_S
        )


def main() -> None:
    if apache_kafka.installed():
        ensure(apache_kafka.class_archive(), make_for_kafka)
    ensure(zookeeper_server.class_archive(), make_for_zookeeper)
    spark = apache_kafka.archive_of("spark", Path(pyspark.__file__).parent / "jars")
    ensure(spark, make_for_spark)
    print(*SPARK_FLAGS, *apache_kafka.sharing(spark))


if __name__ == "__main__":
    main()
