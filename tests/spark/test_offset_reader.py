"""offset_reader: partitions and offsets as the options ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import ClusterMetadata, TopicMetadata
from kafkapy.client.offsets import OffsetResult
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offset_reader import OffsetReader, offset_reader
from kafkapy.spark.source.options import parse_options
from tests.harness.processes.topics import QUIET
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]


def reader(topic: Topic, **options: str) -> OffsetReader:
    given = {"kafka.bootstrap.servers": topic.servers, **options}
    if not {"assign", "subscribePattern", "subscribe"} & given.keys():
        given["subscribe"] = topic.name
    return offset_reader(parse_options(given, streaming=None))


def test_partitions_by_name_assignment_and_pattern(make_topic: MakeTopic) -> None:
    one, two = make_topic(2), make_topic(1)
    tp = [TopicPartition(one.name, 0), TopicPartition(one.name, 1), TopicPartition(two.name, 0)]
    assert reader(one, subscribe=f"{two.name},{one.name}").partitions() == tp
    assert reader(one, assign=f'{{"{one.name}":[1]}}').partitions() == [tp[1]]
    pattern = f"({one.name}|{two.name})"
    assert reader(one, subscribePattern=pattern).partitions() == tp
    assert reader(one, subscribePattern=one.name[:-1]).partitions() == []  # the whole name counts


def test_what_does_not_exist_is_named(make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    with pytest.raises(ApiError, match=r"does not have nowhere;") as caught:
        reader(topic, subscribe=f"{topic.name},nowhere").partitions()
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ApiError, match=f"does not have {topic.name}-5;"):
        reader(topic, assign=f'{{"{topic.name}":[0,5]}}').partitions()
    some = reader(topic, subscribe=f"{topic.name},nowhere").partitions(must_exist=False)
    assert some == [TopicPartition(topic.name, 0)]


def test_no_brokers(make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    topic.servers = "127.0.0.1:1"
    with pytest.raises(ApiError):
        reader(topic).partitions()


def test_symbols_become_numbers(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.write(20)
    topic.delete_records(0, 4)
    a, b = TopicPartition(topic.name, 0), TopicPartition(topic.name, 1)
    everything = reader(topic)
    assert everything.starting([a, b]) == {a: 4, b: 0}
    assert everything.ending([a, b]) == {a: 10, b: 10}
    assert everything.earliest([a, b]) == {a: 4, b: 0}
    some = reader(topic, startingOffsets=f'{{"{topic.name}":{{"0":-2,"1":3}}}}')
    assert some.starting([a, b]) == {a: 4, b: 3}


def test_every_partition_must_be_named(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    partial = reader(topic, startingOffsets=f'{{"{topic.name}":{{"0":3}}}}')
    with pytest.raises(ConfigError, match=r"starting offsets must name all partitions.*-1"):
        partial.starting(partial.partitions())


def test_offsets_by_time(make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    tp = TopicPartition(topic.name, 0)
    producer = Producer({"bootstrap.servers": topic.servers, **QUIET})
    for i in range(5):
        producer.produce(topic.name, b"v", partition=0, timestamp=1000 + i)
        producer.flush(30)
    assert reader(topic, startingTimestamp="1003").starting([tp]) == {tp: 3}
    by_partition = {"startingOffsetsByTimestamp": f'{{"{topic.name}":{{"0":1001}}}}'}
    assert reader(topic, **by_partition).starting([tp]) == {tp: 1}
    assert reader(topic, endingTimestamp="1003").ending([tp]) == {tp: 3}
    assert reader(topic, endingTimestamp="9999").ending([tp]) == {tp: 5}
    with pytest.raises(ConfigError, match=f"No offset matched .*{tp} and timestamp 9999"):
        reader(topic, startingTimestamp="9999").starting([tp])
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert reader(topic, startingTimestamp="9999", **strategy).starting([tp]) == {tp: 5}


class ScriptedCluster:
    """Answers ListOffsets with what it was given, one answer a call."""

    def __init__(self, *answers: int | ErrorCode | OffsetResult) -> None:
        self._answers = list(answers)
        self.pauses = 0

    def list_offsets(
        self, timestamps: dict[TopicPartition, int], isolation_level: int
    ) -> dict[TopicPartition, OffsetResult]:
        answer = self._answers.pop(0)
        if isinstance(answer, OffsetResult):
            return dict.fromkeys(timestamps, answer)
        if isinstance(answer, ErrorCode):
            return dict.fromkeys(timestamps, OffsetResult(error=answer))
        return dict.fromkeys(timestamps, OffsetResult(answer))

    def pause(self) -> None:
        self.pauses += 1


TP = TopicPartition("t", 0)


def asked(cluster: ScriptedCluster) -> OffsetReader:
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "fetchOffset.numRetries": "2"}
    return OffsetReader(cast(Cluster, cluster), parse_options(given, streaming=True))


class Forbidden:
    """A cluster that tells nothing about a topic."""

    def __init__(self, error: ErrorCode) -> None:
        self._topic = TopicMetadata("t", error=error)

    def metadata(self, names: list[str], refresh: bool) -> ClusterMetadata:
        return ClusterMetadata(None, 1, {}, {"t": self._topic})

    def pause(self) -> None:
        pass


@pytest.mark.parametrize("must_exist", [True, False])
def test_a_topic_that_may_not_be_read_is_not_gone(must_exist: bool) -> None:
    cluster = Forbidden(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="Topic t: TOPIC_AUTHORIZATION_FAILED") as caught:
        asked(cast(Any, cluster)).partitions(must_exist=must_exist)
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_may_pass_is_asked_again() -> None:
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster = ScriptedCluster(moved, moved, 7)
    assert asked(cluster).latest([TP]) == {TP: 7}
    assert cluster.pauses == 2
    with pytest.raises(ApiError, match="t-0: NOT_LEADER_OR_FOLLOWER"):
        asked(ScriptedCluster(moved, moved, moved)).latest([TP])


def test_what_is_refused_is_not_asked_again() -> None:
    cluster = ScriptedCluster(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="t-0: TOPIC_AUTHORIZATION_FAILED"):
        asked(cluster).latest([TP])
    assert cluster.pauses == 0


def test_the_broker_whose_offsets_are_missing_is_named() -> None:
    lost = OffsetResult(error=ErrorCode.NETWORK_EXCEPTION, message="Connection to b:2 refused")
    with pytest.raises(ApiError, match="Offsets of t-0: Connection to b:2 refused"):
        asked(ScriptedCluster(lost, lost, lost)).latest([TP])


def test_an_end_before_what_was_read_is_asked_again() -> None:
    assert asked(ScriptedCluster(5, 9)).latest([TP], {TP: 9}) == {TP: 9}
    assert asked(ScriptedCluster(5, 5, 5)).latest([TP], {TP: 9}) == {TP: 5}
