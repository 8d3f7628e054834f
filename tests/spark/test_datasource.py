"""datasource: through Spark itself, as users call it. Nothing registers it: Spark finds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from tests.harness.spark.spark_topics import Topic
from tests.harness.storage.log_builder import LogBuilder

MakeTopic = Callable[..., Topic]


def load(spark: SparkSession, topic: Topic, **options: str) -> DataFrame:
    return spark.read.format("kafkapy").options(**topic.options, **options).load()


def test_the_name_kafka_stays_sparks_own(spark: SparkSession, make_topic: MakeTopic) -> None:
    with pytest.raises(PySparkException, match="kafka"):
        spark.read.format("kafka").options(**make_topic().options).load()


def test_it_is_found_and_reads_every_record_once(
    spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    topic.send(
        ((i % 3, b"key %d" % i, b"value %d" % i) for i in range(25_000)),
        **{"compression.type": "zstd"},
    )
    frame = load(spark, topic)
    row = frame.agg(
        F.count("*"), F.countDistinct("partition", "offset"), F.countDistinct("value")
    ).first()
    assert row is not None
    assert tuple(row) == (25_000, 25_000, 25_000)
    assert frame.where("topic is null or timestamp is null or timestampType <> 0").count() == 0
    assert frame.where("partition = 1 and cast(key as string) = 'key 10'").count() == 1


@pytest.mark.parametrize("source", ["kafkapy", "kafkapy-segments"])
def test_a_table_whose_options_spark_would_lose_is_refused_with_what_to_use(
    spark: SparkSession, source: str
) -> None:
    with pytest.raises(AnalysisException, match=f"USING `{source}` OPTIONS") as caught:
        spark.sql(f"CREATE TABLE lost USING `{source}` OPTIONS (subscribe 't')")
    assert "CREATE TEMPORARY VIEW" in str(caught.value)


def test_headers_and_nulls(spark: SparkSession, make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.send([(0, None, b"v"), (0, b"k", None)])
    frame = load(spark, topic, includeHeaders="true")
    assert frame.columns[-1] == "headers"
    rows = [(r["key"], r["value"], r["headers"]) for r in frame.orderBy("offset").collect()]
    assert [tuple(v and bytes(v) for v in row) for row in rows] == [
        (None, b"v", None),
        (b"k", None, None),
    ]


def test_an_empty_topic_has_no_rows(spark: SparkSession, make_topic: MakeTopic) -> None:
    assert load(spark, make_topic(2)).collect() == []


def test_sql_views(spark: SparkSession, make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(4)
    options = ", ".join(f"`{name}` '{value}'" for name, value in topic.options.items())
    spark.sql(f"CREATE TEMPORARY VIEW records USING kafkapy OPTIONS ({options})")
    assert [tuple(r) for r in spark.sql("SELECT count(*), max(offset) FROM records").collect()] == [
        (4, 3)
    ]
    spark.sql("DROP VIEW records")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("value STRING", "The source's column 'value' is binary, not string"),
        ("value BINARY, price INT", "The source has no column 'price'; it has key, value"),
        ("value BINARY, value BINARY", "names column 'value' twice"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    spark: SparkSession, make_topic: MakeTopic, schema: str, words: str
) -> None:
    reader = spark.read.format("kafkapy").options(**make_topic().options).schema(schema)
    with pytest.raises(PySparkException, match=words):
        reader.load().count()


def test_a_schema_chooses_columns(spark: SparkSession, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.write(6)
    everything = load(spark, topic, includeHeaders="true")
    reader = spark.read.format("kafkapy").options(**topic.options)
    for names in (["offset"], ["partition", "value"], ["headers", "topic"]):
        schema = everything.select(names).schema
        chosen = reader.schema(schema).load()
        assert chosen.columns == names
        assert sorted(chosen.collect()) == sorted(everything.select(names).collect())
    options = ", ".join(f"`{name}` '{value}'" for name, value in topic.options.items())
    spark.sql(
        f"CREATE TEMPORARY VIEW chosen (timestamp TIMESTAMP) USING kafkapy OPTIONS ({options})"
    )
    assert spark.sql("SELECT count(*) FROM chosen WHERE timestamp > '2020-01-01'").first()[0] == 6
    spark.sql("DROP VIEW chosen")


def test_a_stream_has_the_columns_of_its_schema(spark: SparkSession, make_topic: MakeTopic) -> None:
    topic = make_topic()
    written = topic.write(3)
    stream = spark.readStream.format("kafkapy").options(**topic.options)
    stream = stream.option("startingOffsets", "earliest").schema("value BINARY")
    query = stream.load().writeStream.format("memory").queryName("chosen").start()
    try:
        query.processAllAvailable()
        found = spark.sql("SELECT * FROM chosen").collect()
    finally:
        query.stop()
    assert [bytes(row["value"]).decode() for row in found] == written
    assert found[0].asDict().keys() == {"value"}


def test_filters_reach_the_plan_when_the_conf_is_on(
    spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    topic.write(30)
    frame = load(spark, topic)
    query = frame.where("partition = 1 AND offset >= 4 AND timestamp > '2020-01-01'")
    assert (query.rdd.getNumPartitions(), query.count()) == (3, 6)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        query = load(spark, topic).where("partition = 1 AND offset >= 4 AND timestamp > now()")
        assert query.count() == 0
        query = load(spark, topic).where("partition = 1 AND offset >= 4")
        assert (query.rdd.getNumPartitions(), query.count()) == (1, 6)
        assert load(spark, topic).count() == 30
        # Why nobody but the user turns it on: Spark plans a frame's next query with these filters.
        assert query.count() == 6
        assert frame_after_filter(load(spark, topic)) != 30
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def frame_after_filter(frame: DataFrame) -> int:
    """The rows of a whole frame after a query that wanted some of them."""
    assert frame.where("partition = 1").count() == 10
    return frame.count()


def test_a_frame_or_a_view_is_planned_at_its_first_query(
    spark: SparkSession, make_topic: MakeTopic
) -> None:
    """Spark keeps the plan. Spark's own Kafka source plans each query."""
    topic = make_topic()
    topic.write(5)
    frame = load(spark, topic)
    options = ", ".join(f"`{name}` '{value}'" for name, value in topic.options.items())
    view = f"TEMPORARY VIEW planned_once USING kafkapy OPTIONS ({options})"
    spark.sql(f"CREATE {view}")
    assert (frame.count(), spark.table("planned_once").count()) == (5, 5)
    topic.write(5)
    spark.sql("REFRESH TABLE planned_once")
    assert (frame.count(), spark.table("planned_once").count()) == (5, 5)
    assert frame.where("offset >= 5").count() == 0
    spark.sql(f"CREATE OR REPLACE {view}")
    assert (load(spark, topic).count(), spark.table("planned_once").count()) == (10, 10)
    topic.delete_records(0, 3)
    with pytest.raises(PySparkException, match="offsets 0 to 3 cannot be read"):
        frame.count()
    assert load(spark, topic).count() == 7


