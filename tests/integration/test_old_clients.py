"""Requests that only old clients send get the same answers from us and from Apache Kafka 3.9.1.

Without Apache Kafka's jars only ours is asked, and the end of the run says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import (
    fetch,
    find_coordinator,
    list_offsets,
    metadata,
)
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import iter_records
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import Wire, produce_request

NO_ROOM_FOR_REPLICAS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "auto.create.topics.enable": "true",
}
ROWS = [RecordData(b"k%d" % i, b"v%d" % i * 300, 1000 + i, [("h", b"x")]) for i in range(3)]


@pytest.fixture(
    scope="module", params=["kafkapy", *(["Apache Kafka"] if apache_kafka.installed() else [])]
)
def wire(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("old-clients")
    zookeeper: ServerProcess | None = None
    server: ServerProcess
    if request.param == "kafkapy":
        server = BrokerProcess(directory / "logs", NO_ROOM_FOR_REPLICAS).start()
    else:
        zookeeper = apache_kafka.ZooKeeperProcess(directory / "zookeeper").start()
        server = apache_kafka.ApacheBroker(
            directory / "logs", NO_ROOM_FOR_REPLICAS, zookeeper
        ).start()
    connection = Wire(server)
    has_controller = metadata.MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    wait_until(lambda: connection.ask(has_controller, 8).controller_id >= 0, "a controller")
    yield connection
    connection.close()
    server.stop()
    if zookeeper is not None:
        zookeeper.stop()


def create(wire: Wire, name: str, *batches: bytes, **configs: str) -> None:
    wire.create(name, **configs)
    known = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])
    wait_until(lambda: wire.ask(known, 9).topics[0].partitions[0:1], "a leader")
    for batch in batches:
        produce(wire, name, batch)


def produce(wire: Wire, topic: str, batch: bytes) -> None:
    [row] = wire.ask(produce_request(topic, batch, -1, 0), 9).responses[0].partition_responses
    assert row.error_code == 0


def read(
    wire: Wire, topic: str, version: int, offset: int = 0, row_bytes: int = 1 << 20
) -> tuple[ErrorCode, list[tuple[int, int, int]], list[int]]:
    """The error; (offset, magic, attributes) of the messages or batches; their records' offsets."""
    partition = fetch.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=row_bytes
    )
    request = fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        topics=[fetch.FetchTopic(topic=topic, partitions=[partition])],
    )
    [row] = wire.ask(request, version).responses[0].partitions
    records = bytes(row.records or b"")
    headers = [(h.base_offset, h.magic, h.attributes) for _, h in iter_headers(records)]
    return ErrorCode(row.error_code), headers, [r.offset for r in iter_records(records)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_message_sets(wire: Wire, codec: Codec) -> None:
    topic = f"sets-{codec.name.lower()}"
    create(wire, topic, build_batch(ROWS, codec=codec), build_batch(ROWS, codec=codec))
    for version in (0, 1, 2, 3):
        magic = 1 if version >= 2 else 0
        error, headers, offsets = read(wire, topic, version, 1)
        assert error is ErrorCode.NONE
        if codec is Codec.NONE:
            assert headers == [(offset, magic, 0) for offset in (1, 2, 3, 4, 5)]
        else:  # a set that has grown is cut to the size that was read
            assert (headers[0], offsets[:3]) == ((2, magic, codec), [0, 1, 2])
        assert read(wire, topic, version, 6) == (ErrorCode.NONE, [], [])
        assert read(wire, topic, version, 7) == (ErrorCode.OFFSET_OUT_OF_RANGE, [], [])


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.0"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_librdkafka_as_of_an_old_release(wire: Wire, release: str, codec: str) -> None:
    topic = f"rd-{release}-{codec}"
    create(wire, topic)
    producer = Producer({"bootstrap.servers": wire.servers, "compression.type": codec})
    sent = [b"value %d" % i * 3 for i in range(300)]
    for value in sent:
        producer.produce(topic, value, headers=[("h", b"x")])
    assert producer.flush(30) == 0
    settings = {"api.version.request": "false", "broker.version.fallback": release}
    common = {"bootstrap.servers": wire.servers, "group.id": "g", "enable.auto.commit": "false"}
    consumer = Consumer({**common, **settings})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        got: list[bytes | None] = []
        while len(got) < len(sent):
            messages = consumer.consume(len(sent), 30)
            assert messages, f"{len(got)} of {len(sent)}"
            got += [message.value() for message in messages if message.error() is None]
        assert got == sent
    finally:
        consumer.close()


def test_limits(wire: Wire) -> None:
    batch = build_batch(ROWS)
    create(wire, "limits", batch, batch)
    for version in (0, 1, 2):
        assert read(wire, "limits", version, 0, len(batch) - 1) == (ErrorCode.NONE, [], [])
        assert read(wire, "limits", version, 0, len(batch))[2] == [0, 1, 2]
    assert read(wire, "limits", 3, 0, 1)[2] == [0, 1, 2]


def test_zstd(wire: Wire) -> None:
    create(wire, "zstd-here", build_batch(ROWS), build_batch(ROWS, codec=Codec.ZSTD))
    refused = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, [], [])
    for version in (0, 3):
        assert read(wire, "zstd-here", version)[2] == [0, 1, 2]
        assert read(wire, "zstd-here", version, 3) == refused
    create(wire, "zstd-always", build_batch(ROWS), compression_type="zstd")
    assert [read(wire, "zstd-always", version) for version in (0, 3, 4, 9)] == [refused] * 4
    assert read(wire, "zstd-always", 10)[2] == [0, 1, 2]


def test_conversion_forbidden(wire: Wire) -> None:
    create(wire, "as-stored", build_batch(ROWS), message_downconversion_enable="false")
    assert read(wire, "as-stored", 3) == (ErrorCode.UNSUPPORTED_VERSION, [], [])
    assert read(wire, "as-stored", 4)[2] == [0, 1, 2]


def look_up(wire: Wire, timestamp: int, most: int = 9) -> tuple[ErrorCode, list[int]]:
    partition = list_offsets.ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, max_num_offsets=most
    )
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[list_offsets.ListOffsetsTopic(name="segments", partitions=[partition])],
    )
    [row] = wire.ask(request, 0).topics[0].partitions
    return ErrorCode(row.error_code), row.old_style_offsets


def test_offsets_of_segments(wire: Wire) -> None:
    create(wire, "segments", segment_bytes="2500")
    assert look_up(wire, -1) == (ErrorCode.NONE, [0])
    for _ in range(3):
        produce(wire, "segments", build_batch(ROWS))
    assert look_up(wire, -1) == (ErrorCode.NONE, [9, 6, 3, 0])
    assert look_up(wire, -1, 2) == (ErrorCode.NONE, [9, 6])
    assert look_up(wire, -1, 0) == (ErrorCode.NONE, [])
    assert look_up(wire, -2) == (ErrorCode.NONE, [0])
    assert look_up(wire, 0) == (ErrorCode.NONE, [])
    assert look_up(wire, 10**15) == (ErrorCode.NONE, [9, 6, 3, 0])
    assert look_up(wire, -3) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert look_up(wire, -1, -1) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_refused_creations(wire: Wire) -> None:
    for version in (1, 9, 12):
        request = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name="too-many-replicas")],
            allow_auto_topic_creation=True,
        )
        [row] = wire.ask(request, version).topics
        assert ErrorCode(row.error_code) is ErrorCode.INVALID_REPLICATION_FACTOR
    wanted = find_coordinator.FindCoordinatorRequest(key="g")
    assert wire.ask(wanted, 1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
