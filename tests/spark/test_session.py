"""session: the topics that spark-submit wired, and options that win over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafkapy.spark
from kafkapy.common.errors import ConfigError
from kafkapy.spark.submit.session import PROPERTY
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire

MakeTopic = Callable[..., Topic]


def test_reading_what_was_wired(spark: SparkSession, make_topic: MakeTopic, wire: Wire) -> None:
    topic, other = make_topic(), make_topic()
    topic.write(5)
    other.write(2)
    wire(source=topic.name, servers=topic.servers)
    assert kafkapy.spark.read(spark).count() == 5
    assert kafkapy.spark.read(spark, subscribe=other.name).count() == 2
    assert "headers" in kafkapy.spark.read(spark, includeHeaders="true").columns


def test_the_columns_that_are_needed(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire
) -> None:
    topic = make_topic()
    topic.write(2)
    wire(source=topic.name, servers=topic.servers, columns="offset, value")
    assert kafkapy.spark.read(spark).columns == ["offset", "value"]
    assert kafkapy.spark.read_stream(spark).columns == ["offset", "value"]
    found = kafkapy.spark.read(spark, columns=["headers", "partition"], includeHeaders="false")
    assert [tuple(row) for row in found.collect()] == [(None, 0), (None, 0)]
    with pytest.raises(ConfigError, match="no column 'price'; it has key, value"):
        kafkapy.spark.read(spark, columns=["price"])


def test_nothing_wired_says_how(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="kafkapy spark-submit --from TOPICS"):
        kafkapy.spark.read(spark)


def test_writing_to_what_was_wired(spark: SparkSession, make_topic: MakeTopic, wire: Wire) -> None:
    topic = make_topic()
    wire(source=topic.name, target=topic.name, servers=topic.servers)
    kafkapy.spark.write(spark.sql("SELECT 'hello' AS value"))
    assert [bytes(row["value"]) for row in kafkapy.spark.read(spark).collect()] == [b"hello"]


def test_a_job_may_read_committed_records_only_and_write(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire
) -> None:
    """The file of `--command-config` has the properties of the source, too."""
    topic = make_topic()
    wire(target=topic.name, servers=topic.servers)
    name = PROPERTY + "isolation.level"
    spark.conf.set(name, "read_committed")
    try:
        kafkapy.spark.write(spark.sql("SELECT 'hello' AS value"))
        assert kafkapy.spark.read(spark, subscribe=topic.name).count() == 1
    finally:
        spark.conf.unset(name)


def test_a_stream_to_what_was_wired(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    wire(source=source.name, target=target.name, servers=source.servers, checkpoint=tmp_path)
    source.write(4)
    query = kafkapy.spark.write_stream(kafkapy.spark.read_stream(spark).select("value")).start()
    query.processAllAvailable()
    source.write(4)
    query.processAllAvailable()
    query.stop()
    assert kafkapy.spark.read(spark, subscribe=target.name).count() == 8
    assert (tmp_path / "offsets" / "0").exists()


def test_an_option_in_another_case_wins_over_the_checkpoint_of_the_command(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, tmp_path: Path
) -> None:
    topic = make_topic()
    wire(source=topic.name, target=topic.name, servers=topic.servers, checkpoint=tmp_path / "wired")
    rows = kafkapy.spark.read_stream(spark).select("value")
    query = kafkapy.spark.write_stream(rows, checkpointlocation=str(tmp_path / "own")).start()
    query.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
