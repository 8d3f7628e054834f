"""stream_reader: offsets, limits and plans, as Spark calls for them."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source import stream_reader
from kafkapy.spark.source.offset_reader import offset_reader
from kafkapy.spark.source.offsets import DataLossError, from_json_object
from kafkapy.spark.source.options import parse_options
from kafkapy.spark.source.stream_reader import KafkapyStreamReader
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.stepped_time import SteppedTime
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]
ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def fresh_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between two looks at the latest offsets."""
    monkeypatch.setattr(stream_reader, "IDLE_WAIT_S", 0.0)


def reader(topic: Topic, **options: str) -> KafkapyStreamReader:
    given = {"startingOffsets": "earliest", **topic.options, **options}
    return KafkapyStreamReader(parse_options(given, streaming=True))


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """As Spark keeps offsets between calls."""
    copy: dict[str, Any] = json.loads(json.dumps(offset))
    return copy


def read(stream: KafkapyStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    batches = [batch for part in stream.partitions(start, end) for batch in stream.read(part)]
    return sorted(
        (value.decode() for batch in batches for value in batch.column("value").to_pylist()),
        key=lambda text: int(text.split()[1]),
    )


def test_batches_follow_each_other_without_a_gap(make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    stream = reader(topic)
    start = stream.initialOffset()
    assert start[topic.name] == {"0": 0, "1": 0, "2": 0}
    for _ in range(3):
        written = topic.write(10)
        end = stream.latestOffset(through_json(start), ALL)
        assert read(stream, through_json(start), through_json(end)) == written
        start = end


def test_batch_0_is_complete_after_a_restart(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(5)
    first = reader(topic, startingOffsets="latest")
    start = first.initialOffset()
    lost = topic.write(10)
    end = through_json(first.latestOffset(through_json(start), ALL))
    topic.write(7)

    again = reader(topic, startingOffsets="latest")  # the query failed before batch 0 was committed
    later = through_json(again.initialOffset())
    assert from_json_object(later) != from_json_object(start)
    assert read(again, later, end) == lost


def test_an_empty_batch_0_stays_empty_after_a_restart(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(5)
    first = reader(topic, startingOffsets="latest")
    end = through_json(first.latestOffset(through_json(first.initialOffset()), ALL))
    written = topic.write(4)
    again = reader(topic, startingOffsets="latest")
    assert again.partitions(through_json(again.initialOffset()), end) == []
    assert read(again, end, again.latestOffset(end, ALL)) == written


@pytest.mark.parametrize(
    ("option", "first_read"), [("startingOffsets", 1), ("startingOffsetsByTimestamp", 0)]
)
def test_batch_0_is_read_after_a_restart_when_partitions_were_added(
    make_topic: MakeTopic, option: str, first_read: int
) -> None:
    """As in Spark's source, which keeps the first start in the checkpoint: the option must name all
    partitions when the query starts, and is not used again.
    """
    topic = make_topic()
    written = topic.write(4)
    named = {option: json.dumps({topic.name: {"0": 1}})}
    first = reader(topic, **named)
    end = through_json(first.latestOffset(through_json(first.initialOffset()), ALL))
    topic.add_partitions(2)

    again = reader(topic, **named)  # the query failed before batch 0 was committed
    begin = through_json(again.initialOffset())
    assert read(again, begin, end) == written[first_read:]
    added = topic.write(4)
    assert read(again, end, again.latestOffset(end, ALL)) == added


def test_batch_0_is_read_after_a_restart_when_no_record_is_new_enough_any_more(
    make_topic: MakeTopic,
) -> None:
    topic = make_topic()
    topic.write(4)
    options = {"startingTimestamp": "1", "failOnDataLoss": "false"}
    first = reader(topic, **options)
    end = through_json(first.latestOffset(through_json(first.initialOffset()), ALL))
    topic.delete_records(0, 4)

    again = reader(topic, **options)
    assert read(again, through_json(again.initialOffset()), end) == []
    written = topic.write(2)
    assert read(again, end, again.latestOffset(end, ALL)) == written


def test_batch_0_is_read_after_a_restart_when_a_topic_was_deleted(make_topic: MakeTopic) -> None:
    """`failOnDataLoss=false` continues without the topic, as after the commit of batch 0."""
    kept, gone = make_topic(), make_topic()
    written = kept.write(3)
    gone.write(3)
    options = {"subscribe": f"{kept.name},{gone.name}", "failOnDataLoss": "false"}
    first = reader(kept, **options)
    end = through_json(first.latestOffset(through_json(first.initialOffset()), ALL))
    gone.delete()

    again = reader(kept, **options)
    assert read(again, through_json(again.initialOffset()), end) == written
    written = kept.write(2)
    assert read(again, end, again.latestOffset(end, ALL)) == written


def test_a_new_query_of_a_topic_that_does_not_exist_is_refused(make_topic: MakeTopic) -> None:
    stream = reader(make_topic(), subscribe="nowhere", failOnDataLoss="false")
    with pytest.raises(ApiError, match="does not have nowhere"):
        stream.latestOffset(through_json(stream.initialOffset()), ALL)


def test_a_new_query_that_does_not_name_all_partitions_is_refused(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    stream = reader(topic, startingOffsets=json.dumps({topic.name: {"0": 0}}))
    with pytest.raises(ConfigError, match="must name all partitions"):
        stream.latestOffset(through_json(stream.initialOffset()), ALL)


def test_a_checkpoint_without_the_start_of_batch_0_is_not_read_from_another_start(
    make_topic: MakeTopic,
) -> None:
    topic = make_topic(2)
    topic.write(4)
    stream = reader(topic, startingOffsets=json.dumps({topic.name: {"0": 1}}))
    begin = through_json(stream.initialOffset())
    with pytest.raises(ConfigError, match="must name all partitions"):
        stream.partitions(begin, {topic.name: {"0": 2}})


def test_nothing_new_is_the_start_itself(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(3)
    stream = reader(topic)
    end = through_json(stream.latestOffset(stream.initialOffset(), ALL))
    assert stream.latestOffset(end, ALL) is end
    assert stream.partitions(end, end) == []


def test_nothing_is_done_in_stop() -> None:
    assert KafkapyStreamReader.stop is DataSourceStreamReader.stop


def test_finished_offsets_are_committed_without_waiting_for_commit(
    make_topic: MakeTopic,
) -> None:
    topic = make_topic(2)
    topic.write(20)
    group = f"lag-{topic.name}"
    stream = reader(topic, commitGroupId=group)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert committed(topic, group) == {0: 0, 1: 0}
    assert stream.latestOffset(end, ALL) is end  # the batch is done: no commit() will say so
    assert committed(topic, group) == {0: 10, 1: 10}
    topic.write(4)
    stream.commit(through_json(stream.latestOffset(end, ALL)))
    assert committed(topic, group) == {0: 12, 1: 12}


def test_the_group_of_a_query_shows_the_lag_of_a_topic_that_was_created_again(
    make_topic: MakeTopic,
) -> None:
    """The brokers have deleted the group's offsets with the topic."""
    topic = make_topic()
    topic.write(20)
    group = f"again-{topic.name}"
    stream = reader(topic, commitGroupId=group, failOnDataLoss="false")
    end = stream.latestOffset(stream.initialOffset(), ALL)
    stream.latestOffset(end, ALL)
    assert committed(topic, group) == {0: 20}
    topic.delete()
    end = stream.latestOffset(end, ALL)
    wait_until(lambda: committed(topic, group) == {}, "the group's offsets are deleted")
    create_topic(topic.servers, topic.name, 1)
    topic.write(4)
    stream.latestOffset(stream.latestOffset(end, ALL), ALL)
    assert committed(topic, group) == {0: 4}


def test_a_group_that_cannot_be_committed_is_a_warning(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    topic.write(2)
    group = f"members-{topic.name}"
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": group, **QUIET})
    consumer.subscribe([topic.name])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "an assignment")
    stream = reader(topic, commitGroupId=group)
    with caplog.at_level(logging.WARNING):
        end = stream.latestOffset(stream.initialOffset(), ALL)
    consumer.close()
    assert f"group {group} were not committed" in caplog.text
    assert read(stream, stream.initialOffset(), end) == ["value 0", "value 1"]


def test_a_coordinator_that_is_away_holds_no_batch_up(
    make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observers' offsets are not worth the minute that a client waits for a coordinator."""
    asked: list[int] = []

    def commit(cluster: Cluster, *_: Any) -> None:
        asked.extend((cluster.api_timeout_ms, cluster.request_timeout_ms))

    monkeypatch.setattr(stream_reader, "commit_offsets", commit)
    topic = make_topic()
    stream = reader(topic, commitGroupId="observed")
    stream.latestOffset(stream.initialOffset(), ALL)
    assert asked == [stream_reader.COMMIT_LIMIT_MS] * 2


def committed(topic: Topic, group: str) -> dict[int, int]:
    """Offsets that the group has committed, as a monitoring tool reads them."""
    client = AdminClient({"bootstrap.servers": topic.servers, **QUIET})
    request = ConsumerGroupTopicPartitions(group)
    found = client.list_consumer_group_offsets([request])[group].result(timeout=30)
    return {place.partition: place.offset for place in found.topic_partitions}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    """The time of the reader, which waits 0.1 s between two requests of an idle query."""
    stepped = SteppedTime()
    monkeypatch.setattr(stream_reader, "time", stepped)
    monkeypatch.setattr(stream_reader, "IDLE_WAIT_S", 0.1)
    return stepped


def test_an_idle_query_sees_the_records_that_were_written_before_a_trigger(
    make_topic: MakeTopic, clock: SteppedTime
) -> None:
    """`processAllAvailable` returns after a trigger without new records."""
    topic = make_topic()
    topic.write(3)
    stream = reader(topic)
    begin_s = clock.monotonic()
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert all(stream.latestOffset(end, ALL) is end for _ in range(10))
    assert clock.monotonic() - begin_s == pytest.approx(1.0)  # ten requests a second
    topic.write(2)
    assert stream.latestOffset(end, ALL)[topic.name] == {"0": 5}
    assert stream.reportLatestOffset() == {topic.name: {"0": 5}}


def test_a_query_with_a_backlog_does_not_wait(make_topic: MakeTopic, clock: SteppedTime) -> None:
    topic = make_topic()
    topic.write(3)
    stream = reader(topic)
    begin_s = clock.monotonic()
    end = stream.initialOffset()
    for _ in range(3):
        end = stream.latestOffset(end, ReadMaxRows(1))
    assert (end[topic.name], clock.monotonic()) == ({"0": 3}, begin_s)


def test_nothing_is_connected_by_making_or_pickling_a_reader(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(2)
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    pickle.dumps(reader(topic, **nowhere))
    used = reader(topic)
    assert used.reportLatestOffset() is None
    end = used.latestOffset(used.initialOffset(), ALL)
    copy = pickle.loads(pickle.dumps(used))
    assert read(copy, copy.initialOffset(), end) == ["value 0", "value 1"]


def test_the_limits_of_the_options() -> None:
    def limit(**options: str) -> Any:
        given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", **options}
        return KafkapyStreamReader(parse_options(given, streaming=True)).getDefaultReadLimit()

    assert limit() == ReadAllAvailable()
    assert limit(maxOffsetsPerTrigger="7") == ReadMaxRows(7)
    assert limit(minOffsetsPerTrigger="5") == ReadMinRows(5)
    assert limit(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="7") == ReadMaxRows(7)


def test_a_trigger_reads_about_its_limit(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    written = topic.write(50)
    stream = reader(topic)
    start, seen, sizes = stream.initialOffset(), [], []
    while (end := stream.latestOffset(start, ReadMaxRows(20))) is not start:
        values = read(stream, start, end)
        seen += values
        sizes.append(len(values))
        start = end
    assert sizes == [20, 20, 10]
    assert sorted(seen) == sorted(written)
    assert stream.latestOffset(stream.initialOffset(), ALL)[topic.name] == {"0": 25, "1": 25}


def test_available_now_reads_no_records_after_its_first_trigger(make_topic: MakeTopic) -> None:
    topic = make_topic()
    written = topic.write(5)
    stream = reader(topic)
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    topic.write(5)
    assert read(stream, start, end) == written
    assert stream.latestOffset(end, ALL) is end


def test_available_now_has_no_data_loss_when_records_arrive_while_it_starts(
    make_topic: MakeTopic,
) -> None:
    """Spark prepares the trigger before it resolves the start, which is `latest` by default."""
    topic = make_topic()
    topic.write(5)
    stream = reader(topic, startingOffsets="latest")
    stream.prepareForTriggerAvailableNow()
    topic.write(5)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    written = topic.write(5)
    assert read(stream, start, end) == []

    next_run = reader(topic, startingOffsets="latest")
    next_run.prepareForTriggerAvailableNow()
    assert read(next_run, end, next_run.latestOffset(end, ALL)) == written


def test_available_now_names_a_loss_before_it_is_in_the_checkpoint(make_topic: MakeTopic) -> None:
    """The end of the query was set before the topic was deleted and created again."""
    topic = make_topic()
    topic.write(9)
    stream, lax = reader(topic), reader(topic, failOnDataLoss="false")
    ends = []
    for each in (stream, lax):
        each.prepareForTriggerAvailableNow()
        ends.append(each.latestOffset(each.initialOffset(), ReadMaxRows(3)))
    assert ends[0][topic.name] == {"0": 3}
    topic.delete()
    with pytest.raises(ApiError, match=f"does not have {topic.name}"):
        stream.latestOffset(ends[0], ReadMaxRows(3))
    create_topic(topic.servers, topic.name, 1)
    topic.write(4)
    with pytest.raises(DataLossError, match=f"{topic.name}-0 ends at offset 4 now, before .* 6"):
        stream.latestOffset(ends[0], ReadMaxRows(3))
    assert lax.latestOffset(ends[1], ReadMaxRows(3))[topic.name] == {"0": 6}
    assert stream.reportLatestOffset() == {topic.name: {"0": 9}}


def test_a_trigger_waits_for_enough_records_but_not_for_ever(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(1)
    patient = reader(topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    limit = patient.getDefaultReadLimit()
    first = patient.latestOffset(patient.initialOffset(), limit)
    assert first[topic.name] == {"0": 1}  # the first trigger never waits
    topic.write(5)
    assert patient.latestOffset(first, limit) is first
    topic.write(5)
    assert patient.latestOffset(first, limit)[topic.name] == {"0": 11}

    hasty = reader(topic, minOffsetsPerTrigger="10", maxTriggerDelay="0ms")
    first = hasty.latestOffset(hasty.initialOffset(), limit)
    topic.write(1)
    assert hasty.latestOffset(first, limit)[topic.name] == {"0": 12}


def test_the_first_records_after_an_idle_start_wait_too(
    make_topic: MakeTopic, clock: SteppedTime
) -> None:
    """As in Spark's own source, the delay begins at the first trigger, also an empty one."""
    topic = make_topic()
    stream = reader(topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    limit = stream.getDefaultReadLimit()
    start = stream.initialOffset()
    assert stream.latestOffset(start, limit) is start
    topic.write(1)
    assert stream.latestOffset(start, limit) is start
    clock.sleep(3600)
    end = stream.latestOffset(start, limit)
    assert end[topic.name] == {"0": 1}
    clock.sleep(3600)
    assert stream.latestOffset(end, limit) is end
    topic.write(1)
    assert stream.latestOffset(end, limit) is end


def test_new_partitions_are_read_from_their_beginning(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(2)
    stream = reader(topic)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    topic.add_partitions(2)
    written = topic.write(6)
    for limit in (ALL, ReadMaxRows(100)):
        end = stream.latestOffset(start, limit)
        assert read(stream, start, end) == written


def test_deleted_records_are_a_loss_that_is_named(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(10)
    strict, lax = reader(topic), reader(topic, failOnDataLoss="false")
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    topic.delete_records(0, 4)
    with pytest.raises(DataLossError, match=f"{topic.name}-0 has offsets 4 to 10 now; 0 to 10"):
        strict.partitions(start, end)
    assert read(lax, start, end) == [f"value {i}" for i in range(4, 10)]


def test_a_deleted_topic_is_a_loss_that_is_named(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    kept, gone = make_topic(), make_topic()
    kept.write(3)
    gone.write(3)
    both = {"subscribe": f"{kept.name},{gone.name}"}
    strict, lax = reader(kept, **both), reader(kept, failOnDataLoss="false", **both)
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    gone.delete()
    with pytest.raises(DataLossError, match=f"{gone.name}-0 is gone; offsets 0 to 3"):
        strict.partitions(start, end)
    assert "The query goes on" not in caplog.text
    assert read(lax, start, end) == [f"value {i}" for i in range(3)]
    assert lax.latestOffset(end, ALL)[kept.name] == {"0": 3}
    assert gone.name not in lax.latestOffset(end, ALL)


def test_a_topic_that_is_gone_is_named_before_it_is_gone_from_the_checkpoint(
    make_topic: MakeTopic,
) -> None:
    """An ACL may hide a topic for a while. A restarted query repeats a batch that Spark has
    planned, and would fail for ever. With `failOnDataLoss=false`, it would read the topic again.
    """
    kept, gone = make_topic(), make_topic()
    kept.write(3)
    gone.write(3)
    options = {"kafka.bootstrap.servers": kept.servers, "startingOffsets": "earliest"}
    options["subscribePattern"] = f"{kept.name}|{gone.name}"
    stream = KafkapyStreamReader(parse_options(options, streaming=True))
    end = stream.latestOffset(stream.initialOffset(), ALL)
    gone.delete()
    kept.write(1)
    with pytest.raises(DataLossError, match=f"{gone.name}-0 is gone; offsets from 3 on"):
        stream.latestOffset(end, ALL)


def test_an_open_transaction_does_not_spoil_the_checkpoint_of_a_query_that_reads_committed_now(
    make_topic: MakeTopic,
) -> None:
    topic = make_topic()
    producer = Producer(
        {"bootstrap.servers": topic.servers, "transactional.id": topic.name, **QUIET}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic.name, b"value 0")
    producer.flush()
    stream = reader(topic)
    end = stream.latestOffset(stream.initialOffset(), ALL)

    restarted = reader(topic, **{"kafka.isolation.level": "read_committed"})
    with pytest.raises(DataLossError, match="-0 ends at offset 0 now, before offset 1"):
        restarted.latestOffset(end, ALL)
    producer.commit_transaction()
    written = topic.write(2)
    committed = {**topic.options, "kafka.isolation.level": "read_committed"}
    offsets = offset_reader(parse_options(committed, streaming=False))
    place = TopicPartition(topic.name, 0)
    wait_until(lambda: offsets.latest([place])[place] == 4, "the end of the transaction")
    assert read(restarted, end, restarted.latestOffset(end, ALL)) == written


def test_a_deleted_topic_does_not_fill_the_log_of_an_idle_query(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    kept, gone = make_topic(), make_topic()
    both = {"subscribe": f"{kept.name},{gone.name}", "failOnDataLoss": "false"}
    stream = reader(kept, **both)
    start = stream.initialOffset()
    gone.delete()
    for _ in range(3):
        stream.latestOffset(start, ALL)
    assert caplog.text.count(f"does not have {gone.name}. The query goes on") == 1


@pytest.mark.parametrize("option", [{}, {"minPartitions": "4"}, {"maxRecordsPerPartition": "2"}])
def test_tasks_keep_their_numbers_when_offsets_are_lost(
    make_topic: MakeTopic, option: dict[str, str]
) -> None:
    """With `exactlyOnce` a task whose number is committed is not written again."""
    topic = make_topic(2)
    topic.write(8)
    stream = reader(topic, failOnDataLoss="false", **option)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    before = [part.range for part in stream.partitions(start, end)]
    topic.delete_records(0, 4)  # all of partition 0, after its tasks are committed
    after = [part.range for part in stream.partitions(start, end)]
    assert [each.topic_partition for each in after] == [each.topic_partition for each in before]
    assert [each for each in after if each.size] == [r for r in before if r.topic_partition[1] == 1]
    assert read(stream, start, end) == [f"value {i}" for i in range(1, 8, 2)]


@pytest.mark.parametrize("option", [{}, {"minPartitions": "6"}, {"maxRecordsPerPartition": "2"}])
def test_tasks_keep_their_numbers_when_a_new_partition_loses_its_offsets(
    make_topic: MakeTopic, option: dict[str, str]
) -> None:
    """Else `exactlyOnce` does not write rows whose task has the number of a committed one."""
    topic = make_topic()
    stream = reader(topic, failOnDataLoss="false", **option)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    topic.add_partitions(3)
    topic.write(12)
    end = through_json(stream.latestOffset(start, ALL))
    before = [part.range for part in stream.partitions(start, end)]
    topic.delete_records(1, 4)  # all of a new partition, after its tasks are committed
    after = [part.range for part in stream.partitions(start, end)]
    assert [each.topic_partition for each in after] == [each.topic_partition for each in before]
    assert [each for each in after if each.size] == [r for r in before if r.topic_partition[1] != 1]


def test_a_new_partition_that_has_lost_records_is_a_loss_at_once(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    strict, lax = reader(topic), reader(topic, failOnDataLoss="false")
    start = strict.initialOffset()
    topic.add_partitions(2)
    topic.write(6)
    topic.delete_records(1, 2)
    lost = f"new partition {topic.name}-1 starts at offset 2"
    with pytest.raises(DataLossError, match=lost):
        strict.latestOffset(start, ALL)
    end = lax.latestOffset(start, ALL)
    assert lost in caplog.text
    assert read(lax, start, end) == ["value 0", "value 2", "value 4", "value 5"]
