"""batch_reader: what is planned on the driver, before any task."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
)

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.batch_reader import (
    PUSHDOWN_WORKER,
    FilteringBatchReader,
    KafkapyBatchReader,
    batch_reader,
)
from kafkapy.spark.source.offsets import DataLossError, OffsetRange
from kafkapy.spark.source.options import parse_options
from tests.harness.processes.topics import QUIET
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]


def reader(topic: Topic, **options: str) -> KafkapyBatchReader:
    return KafkapyBatchReader(parse_options({**topic.options, **options}, streaming=False))


def planned(topic: Topic, **options: str) -> list[OffsetRange]:
    return [partition.range for partition in reader(topic, **options).partitions()]


def test_one_range_for_each_partition_with_records(make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    topic.send([(0, None, b"a"), (2, None, b"b"), (2, None, b"c")])
    a, c = TopicPartition(topic.name, 0), TopicPartition(topic.name, 2)
    assert planned(topic) == [OffsetRange(a, 0, 1), OffsetRange(c, 0, 2)]


def test_ranges_are_cut_for_more_tasks(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(10)
    assert [part.size for part in planned(topic, minPartitions="3")] == [3, 3, 4]
    assert [part.size for part in planned(topic, maxRecordsPerPartition="4")] == [3, 3, 4]


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_a_limit_of_triggers_does_not_silently_read_a_whole_topic(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    topic = make_topic()
    topic.write(3)
    assert [part.size for part in planned(topic, **{name: "1"})] == [3]
    (warning,) = caplog.messages
    assert (
        warning == "maxOffsetsPerTrigger and minOffsetsPerTrigger have no effect in batch queries"
    )


def test_an_end_beyond_the_log_is_named(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(3)
    beyond = {"endingOffsets": f'{{"{topic.name}":{{"0":9}}}}'}
    with pytest.raises(DataLossError, match=f"{topic.name}-0 has offsets 0 to 3 now"):
        planned(topic, **beyond)
    assert [part.size for part in planned(topic, failOnDataLoss="false", **beyond)] == [3]


def test_a_start_before_the_log_is_named(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(9)
    topic.delete_records(0, 4)
    before = {"startingOffsets": f'{{"{topic.name}":{{"0":1}}}}'}
    with pytest.raises(DataLossError, match=f"{topic.name}-0 has offsets 4 to 9 now; 1 to 9"):
        planned(topic, **before)
    assert [part.start for part in planned(topic, failOnDataLoss="false", **before)] == [4]


def ended_before_its_log(make_topic: MakeTopic) -> tuple[Topic, dict[str, str]]:
    """A topic with the offsets 4 to 9, and options for a range that retention has deleted."""
    topic = make_topic()
    topic.write(9)
    topic.delete_records(0, 4)
    return topic, {"endingOffsets": f'{{"{topic.name}":{{"0":2}}}}'}


def test_a_range_must_not_start_after_its_end(make_topic: MakeTopic) -> None:
    """As in Spark's Kafka source, also if data loss is allowed: the query asks for nothing."""
    topic = make_topic()
    topic.write(9)
    starting = {"startingOffsets": f'{{"{topic.name}":{{"0":6}}}}', "endingTimestamp": "1"}
    for allowed in ("true", "false"):
        with pytest.raises(ConfigError, match="would start at offset 6, after its end 0"):
            planned(topic, failOnDataLoss=allowed, **starting)
    same = {"startingOffsets": f'{{"{topic.name}":{{"0":0}}}}', "endingTimestamp": "1"}
    assert planned(topic, **same) == []


def test_an_end_that_retention_has_passed_is_a_loss(make_topic: MakeTopic) -> None:
    topic, end = ended_before_its_log(make_topic)
    with pytest.raises(
        DataLossError, match=f"{topic.name}-0 starts at offset 4 now; offsets up to 2"
    ):
        planned(topic, **end)
    assert planned(topic, failOnDataLoss="false", **end) == []


