"""exactly_once: transactional ids, and what readers see of repeated tasks, on our brokers and on
Apache Kafka's.

Without Apache Kafka's jars ours alone are checked, and the end of the run says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kafkapy.client.batch_producer import DeliveryError
from kafkapy.spark.sink.exactly_once import job_id, transactional_id
from kafkapy.spark.sink.sink_options import SinkOptions, parse_sink_options
from kafkapy.spark.sink.writer import write_transaction
from kafkapy.spark.source.offset_reader import offset_reader
from kafkapy.spark.source.offsets import OffsetRange
from kafkapy.spark.source.options import parse_options
from kafkapy.spark.workers.engine import read_range
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.security.secure_kafka import SecureApacheBroker
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]


class Task:
    """A TaskContext with the methods that the code under test calls."""

    def __init__(self, partition: int, **properties: str) -> None:
        self._partition = partition
        self._properties = properties

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)

    def partitionId(self) -> int:
        return self._partition


def test_a_name_of_query_batch_and_partition() -> None:
    stream = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7"}
    assert transactional_id("mine", "", Task(3, **stream)) == "mine-q-7-3"
    job = job_id()
    assert transactional_id("mine", job, Task(3)) == f"mine-{job}-3"
    assert transactional_id("mine", job, Task(3, **stream)) == f"mine-{job}-3"  # in foreachBatch
    assert job != job_id()


def rows(*values: str, topic: str | None = None) -> pa.RecordBatch:
    columns = {"value": list(values)}
    return pa.RecordBatch.from_pydict(
        columns if topic is None else {**columns, "topic": [topic, *[None] * (len(values) - 1)]}
    )


def seen(topic: Topic, isolation_level: str = "read_committed") -> list[str]:
    """The values of partition 0 as our source reads them."""
    given = {**topic.options, "kafka.isolation.level": isolation_level}
    options = parse_options(given, streaming=False)
    (tp,) = offset_reader(options).partitions()
    end = offset_reader(options).ending([tp])[tp]
    batches = read_range(options, OffsetRange(tp, 0, end))
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def expect(topic: Topic, *values: str) -> None:
    """A commit is answered before its markers are in the partitions: they follow in a moment."""
    wait_until(lambda: seen(topic) == list(values), f"{topic.name} holds {values}")


def check_repeated_tasks(servers: str) -> None:
    topic = Topic(servers)

    def sink(**more: str) -> SinkOptions:
        return parse_sink_options({"kafka.bootstrap.servers": servers, **more})

    once = sink(topic=topic.name)
    write_transaction(once, "q-0-0", [rows("a", "b")])
    write_transaction(once, "q-0-0", [rows("a", "b")])
    expect(topic, "a", "b")
    dead = Producer({"bootstrap.servers": servers, "transactional.id": "q-1-0", **QUIET})
    dead.init_transactions()
    dead.begin_transaction()
    dead.produce(topic.name, b"lost")  # by a task that dies before it commits
    assert dead.flush(30) == 0
    expect(topic, "a", "b")
    assert seen(topic, "read_uncommitted") == ["a", "b", "lost"]
    with pytest.raises(DeliveryError, match="null topic"):
        write_transaction(sink(), "q-1-0", [rows("x", "y", topic=topic.name)])
    expect(topic, "a", "b")
    write_transaction(once, "q-1-0", [rows("c")])
    expect(topic, "a", "b", "c")


def check_a_batch_that_runs_again(spark: SparkSession, servers: str, checkpoint: Path) -> None:
    source, target = Topic(servers, 2), Topic(servers)
    source.write(10)

    def run() -> None:
        frame = spark.readStream.format("kafkapy").options(
            **source.options, startingOffsets="earliest"
        )
        writer = frame.load().select("value").writeStream.format("kafkapy")
        writer = writer.options(
            **{"kafka.bootstrap.servers": servers}, topic=target.name, exactlyOnce="true"
        )
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    run()
    for name in ("0", ".0.crc"):  # as if the driver had died before it wrote that batch 0 is done
        (checkpoint / "commits" / name).unlink()
    run()
    expected = [f"value {i}" for i in range(10)]
    wait_until(lambda: sorted(seen(target)) == expected, "every row of both runs, once")


def test_each_write_of_a_micro_batch_is_written(spark: SparkSession, make_topic: MakeTopic) -> None:
    """Jobs of a function of `foreachBatch` have the query and the batch as local properties."""
    properties = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7"}
    topics = [make_topic(), make_topic()]
    try:
        for name, value in properties.items():
            spark.sparkContext.setLocalProperty(name, value)
        for topic in topics:
            frame = spark.sql(f"SELECT '{topic.name}' AS value").coalesce(1)
            writer = frame.write.format("kafkapy").mode("append")
            given = {"kafka.bootstrap.servers": topic.servers, "exactlyOnce": "true"}
            writer.options(**given, topic=topic.name).save()
    finally:
        for name in properties:
            spark.sparkContext.setLocalProperty(name, None)
    for topic in topics:
        expect(topic, topic.name)


def test_our_brokers_have_every_row_once(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    check_repeated_tasks(broker.bootstrap_servers)
    check_a_batch_that_runs_again(spark, broker.bootstrap_servers, tmp_path / "checkpoint")


def test_apache_kafka_has_every_row_once(
    spark: SparkSession, apache: SecureApacheBroker | None, tmp_path: Path
) -> None:
    if apache is not None:
        check_repeated_tasks(apache.bootstrap_servers)
        check_a_batch_that_runs_again(spark, apache.bootstrap_servers, tmp_path / "checkpoint")