def test_bad_options_fail_on_the_driver_and_are_named(
    spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with pytest.raises(AnalysisException, match="Did you mean 'startingOffsets'"):
        load(spark, topic, startingOfsets="earliest")
    with pytest.raises(AnalysisException, match="starting offset can't be latest"):
        load(spark, topic, startingOffsets="latest").count()
    with pytest.raises(AnalysisException, match=r"Expected e\.g\. .*topicB.*got \{oops"):
        load(spark, topic, startingOffsets="{oops").count()
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "fetchOffset.numRetries": "0"}
    with pytest.raises(AnalysisException, match=r"No bootstrap server can be reached.*:1\b"):
        spark.read.format("kafkapy").options(**topic.options | nowhere).load().count()
    with pytest.raises(AnalysisException, match="does not have nowhere"):
        load(spark, topic).unionAll(
            spark.read.format("kafkapy").options(**{**topic.options, "subscribe": "nowhere"}).load()
        ).count()


def stream(spark: SparkSession, topic: Topic, checkpoint: Path, **options: str) -> int:
    """Run a stream until now; returns the rows of this run."""
    source = spark.readStream.format("kafkapy").options(**topic.options, **options).load()
    query = (
        source.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2)
    topic.write(30)
    limited = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"}
    assert stream(spark, topic, tmp_path, **limited) == 30
    assert stream(spark, topic, tmp_path, **limited) == 0
    topic.write(7)
    assert stream(spark, topic, tmp_path, **limited) == 7