def test_a_start_beyond_the_log_is_a_loss(make_topic: MakeTopic) -> None:
    """The topic was deleted and created again."""
    topic = make_topic()
    topic.write(9)
    beyond = {"startingOffsets": f'{{"{topic.name}":{{"0":12}}}}', "endingTimestamp": "1"}
    with pytest.raises(DataLossError, match=f"{topic.name}-0 ends at offset 0 now, before .* 12"):
        planned(topic, **beyond)
    assert planned(topic, failOnDataLoss="false", **beyond) == []


def test_the_partition_spark_makes_up_for_an_empty_plan_is_empty(make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert planned(topic) == []
    assert list(reader(topic).read(InputPartition(None))) == []


def test_pushfilters_is_there_only_where_spark_will_call_it(
    make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse_options(make_topic().options, streaming=False)
    monkeypatch.delitem(sys.modules, PUSHDOWN_WORKER, raising=False)
    assert type(batch_reader(options)).pushFilters is DataSourceReader.pushFilters
    monkeypatch.setitem(sys.modules, PUSHDOWN_WORKER, sys)
    assert isinstance(batch_reader(options), FilteringBatchReader)


def pushed(topic: Topic, *filters: Filter, **options: str) -> list[OffsetRange]:
    given = parse_options({**topic.options, **options}, streaming=False)
    filtering = FilteringBatchReader(given)
    assert list(filtering.pushFilters(list(filters))) == []
    return [partition.range for partition in filtering.partitions()]


def test_filters_narrow_the_plan(make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    topic.write(30)
    one = TopicPartition(topic.name, 1)
    late = GreaterThanOrEqual(("offset",), 4)
    assert pushed(topic, EqualTo(("partition",), 1), late) == [OffsetRange(one, 4, 10)]
    assert pushed(topic, EqualTo(("partition",), 7)) == []
    assert pushed(topic, EqualTo(("topic",), "another")) == []
    assert pushed(topic, GreaterThanOrEqual(("offset",), 99)) == []


def test_an_empty_partition_is_no_loss_whatever_the_filters(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.send([(1, None, b"a"), (1, None, b"b")])
    (part,) = pushed(topic, GreaterThanOrEqual(("offset",), 1))
    assert part == OffsetRange(TopicPartition(topic.name, 1), 1, 2)
    topic.delete_records(0, 0)
    topic.delete_records(1, 2)
    assert pushed(topic, LessThan(("offset",), 1)) == []


def test_an_end_that_retention_has_passed_is_no_loss_outside_of_the_filters(
    make_topic: MakeTopic,
) -> None:
    topic, end = ended_before_its_log(make_topic)
    assert pushed(topic, GreaterThanOrEqual(("offset",), 20), **end) == []
    assert pushed(topic, GreaterThanOrEqual(("offset",), 5), **end) == []
    with pytest.raises(DataLossError, match="starts at offset 4 now; offsets up to 2"):
        pushed(topic, GreaterThanOrEqual(("offset",), 1), **end)


def test_a_first_timestamp_narrows_the_plan(make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": topic.servers, **QUIET})
    for ms in (1000, 3000, 2000):  # a late one: nothing after it may be cut
        producer.produce(topic.name, b"v", timestamp=ms)
        producer.flush(30)
    moment = datetime.fromtimestamp(1.5, UTC)
    (part,) = pushed(topic, GreaterThanOrEqual(("timestamp",), moment))
    assert (part.start, part.end) == (1, 3)
    assert pushed(topic, GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(9, UTC))) == []


def test_a_loss_outside_of_the_filters_is_no_loss(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(10)
    topic.delete_records(0, 4)
    old = {"startingOffsets": f'{{"{topic.name}":{{"0":0}}}}'}
    (part,) = pushed(topic, GreaterThanOrEqual(("offset",), 6), **old)
    assert (part.start, part.end) == (6, 10)
    with pytest.raises(DataLossError):
        pushed(topic, GreaterThanOrEqual(("offset",), 2), **old)


def test_a_reader_is_picklable_before_and_after_it_asked(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(4)
    used = reader(topic)
    used.partitions()
    for copy in (pickle.loads(pickle.dumps(reader(topic))), pickle.loads(pickle.dumps(used))):
        rows = [batch.num_rows for part in copy.partitions() for batch in copy.read(part)]
        assert rows == [4]
