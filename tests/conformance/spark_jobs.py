"""Jobs that Spark's own Kafka connector and the kafkapy source must answer with the same rows.

A job is a function of a `Bench`, which names the format; it makes the topics it changes itself.
What it returns is compared: rows without the names of topics, sizes of micro-batches, or the fact
that the job fails. Messages are each connector's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.spark.spark_topics import Topic

START_MS: Final = 1_700_000_000_000
FAILS: Final = "fails"
NOT_SERVED: Final = "not served by this broker"
_numbers = itertools.count()
Job = Callable[["Bench"], Any]
JOBS: dict[str, Job] = {}


@dataclass
class Bench:
    """A Spark session, a format, a cluster, and a directory for checkpoints.

    `secure` has the options for its listener with TLS and SCRAM, if it serves one.
    """

    spark: SparkSession
    format: str
    servers: str
    scratch: Path
    secure: Mapping[str, str] | None = None
    topics: list[Topic] = field(default_factory=list)

    def topic(
        self, partitions: int = 1, records: int = 0, config: dict[str, str] | None = None
    ) -> Topic:
        """A topic of its own; record `i` is in partition `i % partitions`, a second a record."""
        made = Topic(self.servers, partitions, config)
        self.topics.append(made)
        fill(made, 0, records)
        return made

    def options(self, *topics: Topic, **options: str) -> dict[str, str]:
        subscribed = {"subscribe": ",".join(topic.name for topic in topics)} if topics else {}
        return {"kafka.bootstrap.servers": self.servers, **subscribed, **options}

    def load(self, *topics: Topic, **options: str) -> DataFrame:
        return (
            self.spark.read.format(self.format).options(**self.options(*topics, **options)).load()
        )

    def rows(self, frame: DataFrame) -> list[Any]:
        return self.plain(frame.collect())

    def read(self, *topics: Topic, **options: str) -> list[Any]:
        return self.rows(self.load(*topics, **options))

    def plain(self, rows: Iterable[Row]) -> list[Any]:
        """Rows without the names of topics, sorted."""
        names = {topic.name: f"topic {i}" for i, topic in enumerate(self.topics)}
        return sorted((plain(tuple(row), names) for row in rows), key=repr)

    def checkpoint(self) -> str:
        return str(self.scratch / f"checkpoint-{next(_numbers)}")

    def stream(self, *topics: Topic, checkpoint: str, **options: str) -> list[list[Any]]:
        """The micro-batches of a run with Trigger.AvailableNow."""
        batches: list[list[Any]] = []
        source = self.spark.readStream.format(self.format).options(
            **self.options(*topics, **options)
        )
        writer = source.load().writeStream.foreachBatch(
            lambda frame, _: batches.append(self.plain(frame.collect()))
        )
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()
        return [batch for batch in batches if batch]


def plain(value: Any, names: dict[str, str]) -> Any:
    """A value that compares and prints: bytes for bytearrays, ms for times, no names of topics."""
    if isinstance(value, bytearray | bytes):
        return bytes(value)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple | list):
        return [plain(each, names) for each in value]
    return value


def fill(topic: Topic, first: int, count: int, **settings: str) -> None:
    """Records with keys, nulls and headers at known times."""
    producer = Producer({"bootstrap.servers": topic.servers, **QUIET, **settings})
    for i in range(first, first + count):
        producer.produce(
            topic.name,
            None if i % 7 == 3 else b"value %d" % i,
            None if i % 5 == 2 else b"key %d" % i,
            i % topic.partitions,
            timestamp=START_MS + 1000 * i,
            headers=[("n", b"%d" % i), ("none", None)] if i % 2 else None,
        )
    assert producer.flush(60) == 0


def outcome(job: Job, bench: Bench) -> Any:
    """Run a job; returns its result, or an unexpected exception as text: that is a finding too."""
    try:
        return job(bench)
    except Exception as fault:
        said = [line for line in str(fault).splitlines() if line.strip()]
        return f"{type(fault).__name__}: {said[0][:200]} ... {said[-1][:200]}" if said else ""


def brief(value: Any) -> str:
    """A line for an outcome: itself, or its two ends and a digest of the whole."""
    text = repr(value)
    if len(text) < 160:
        return text
    return f"{text[:80]} ... {text[-80:]} ({sha256(text.encode()).hexdigest()[:16]})"


def job(function: Job) -> Job:
    JOBS[function.__name__] = function
    return function


def failing(run: Callable[[], Any]) -> Any:
    """FAILS, or what the job gave although it should have failed."""
    try:
        return run()
    except (PySparkException, Py4JJavaError):
        return FAILS


def json_of(topic: Topic, **offsets: int) -> str:
    """`{"topic": {"0": offset}}` of p0=..., p1=..."""
    inner = ", ".join(f'"{name[1:]}": {offset}' for name, offset in offsets.items())
    return f'{{"{topic.name}": {{{inner}}}}}'


@job
def the_schema(bench: Bench) -> Any:
    topic = bench.topic()
    return [
        bench.load(topic).schema.simpleString(),
        bench.load(topic, includeHeaders="true").schema.simpleString(),
    ]


@job
def everything_of_a_topic(bench: Bench) -> Any:
    return bench.read(bench.topic(3, 30))


@job
def two_topics(bench: Bench) -> Any:
    return bench.read(bench.topic(1, 10), bench.topic(2, 10))


@job
def a_pattern(bench: Bench) -> Any:
    one, other = bench.topic(1, 5), bench.topic(1, 5)
    bench.topic(1, 5)
    return bench.read(subscribePattern=f"{one.name}|{other.name[:-1]}[{other.name[-1]}]")


@job
def assigned_partitions(bench: Bench) -> Any:
    topic = bench.topic(3, 30)
    return bench.read(assign=f'{{"{topic.name}": [0, 2]}}')


@job
def an_empty_topic(bench: Bench) -> Any:
    return bench.read(bench.topic(2))


@job
def starting_offsets(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    return bench.read(topic, startingOffsets=json_of(topic, p0=4, p1=-2))


@job
def ending_offsets(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    return bench.read(topic, endingOffsets=json_of(topic, p0=4, p1=-1))


@job
def both_offsets(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    return bench.read(
        topic,
        startingOffsets=json_of(topic, p0=4, p1=0),
        endingOffsets=json_of(topic, p0=9, p1=0),
    )


@job
def earliest_to_latest_by_name(bench: Bench) -> Any:
    return bench.read(bench.topic(1, 5), startingOffsets="earliest", endingOffsets="latest")


@job
def starting_timestamp(bench: Bench) -> Any:
    return bench.read(bench.topic(2, 20), startingTimestamp=str(START_MS + 7500))


@job
def ending_timestamp(bench: Bench) -> Any:
    return bench.read(bench.topic(2, 20), endingTimestamp=str(START_MS + 7500))


@job
def timestamps_by_partition(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    return bench.read(
        topic,
        startingOffsetsByTimestamp=json_of(topic, p0=START_MS + 4000, p1=START_MS),
        endingOffsetsByTimestamp=json_of(topic, p0=START_MS + 9000, p1=START_MS + 99_000),
    )


@job
def a_timestamp_beats_offsets(bench: Bench) -> Any:
    topic = bench.topic(1, 10)
    return bench.read(
        topic, startingTimestamp=str(START_MS + 5000), startingOffsets=json_of(topic, p0=1)
    )


@job
def no_record_is_as_new(bench: Bench) -> Any:
    topic = bench.topic(1, 5)
    late = {"startingTimestamp": str(START_MS + 99_000)}
    return [
        failing(lambda: bench.read(topic, **late)),
        bench.read(topic, **late, startingOffsetsByTimestampStrategy="latest"),
    ]


@job
def a_start_after_its_end(bench: Bench) -> Any:
    topic = bench.topic(1, 10)
    options = {"startingOffsets": json_of(topic, p0=5), "endingTimestamp": str(START_MS)}
    return [
        failing(lambda loss=loss: bench.read(topic, **options, failOnDataLoss=loss))
        for loss in ("true", "false")
    ]


@job
def headers(bench: Bench) -> Any:
    return bench.read(bench.topic(2, 10), includeHeaders="true")


@job
def many_tasks(bench: Bench) -> Any:
    frame = bench.load(bench.topic(2, 40), minPartitions="8")
    return [frame.rdd.getNumPartitions(), bench.rows(frame)]


@job
def small_tasks(bench: Bench) -> Any:
    # Not the number of tasks: the connector was seen to ignore this option in a batch.
    return bench.read(bench.topic(2, 40), maxRecordsPerPartition="7")


@job
def skewed_tasks(bench: Bench) -> Any:
    topic = bench.topic(2, 2)
    topic.send((0, None, b"v") for _ in range(100))
    return bench.load(topic, minPartitions="6").rdd.getNumPartitions()


@job
def a_query_with_filters(bench: Bench) -> Any:
    topic = bench.topic(3, 60)
    wanted = [
        "partition = 1 AND offset >= 10",
        "partition IN (0, 2) AND offset < 3",
        "timestamp >= timestamp_millis(1700000010500)",
        "timestamp < timestamp_millis(1700000010500)",
        "topic = 'another'",
    ]
    return [bench.rows(bench.load(topic).where(condition)) for condition in wanted]


@job
def deleted_records(bench: Bench) -> Any:
    topic = bench.topic(1, 20)
    topic.delete_records(0, 8)
    before = {"startingOffsets": json_of(topic, p0=3)}
    return [
        bench.read(topic),
        failing(lambda: bench.read(topic, **before)),
        bench.read(topic, **before, failOnDataLoss="false"),
    ]


@job
def log_append_time(bench: Bench) -> Any:
    topic = bench.topic(1, 5, {"message.timestamp.type": "LogAppendTime"})
    frame = bench.load(topic)
    return [bench.rows(frame.drop("timestamp")), frame.where("timestamp > '2024-01-01'").count()]


def codec(name: str) -> Job:
    def read(bench: Bench) -> Any:
        topic = bench.topic(1)
        fill(topic, 0, 200, **{"compression.type": name})
        return bench.read(topic, includeHeaders="true")

    return read


JOBS |= {f"codec_{name}": codec(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")}


@job
def transactions(bench: Bench) -> Any:
    topic = bench.topic(1, 3)
    producer = Producer(
        {"bootstrap.servers": bench.servers, "transactional.id": topic.name, **QUIET}
    )
    producer.init_transactions()
    for commit in (True, False, True, False):
        producer.begin_transaction()
        for i in range(4):
            producer.produce(topic.name, b"%r %d" % (commit, i), partition=0, timestamp=START_MS)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)()
    committed = {"kafka.isolation.level": "read_committed"}
    return [
        bench.read(topic),
        bench.read(topic, **committed),
        bench.stream(topic, checkpoint=bench.checkpoint(), startingOffsets="earliest", **committed),
    ]


@job
def groups_of_readers(bench: Bench) -> Any:
    topic = bench.topic(1, 5)
    return [
        bench.read(topic, groupIdPrefix="mine"),
        bench.read(topic, **{"kafka.group.id": f"group-{bench.format}"}),
        bench.read(topic, **{"kafka.client.id": "me", "kafka.max.partition.fetch.bytes": "4096"}),
    ]


@job
def tls_and_scram(bench: Bench) -> Any:
    source, target = bench.topic(2, 20), bench.topic()
    if bench.secure is None:
        return NOT_SERVED
    options = {**bench.secure, "topic": target.name}
    frame = bench.load(source, **bench.secure).where("value IS NOT NULL")
    frame.select("key", "value").write.format(bench.format).options(**options).mode("append").save()
    start = {"startingOffsets": "earliest", **bench.secure}
    login = "kafka.sasl.jaas.config"
    wrong = {**bench.secure, login: bench.secure[login].replace('password="', 'password="no ')}
    return [
        bench.rows(bench.load(target, **bench.secure).select("key", "value")),
        bench.stream(source, checkpoint=bench.checkpoint(), **start),
        failing(lambda: bench.read(source, **wrong)),
    ]


WRONG: Final[dict[str, dict[str, str]]] = {
    "starting_at_latest": {"startingOffsets": "latest"},
    "ending_at_earliest": {"endingOffsets": "earliest"},
    "bad_json": {"startingOffsets": "{oops"},
    "not_every_partition": {"startingOffsets": '{"%": {"0": 0}}'},
    "end_before_start": {
        "startingOffsets": '{"%": {"0": 4, "1": 0}}',
        "endingOffsets": '{"%": {"0": 2, "1": 0}}',
    },
    "an_end_beyond_the_log": {  # the connector finds out in its tasks, which wait so long
        "endingOffsets": '{"%": {"0": 99, "1": 99}}',
        "kafkaConsumer.pollTimeoutMs": "2000",
    },
    "two_strategies": {"assign": '{"%": [0]}'},
    "a_forbidden_property": {"kafka.auto.offset.reset": "latest"},
    "a_deserializer": {"kafka.value.deserializer": "x"},
    "auto_commit": {"kafka.enable.auto.commit": "true"},
    "no_brokers_named": {"kafka.bootstrap.servers": ""},
    "no_tasks": {"minPartitions": "0"},
    "no_records_a_task": {"maxRecordsPerPartition": "0"},
    "an_unknown_strategy": {"startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "x"},
}


def wrong(options: dict[str, str]) -> Job:
    def read(bench: Bench) -> Any:
        topic = bench.topic(2, 10)
        given = {name: value.replace("%", topic.name) for name, value in options.items()}
        return failing(lambda: bench.read(topic, **given))

    return read


JOBS |= {f"wrong_{name}": wrong(options) for name, options in WRONG.items()}


@job
def wrong_topics(bench: Bench) -> Any:
    # Not an assigned partition that is not there: the connector reads nothing of it and says so to
    # nobody; we refuse it.
    return [
        failing(lambda: bench.read(subscribe="there-is-none")),
        failing(lambda: bench.read()),
    ]


@job
def a_stream_and_its_restarts(bench: Bench) -> Any:
    topic, checkpoint = bench.topic(2, 20), bench.checkpoint()
    runs = []
    for more in (10, 0, 5):
        runs.append(bench.stream(topic, checkpoint=checkpoint, startingOffsets="earliest"))
        fill(topic, 100, more)
    return [*runs, bench.stream(topic, checkpoint=checkpoint)]


@job
def a_stream_from_latest(bench: Bench) -> Any:
    topic, checkpoint = bench.topic(1, 5), bench.checkpoint()
    first = bench.stream(topic, checkpoint=checkpoint)
    fill(topic, 50, 5)
    return [first, bench.stream(topic, checkpoint=checkpoint)]


@job
def a_rate_limit(bench: Bench) -> Any:
    topic = bench.topic(3, 60)
    topic.send((0, None, b"v") for _ in range(60))
    limited = bench.stream(
        topic,
        checkpoint=bench.checkpoint(),
        startingOffsets="earliest",
        maxOffsetsPerTrigger="25",
    )
    return [len(batch) for batch in limited]


@job
def a_stream_by_time(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    return bench.stream(
        topic, checkpoint=bench.checkpoint(), startingTimestamp=str(START_MS + 9500)
    )


@job
def a_stream_by_offsets(bench: Bench) -> Any:
    topic = bench.topic(2, 20)
    at = json_of(topic, p0=-2, p1=7)
    return bench.stream(topic, checkpoint=bench.checkpoint(), startingOffsets=at)


@job
def a_stream_with_headers_and_more_tasks(bench: Bench) -> Any:
    return bench.stream(
        bench.topic(1, 30),
        checkpoint=bench.checkpoint(),
        startingOffsets="earliest",
        includeHeaders="true",
        minPartitions="4",
    )


@job
def new_partitions(bench: Bench) -> Any:
    topic, checkpoint = bench.topic(1, 5), bench.checkpoint()
    first = bench.stream(topic, checkpoint=checkpoint, startingOffsets="earliest")
    topic.add_partitions(3)
    fill(topic, 10, 9)
    return [first, bench.stream(topic, checkpoint=checkpoint)]


@job
def new_topics_of_a_pattern(bench: Bench) -> Any:
    one, checkpoint = bench.topic(1, 5), bench.checkpoint()
    pattern = {"subscribePattern": f"{one.name}(-more)?", "startingOffsets": "earliest"}
    first = bench.stream(checkpoint=checkpoint, **pattern)
    more = f"{one.name}-more"
    create_topic(bench.servers, more)
    producer = Producer({"bootstrap.servers": bench.servers, **QUIET})
    producer.produce(more, b"new", partition=0, timestamp=START_MS)
    producer.flush(30)
    second = bench.stream(checkpoint=checkpoint, **pattern)
    return [first, [[row[1] for row in batch] for batch in second]]


@job
def records_lost_between_runs(bench: Bench) -> Any:
    def lost(fail: str) -> Any:
        topic, checkpoint = bench.topic(1, 10), bench.checkpoint()
        bench.stream(topic, checkpoint=checkpoint, startingOffsets="earliest")
        fill(topic, 10, 10)
        topic.delete_records(0, 15)
        return bench.stream(topic, checkpoint=checkpoint, failOnDataLoss=fail)

    return [failing(lambda: lost("true")), lost("false")]


@job
def a_topic_lost_between_runs(bench: Bench) -> Any:
    kept, gone, checkpoint = bench.topic(1, 5), bench.topic(1, 5), bench.checkpoint()
    bench.stream(kept, gone, checkpoint=checkpoint, startingOffsets="earliest")
    gone.delete()
    fill(kept, 5, 5)
    return failing(lambda: bench.stream(kept, gone, checkpoint=checkpoint))


@job
def a_stream_has_no_end(bench: Bench) -> Any:
    # Not endingTimestamp: the connector was seen to ignore it, and we refuse it.
    topic = bench.topic(1, 3)
    return failing(
        lambda: bench.stream(topic, checkpoint=bench.checkpoint(), endingOffsets="latest")
    )


def written(topic: Topic, count: int) -> list[Any]:
    """Records of a topic as a plain consumer reads them: partition, key, value, headers."""
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "judge", **QUIET})
    consumer.assign([TopicPartition(topic.name, p, 0) for p in range(topic.partitions)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    return sorted(((m.partition(), m.key(), m.value(), m.headers()) for m in messages), key=repr)


def save(bench: Bench, query: str, mode: str = "append", **options: str) -> None:
    writer = bench.spark.sql(query).write.format(bench.format)
    writer.options(**bench.options(**options)).mode(mode).save()


@job
def writing_every_column(bench: Bench) -> Any:
    topic = bench.topic(2)
    query = """SELECT 'k' AS key, CAST('v' AS BINARY) AS value, 1 AS partition,
               array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers
               UNION ALL SELECT NULL, NULL, 0, NULL"""
    save(bench, query, topic=topic.name, includeHeaders="true")
    return written(topic, 2)


@job
def keys_go_where_javas_go(bench: Bench) -> Any:
    topic = bench.topic(5)
    save(bench, "SELECT CAST(id AS STRING) key, 'v' value FROM range(100)", topic=topic.name)
    return written(topic, 100)


@job
def writing_to_the_topic_of_a_row(bench: Bench) -> Any:
    one, other = bench.topic(), bench.topic()
    query = f"SELECT '{one.name}' topic, 'a' value UNION ALL SELECT '{other.name}', 'b'"
    save(bench, query)
    save(bench, query, topic=one.name)
    return [written(one, 3), written(other, 1)]


WRONG_WRITES: Final = {
    "no_value": "SELECT 'k' AS key",
    "a_value_of_another_type": "SELECT 1 AS value",
    "a_key_of_another_type": "SELECT 1.5D AS key, 'v' AS value",
    "a_partition_of_another_type": "SELECT 'v' AS value, 'x' AS partition",
}


def wrong_write(query: str) -> Job:
    return lambda bench: failing(lambda: save(bench, query, topic=bench.topic().name))


JOBS |= {f"writing_{name}": wrong_write(query) for name, query in WRONG_WRITES.items()}


@job
def writing_in_wrong_ways(bench: Bench) -> Any:
    topic = bench.topic()
    none = "SELECT CAST(NULL AS STRING) AS topic, 'v' AS value"
    return [
        failing(lambda: save(bench, "SELECT 'v' AS value")),
        failing(lambda: save(bench, none)),
        failing(lambda: save(bench, "SELECT 'v' AS value", "overwrite", topic=topic.name)),
        failing(
            lambda: save(
                bench, "SELECT 'v' AS value", topic=topic.name, **{"kafka.value.serializer": "x"}
            )
        ),
    ]


@job
def a_stream_from_topic_to_topic(bench: Bench) -> Any:
    source, target = bench.topic(2, 20), bench.topic()
    frame = bench.spark.readStream.format(bench.format).options(
        **bench.options(source, startingOffsets="earliest", maxOffsetsPerTrigger="8")
    )
    query = frame.load().selectExpr("key", "upper(CAST(value AS STRING)) AS value").writeStream
    query = query.format(bench.format).options(**bench.options(topic=target.name))
    query = query.option("checkpointLocation", bench.checkpoint()).trigger(availableNow=True)
    query.start().awaitTermination()
    return written(target, 20)
