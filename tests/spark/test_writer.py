"""writer: rows to topics, through Spark and by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkapy.client.batch_producer import DeliveryError
from kafkapy.spark.sink.sink_options import parse_sink_options
from kafkapy.spark.sink.writer import write_batches
from kafkapy.spark.workers.engine import cluster_of
from tests.harness.processes.topics import QUIET
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def rows_of(topic: Topic, count: int) -> list[Row]:
    """The first `count` records, read by librdkafka, sorted by partition."""
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "test", **QUIET})
    consumer.assign([TopicPartition(topic.name, p, 0) for p in range(topic.partitions)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    return sorted(
        ((m.partition(), m.key(), m.value(), m.headers()) for m in messages), key=lambda row: row[0]
    )


def sink(topic: Topic) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topic.servers, "topic": topic.name}


def test_a_batch_write_with_every_column(spark: SparkSession, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    frame = spark.sql(
        f"""SELECT 'ignored' AS topic, CAST('k' AS BINARY) AS key, 'first' AS value, 1 AS partition,
                array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers
            UNION ALL SELECT '{topic.name}', NULL, 'second', 0, NULL"""
    )
    frame.write.format("kafkapy").options(**sink(topic)).mode("append").save()
    assert rows_of(topic, 2) == [
        (0, None, b"second", None),
        (1, b"k", b"first", [("h", b"x")]),
    ]
    by_column = {"kafka.bootstrap.servers": topic.servers}
    again = frame.where("value = 'second'").write.format("kafkapy").options(**by_column)
    again.mode("append").save()
    assert len(rows_of(topic, 3)) == 3


def test_only_append(spark: SparkSession, make_topic: MakeTopic) -> None:
    write = spark.sql("SELECT 'v' AS value").write.format("kafkapy").options(**sink(make_topic()))
    with pytest.raises(PySparkException, match="Overwrite not allowed"):
        write.mode("overwrite").save()
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write.mode("error").save()


def test_a_column_that_does_not_fit_is_named(spark: SparkSession, make_topic: MakeTopic) -> None:
    write = spark.sql("SELECT 1 AS value").write.format("kafkapy").options(**sink(make_topic()))
    with pytest.raises(PySparkException, match="Column 'value' must be string or binary"):
        write.mode("append").save()


def test_a_stream_from_topic_to_topic(
    spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, target = make_topic(2), make_topic()
    source.write(40)
    frame = spark.readStream.format("kafkapy").options(
        **source.options, startingOffsets="earliest", maxOffsetsPerTrigger="20"
    )
    query = (
        frame.load()
        .selectExpr("upper(cast(value AS STRING)) AS value")
        .writeStream.format("kafkapy")
        .options(**sink(target), checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
        .queryName("upper")
        .start()
    )
    query.awaitTermination()
    values = sorted(value or b"" for _, _, value, _ in rows_of(target, 40))
    assert values == sorted(b"VALUE %d" % i for i in range(40))


def test_a_row_without_a_topic(make_topic: MakeTopic) -> None:
    options = parse_sink_options({"kafka.bootstrap.servers": make_topic().servers})
    batch = pa.RecordBatch.from_pydict({"value": ["v"], "topic": pa.array([None], pa.string())})
    with pytest.raises(DeliveryError, match="null topic present in the data"):
        write_batches(options, [batch])


def test_a_row_that_is_refused_is_an_error_that_names_its_place(make_topic: MakeTopic) -> None:
    topic = make_topic()
    options = parse_sink_options(sink(topic))
    batch = pa.RecordBatch.from_pydict({"value": ["v"], "partition": pa.array([7], pa.int32())})
    with pytest.raises(DeliveryError, match=topic.name):
        write_batches(options, [batch])
    huge = pa.RecordBatch.from_pydict({"value": [b"x" * 3_000_000]})
    with pytest.raises(DeliveryError, match=topic.name):
        write_batches(options, [huge])


def test_a_key_goes_where_javas_producer_puts_it(make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    batch = pa.RecordBatch.from_pydict({"key": ["alice", "bob", "carol"], "value": ["a"] * 3})
    write_batches(parse_sink_options(sink(topic)), [batch])
    placed = {key: partition for partition, key, _, _ in rows_of(topic, 3)}
    assert placed == {b"alice": 1, b"bob": 2, b"carol": 2}  # murmur2 of the key, modulo 4


def test_tasks_of_a_worker_share_their_connections(make_topic: MakeTopic) -> None:
    topic = make_topic()
    options = parse_sink_options(sink(topic))
    for value in ("a", "b"):
        write_batches(options, [pa.RecordBatch.from_pydict({"value": [value]})])
    cluster = cluster_of(options.client_properties)
    (broker,) = cluster.metadata([topic.name]).brokers
    first = cluster.channel(broker)
    write_batches(options, [pa.RecordBatch.from_pydict({"value": ["c"]})])
    assert cluster.channel(broker) is first
    assert [value for _, _, value, _ in rows_of(topic, 3)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_by_librdkafka(make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    values = [f"{i} of many" for i in range(30_000)]  # more than one batch
    batch = pa.RecordBatch.from_pydict({"value": values})
    given = {**sink(topic), "kafka.compression.type": codec, "kafka.batch.size": "100000"}
    write_batches(parse_sink_options(given), [batch, batch])
    assert [value for _, _, value, _ in rows_of(topic, 60_000)] == [
        value.encode() for value in values * 2
    ]


def test_a_topic_that_takes_small_batches_only(make_topic: MakeTopic) -> None:
    topic = make_topic(config={"max.message.bytes": "20000"})
    values = [f"{i} of many" for i in range(10_000)]
    write_batches(parse_sink_options(sink(topic)), [pa.RecordBatch.from_pydict({"value": values})])
    assert len(rows_of(topic, 10_000)) == 10_000
