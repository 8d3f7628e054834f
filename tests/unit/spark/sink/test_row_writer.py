"""row_writer: which partition a row goes to, when a batch is full, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from kafkapy.client.batch_producer import BatchProducer, DeliveryError
from kafkapy.client.cluster import Cluster
from kafkapy.client.producer_settings import producer_settings
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.spark.sink.row_writer import RowWriter
from tests.harness.scripted.scripted_leaders import ScriptedLeaders


def written(
    batches: list[Any],
    topics: dict[str, int],
    topic: str | None = "t",
    leaders: Iterable[int] = (1,),
    /,
    **properties: str,
) -> ScriptedLeaders:
    """Write the batches; return the fake brokers with their logs."""
    given = {"max.block.ms": "0", "retry.backoff.ms": "0"} | properties
    brokers = ScriptedLeaders(topics, leaders)
    cluster = Cluster("b:9001", given, connector=brokers.scripted.connect)
    settings = producer_settings(given)
    writer = RowWriter(BatchProducer(cluster, settings), settings, topic)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return brokers


def batch_of(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def values(brokers: ScriptedLeaders, partition: int, topic: str = "t") -> list[bytes | None]:
    return [row.value for row in brokers.log[TopicPartition(topic, partition)]]


def test_keys_go_where_javas_producer_puts_them_and_stay_in_order() -> None:
    keys = ["alice", "bob", "carol"] * 5  # murmur2, modulo 4: 1, 2, 2
    texts = [f"{key} {i}" for i, key in enumerate(keys)]
    split_in_two = [batch_of(key=keys[a:b], value=texts[a:b]) for a, b in ((0, 8), (8, 15))]
    brokers = written(split_in_two, {"t": 4})
    encoded = [text.encode() for text in texts]
    assert values(brokers, 1) == encoded[::3]
    assert values(brokers, 2) == [each for i, each in enumerate(encoded) if i % 3]


def test_a_partition_that_is_named_wins_over_the_key() -> None:
    batch = batch_of(
        key=pa.array(["alice", "alice", None]),
        value=["named", "by key", "anywhere"],
        partition=pa.array([3, None, None], pa.int32()),
    )
    brokers = written([batch], {"t": 4})
    assert b"named" in values(brokers, 3)  # where the one without a key may be as well
    assert b"by key" in values(brokers, 1)
    assert sorted(brokers.values(), key=str) == [b"anywhere", b"by key", b"named"]


def test_an_empty_key_is_a_key_and_can_be_ignored() -> None:
    batch = batch_of(key=pa.array(["", None]), value=["e", None])
    brokers = written([batch], {"t": 1000})
    assert values(brokers, 275646681 % 1000)[0] == b"e"
    keyed = batch_of(key=["alice", "bob"], value=["a", "b"])
    ignored = written([keyed], {"t": 4}, **{"partitioner.ignore.keys": "true"})
    assert len([rows for rows in ignored.log.values() if rows]) == 1


def test_rows_without_a_key_fill_one_batch_after_the_other() -> None:
    rows = batch_of(value=[bytes(100)] * 100)
    brokers = written([rows, rows], {"t": 3}, **{"batch.size": "2000"})
    assert len(brokers.values()) == 200
    requests = brokers.scripted.requests_of(ApiKey.PRODUCE)
    partitions = [request.topic_data[0].partition_data[0].index for request in requests]
    assert len(requests) >= 200 * 110 // 2000
    # A full batch is followed by one for another partition.
    assert all(a != b for a, b in pairwise(partitions[:-1]))


def test_rows_without_a_key_are_written_although_a_partition_has_no_leader() -> None:
    rows = batch_of(value=[bytes(100)] * 100)
    limits = {"batch.size": "2000", "delivery.timeout.ms": "0", "retry.backoff.ms": "100"}
    brokers = written([rows], {"t": 6}, "t", (1, -1, -1), **limits)
    assert len(brokers.values()) == 100
    assert {each.partition for each in brokers.log} == {0, 3}
    # Without any leader, rows wait for one, as those with a key do.
    with pytest.raises(DeliveryError, match="has no leader"):
        written([rows], {"t": 2}, "t", (-1,), **limits)


@pytest.mark.parametrize("size", ["0", "60"])
def test_a_batch_size_below_a_header_makes_batches_of_one_row(size: str) -> None:
    rows = batch_of(key=["a", "b"], value=["1", None])
    brokers = written([rows], {"t": 1}, **{"batch.size": size})
    assert values(brokers, 0) == [b"1", None]
    assert len(brokers.scripted.requests_of(ApiKey.PRODUCE)) == 2


def test_each_row_to_the_topic_it_names() -> None:
    batch = batch_of(topic=["b", "a", "b"], value=["1", "2", "3"])
    brokers = written([batch], {"a": 1, "b": 1}, None)
    assert values(brokers, 0, "a") == [b"2"]
    assert values(brokers, 0, "b") == [b"1", b"3"]
    assert written([batch], {"t": 1}).values() == [b"1", b"2", b"3"]  # the option wins


def test_memory_is_bounded_where_there_are_many_partitions() -> None:
    rows = batch_of(value=[bytes(1000)] * 50, partition=pa.array(range(50), pa.int32()))
    brokers = written([rows] * 4, {"t": 50}, **{"buffer.memory": "60000"})
    requests = brokers.scripted.requests_of(ApiKey.PRODUCE)
    assert len(requests) > 1  # sent before the end
    assert all(len(request.topic_data[0].partition_data) > 10 for request in requests)


@pytest.mark.parametrize(
    ("columns", "topic", "words"),
    [
        ({"value": ["v"]}, None, "null topic present in the data"),
        ({"value": ["v"], "topic": pa.array([None], pa.string())}, None, "null topic"),
        ({"value": ["v"], "partition": pa.array([7], pa.int32())}, "t", "no partition 7"),
        ({"value": ["v"], "partition": pa.array([-2], pa.int32())}, "t", "no partition -2"),
        ({"value": ["v"], "partition": pa.array([-1], pa.int32())}, "t", "no partition -1"),
        (
            {"key": ["k", "k"], "value": ["v", "w"], "partition": pa.array([None, -1], pa.int32())},
            "t",
            "no partition -1",
        ),
        ({"value": [bytes(2 << 20)]}, "t", "A row for topic t is 2097"),
        ({"value": ["v"]}, "other", "Topic other not present in metadata"),
    ],
)
def test_what_is_refused(columns: dict[str, Any], topic: str | None, words: str) -> None:
    with pytest.raises(DeliveryError, match=words):
        written([batch_of(**columns)], {"t": 2}, topic)


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.mark.parametrize("kind", [_HEADERS, pa.large_list(_HEADERS.value_type)])
@pytest.mark.parametrize("header", [None, {"key": None, "value": b"x"}])
def test_a_header_without_a_name_is_refused(kind: Any, header: dict[str, Any] | None) -> None:
    """No consumer of Java reads beyond a record with one."""
    fine = {"key": "k", "value": None}
    rows = batch_of(value=["a", "b", "c"], headers=pa.array([[fine], None, [fine, header]], kind))
    with pytest.raises(DeliveryError, match="a header that is null, or whose key is null"):
        written([rows], {"t": 1})
    assert written([rows.slice(0, 2)], {"t": 1}).values() == [b"a", b"b"]


def test_a_batch_without_rows_is_nothing() -> None:
    empty = batch_of(value=pa.array([], pa.binary()), topic=pa.array([], pa.string()))
    assert written([empty], {"t": 1}).values() == []
    assert written([empty], {"t": 1}, None).values() == []
