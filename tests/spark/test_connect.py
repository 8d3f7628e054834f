"""Spark Connect: the client has no JVM of its own, and registers nothing; the server finds us."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]

LIMIT_S = 400.0
"""Two JVMs start and compile; alone it takes half a minute."""

CLIENT = """
import os
import sys
from pyspark import SparkContext
from pyspark.sql import SparkSession
servers, source, target, checkpoint = sys.argv[1:]
SparkContext._ensure_initialized()
# A free port. In the environment of the JVM, which runs now, it would have each plan checked.
os.environ["SPARK_TESTING"] = "1"
spark = (
    SparkSession.builder.config("spark.api.mode", "connect").master("local[1]")
    .config("spark.ui.enabled", "false").getOrCreate()
)
assert "connect" in type(spark).__module__, type(spark)
options = {"kafka.bootstrap.servers": servers, "subscribe": source}
spark.sql(
    "CREATE TEMPORARY VIEW records USING kafkapy OPTIONS ("
    + ", ".join(f"`{name}` '{value}'" for name, value in options.items()) + ")"
)
print("SQL", spark.sql("SELECT count(*) FROM records").first()[0])
stream = spark.readStream.format("kafkapy").options(**options, startingOffsets="earliest").load()
query = (
    stream.select("value").writeStream.format("kafkapy")
    .options(**{"kafka.bootstrap.servers": servers}, topic=target, checkpointLocation=checkpoint)
    .trigger(availableNow=True).start()
)
query.awaitTermination()
options["subscribe"] = target
print("STREAM", spark.read.format("kafkapy").options(**options).load().count())
spark.stop()
"""


def test_a_connect_server_finds_the_source(make_topic: MakeTopic, tmp_path: Path) -> None:
    source, target = make_topic(), make_topic()
    source.write(12)
    # Spark's server looks for no source if the path of its Python, or of its jars, has a blank.
    environment = tmp_path / "environment"
    environment.symlink_to(sys.prefix)
    python = str(environment / Path(sys.executable).relative_to(sys.prefix))
    words = [source.servers, source.name, target.name, str(tmp_path / "c")]
    done = subprocess.run(
        [python, "-c", CLIENT, *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": python},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split("\n")[:2] == ["SQL 12", "STREAM 12"], done.stdout
