"""engine: a range of offsets from the leader, and what happens when it is not there any more."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
import pytest

from kafkapy.client import cluster
from kafkapy.client.offsets import OffsetResult
from kafkapy.client.security import Security
from kafkapy.client.transport import Transport, connect, network_error
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.sink.sink_options import parse_sink_options
from kafkapy.spark.sink.writer import write_transaction
from kafkapy.spark.source.offsets import EARLIEST, DataLossError, OffsetRange
from kafkapy.spark.source.options import parse_options
from kafkapy.spark.workers import engine
from kafkapy.spark.workers.engine import RangePartition, cluster_of, read_range
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]
BrokerFactory = Callable[..., BrokerProcess]


def read(topic: Topic, start: int, end: int, **options: str) -> list[int]:
    parsed = parse_options({**topic.options, **options}, streaming=False)
    place = OffsetRange(TopicPartition(topic.name, 0), start, end)
    return [
        offset
        for batch in read_range(parsed, place)
        for offset in batch.column("offset").to_pylist()
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_exactly_the_range_in_every_codec(make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    topic.send(((0, b"k", b"v" * 50) for _ in range(1000)), **{"compression.type": codec})
    assert read(topic, 17, 983) == list(range(17, 983))


def test_fetches_smaller_than_the_range(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.send(((0, None, b"v" * 500) for _ in range(2000)), **{"batch.size": "4000"})
    small = {"kafka.max.partition.fetch.bytes": "20000"}
    assert read(topic, 0, 2000, **small) == list(range(2000))


def test_deleted_offsets_fail_or_are_passed_over(
    make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    topic.send(((0, b"k", b"v") for _ in range(100)), **{"batch.size": "100"})
    topic.delete_records(0, 60)
    with pytest.raises(DataLossError, match=f"{topic.name}-0 offsets 10 to 60"):
        read(topic, 10, 100)
    with caplog.at_level(logging.WARNING):
        assert read(topic, 10, 100, failOnDataLoss="false") == list(range(60, 100))
        assert read(topic, 10, 20, failOnDataLoss="false") == []
    assert f"{topic.name}-0 offsets 10 to 60" in caplog.text


def test_offsets_beyond_the_log_are_a_loss(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(5)
    with pytest.raises(DataLossError, match=f"{topic.name}-0 offsets 50 to 60"):
        read(topic, 50, 60)
    assert read(topic, 50, 60, failOnDataLoss="false") == []


def test_a_topic_deleted_under_the_reader(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(5)
    topic.delete()
    with pytest.raises(DataLossError, match=f"{topic.name}-0 offsets 0 to 5"):
        read(topic, 0, 5)
    assert read(topic, 0, 5, failOnDataLoss="false") == []


def test_tasks_of_new_workers_wait_for_the_only_bootstrap_server(
    make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It restarts. Spark starts workers again for a stream whose batches are a minute apart."""
    topic = make_topic()
    topic.write(5)
    refused: list[int] = []

    def connect_later(host: str, port: int, security: Security, timeout_s: float) -> Transport:
        if len(refused) in (0, 1, 3, 4):
            refused.append(port)
            raise network_error(host, port, ConnectionRefusedError(111, "Connection refused"))
        return connect(host, port, security, timeout_s)

    monkeypatch.setattr(cluster, "connect", connect_later)
    assert read(topic, 0, 5) == list(range(5))
    refused.append(0)
    sink = parse_sink_options({"kafka.bootstrap.servers": topic.servers, "topic": topic.name})
    write_transaction(sink, topic.name, [pa.RecordBatch.from_pydict({"value": ["last"]})])
    assert len(refused) == 5
    assert read(topic, 5, 6) == [5]


class Reachable:
    """A cluster that can be reached."""

    api_timeout_ms = 0

    def channel(self) -> None:
        """It can be reached."""

    def within(self, deadline_s: float) -> AbstractContextManager[None]:
        return nullcontext()


class Silent(Reachable):
    """A cluster that cannot tell offsets."""

    def __init__(self, error: ErrorCode) -> None:
        self._answer = OffsetResult(error=error, message=f"b:2 says {error.name}")

    def list_offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetResult]:
        return dict.fromkeys(wanted, self._answer)