def test_a_failed_batch_0_loses_nothing(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    topic.write(3)
    seen: list[int] = []

    def run(process: Callable[[DataFrame, int], None]) -> None:
        source = spark.readStream.format("kafkapy").options(**topic.options).load()
        writer = source.writeStream.foreachBatch(process)
        query = writer.option("checkpointLocation", str(tmp_path)).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def fail(frame: DataFrame, batch: int) -> None:
        raise ValueError("the sink is down")

    with pytest.raises(PySparkException, match="the sink is down"):
        run(fail)  # it has started at "latest", which is 3, and Spark asks for that again
    topic.write(15)
    run(lambda frame, batch: seen.extend(row["offset"] for row in frame.collect()))
    assert sorted(seen) == list(range(3, 18))


def test_updates_of_an_aggregation_are_written_in_foreach_batch(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Spark refuses the output mode for every Python sink; Spark's own Kafka sink has it."""
    source, target = make_topic(), make_topic()
    source.send([(0, b"a", b"1"), (0, b"b", b"1"), (0, b"a", b"1")])
    records = spark.readStream.format("kafkapy").option("startingOffsets", "earliest")
    counts = records.options(**source.options).load().groupBy("key").count()
    rows = counts.selectExpr("key", "CAST(count AS STRING) AS value")
    sink = {"kafka.bootstrap.servers": target.servers, "topic": target.name}

    def run(writer: DataStreamWriter, name: str) -> None:
        writer = writer.outputMode("update").option("checkpointLocation", str(tmp_path / name))
        writer.trigger(availableNow=True).start().awaitTermination()

    def append(batch: DataFrame, number: int) -> None:
        batch.write.format("kafkapy").options(**sink).mode("append").save()

    with pytest.raises(PySparkException, match="kafkapy does not support Update mode"):
        run(rows.writeStream.format("kafkapy").options(**sink), "refused")
    run(rows.writeStream.foreachBatch(append), "batches")
    source.send([(0, b"a", b"1")])
    run(rows.writeStream.foreachBatch(append), "batches")
    written = load(spark, target).orderBy("offset").collect()
    found = [(row["key"].decode(), row["value"].decode()) for row in written]
    assert (sorted(found[:2]), found[2:]) == ([("a", "2"), ("b", "1")], [("a", "3")])


def test_wrong_stream_options_fail_before_the_query_starts(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    with pytest.raises(PySparkException, match="not valid in streaming queries"):
        stream(spark, make_topic(), tmp_path, endingOffsets="latest")


def test_segments_are_read_when_no_broker_runs(spark: SparkSession, tmp_path: Path) -> None:
    LogBuilder(tmp_path).append(count=3).roll().append(count=3).stop()
    frame = spark.read.format("kafkapy-segments").load(str(tmp_path))
    rows = frame.where("offset > 1").selectExpr("trim(CAST(value AS STRING))", "topic").collect()
    assert sorted(map(tuple, rows)) == [(str(i), "orders") for i in range(2, 6)]


def test_a_failed_batch_0_is_repeated_after_partitions_were_added(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    topic.write(3)
    options = {"startingOffsets": f'{{"{topic.name}":{{"0":1}}}}'}
    with pytest.raises(PySparkException, match="must name all partitions"):
        stream(spark, make_topic(2), tmp_path / "new", **options)
    failing = spark.readStream.format("kafkapy").options(**topic.options, **options).load()
    query = (
        failing.select(F.raise_error(F.lit("the job fails")).alias("value"))
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "old"))
        .start()
    )
    with pytest.raises(PySparkException, match="the job fails"):
        query.processAllAvailable()
    topic.add_partitions(2)
    topic.write(4)
    assert stream(spark, topic, tmp_path / "old", **options) == 2 + 4