class Whole(Reachable):
    """A cluster with the offsets 0 to 50 of every partition."""

    def list_offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetResult]:
        return {tp: OffsetResult(0 if at == EARLIEST else 50) for tp, at in wanted.items()}


@pytest.mark.parametrize(
    "error", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], ids=str
)
def test_offsets_that_exist_again_are_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """Another leader has them, or a broker's metadata lacked the topic for a moment."""

    def refused(_: Any, __: TopicPartition, start: int, *___: Any, **____: Any) -> Iterator[Any]:
        raise ApiError(error, f"at {start}")

    monkeypatch.setattr(engine, "fetch_batches", refused)
    monkeypatch.setattr(engine, "cluster_of", lambda _: Whole())
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "failOnDataLoss": "false"}
    options = parse_options(given, streaming=False)
    with pytest.raises(ApiError, match="at 10") as caught:
        list(read_range(options, OffsetRange(TopicPartition("t", 0), 10, 40)))
    assert caught.value.code is error
    assert list(read_range(options, OffsetRange(TopicPartition("t", 0), 50, 60))) == []


@pytest.mark.parametrize(
    "error", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT], ids=str
)
def test_offsets_that_nobody_tells_are_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    def out_of_range(*_: Any, **__: Any) -> Iterator[Any]:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)

    monkeypatch.setattr(engine, "fetch_batches", out_of_range)
    monkeypatch.setattr(engine, "cluster_of", lambda _: Silent(error))
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "failOnDataLoss": "false"}
    place = OffsetRange(TopicPartition("t", 0), 10, 100)
    with pytest.raises(ApiError, match=f"Offsets of t-0: b:2 says {error.name}"):
        list(read_range(parse_options(given, streaming=False), place))


def test_a_broker_that_cannot_be_reached_is_named(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.servers = "127.0.0.1:1"
    with pytest.raises(ApiError, match=r"127\.0\.0\.1:1"):
        read(topic, 0, 5, **{"kafkaConsumer.pollTimeoutMs": "50"})


def test_a_corrupt_batch_is_named(broker_factory: BrokerFactory) -> None:
    broker = broker_factory()
    topic = Topic(broker.bootstrap_servers)
    topic.write(3)
    topic.write(2)
    broker.stop()
    (segment,) = (broker.log_dir / f"{topic.name}-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 0x55
    segment.write_bytes(data)
    broker.start()
    message = f"{topic.name}-0 cannot be read from offset 3 on: .*corrupt"
    with pytest.raises(ApiError, match=message) as caught:
        read(topic, 0, 5)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_connections_belong_to_the_process_not_to_what_is_pickled() -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1"}
    assert cluster_of(properties) is cluster_of(dict(properties))
    place = OffsetRange(TopicPartition("t", 0), 1, 2)
    assert pickle.loads(pickle.dumps(RangePartition(place))).range == place


def test_the_drivers_processes_do_not_load_what_only_decoding_needs() -> None:
    """Spark starts Python anew to look sources up and to plan each query; numba is most of it."""
    modules = "pyspark_kafkapy, pyspark_kafkapy_segments, kafkapy.spark.source.batch_reader"
    code = f"import sys, {modules}, kafkapy.spark.source.stream_reader, kafkapy.spark.sink.writer\n"
    code += "print('numba' in sys.modules, 'kafkapy.spark.workers.engine' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_first_batch_loads_no_pandas_and_collects_no_garbage(make_topic: MakeTopic) -> None:
    """Each task of a query's first batch is a new process, so what it loads is waited for."""
    topic = make_topic()
    topic.write(3)
    code = f"""
import gc, sys
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.workers.engine import read_range
from kafkapy.spark.source.offsets import OffsetRange
from kafkapy.spark.source.options import parse_options
from kafkapy.spark.source.pushdown import Interval
loading = []
gc.callbacks.append(lambda *told: loading.append('llvmlite' in sys.modules))
options = parse_options({topic.options!r}, streaming=False)
place = OffsetRange(TopicPartition({topic.name!r}, 0), 0, 3)
batches = list(read_range(options, place, Interval(0, 2**60)))
print(batches[0].num_rows, 'numba' in sys.modules, 'pandas' in sys.modules, gc.isenabled())
print(sum(loading))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, collected = done.stdout.splitlines()
    assert found == "3 True False True"
    assert int(collected) < 50  # numba alone: hundreds
