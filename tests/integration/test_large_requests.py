"""Large requests of real clients are answered whole; batches that take long stay in their order."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import (
    alter_client_quotas,
    describe_configs,
    fetch,
    incremental_alter_configs,
    metadata,
    offset_commit,
    produce,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import iter_records
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.wire import Wire

MANY = 10_000
TOPIC = "large"


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    connection = Wire(broker)
    connection.create(TOPIC, 3)
    connection.create("recompressed", 1, compression_type="gzip")
    yield connection
    connection.close()


def test_metadata_of_many_topics(wire: Wire) -> None:
    rows = [metadata.MetadataRequestTopic(name=f"unknown-{n}") for n in range(MANY)]
    rows.append(metadata.MetadataRequestTopic(name=TOPIC))
    request = metadata.MetadataRequest(topics=rows, allow_auto_topic_creation=False)
    answer = wire.ask(request, 9).topics
    assert [row.name for row in answer] == [row.name for row in rows]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [row.error_code for row in answer] == [unknown] * MANY + [0]
    assert len(answer[-1].partitions) == 3


def test_a_refused_metadata_of_many_topics(wire: Wire) -> None:
    topic_id = Uuid(bytes(range(16)))
    rows = [metadata.MetadataRequestTopic(name=f"t{n}", topic_id=topic_id) for n in range(MANY)]
    answer = wire.ask(metadata.MetadataRequest(topics=rows), 11).topics
    assert [row.name for row in answer] == [row.name for row in rows]
    assert {row.error_code for row in answer} == {ErrorCode.INVALID_REQUEST}


def test_an_id_that_is_named_often_is_described_once(wire: Wire) -> None:
    """Names of rows with an id do not count. 40,000 rows with the partitions of one topic were an
    answer of many MB."""
    known = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
    [topic] = wire.ask(known, 12).topics
    rows = [metadata.MetadataRequestTopic(name=f"t{n}", topic_id=topic.topic_id) for n in range(9)]
    assert wire.ask(metadata.MetadataRequest(topics=rows), 12).topics == [topic]


@pytest.mark.parametrize("session_epoch", [-1, 0], ids=["sessionless", "a session"])
def test_a_fetch_of_many_partitions(wire: Wire, session_epoch: int) -> None:
    partitions = [fetch.FetchPartition(partition=n, partition_max_bytes=1000) for n in range(MANY)]
    request = fetch.FetchRequest(
        session_epoch=session_epoch,
        max_bytes=1 << 20,
        topics=[fetch.FetchTopic(topic=TOPIC, partitions=partitions)],
    )
    answer = wire.ask(request, 12)
    assert (answer.session_id > 0) is (session_epoch == 0)
    [topic] = answer.responses
    assert [row.partition_index for row in topic.partitions] == list(range(MANY))
    codes = [row.error_code for row in topic.partitions]
    assert codes == [0] * 3 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - 3)


def test_configs_of_many_topics_each_described_once(wire: Wire) -> None:
    names = [f"unknown-{n}" for n in range(1000)] + [TOPIC] * 20_000
    resources = [
        describe_configs.DescribeConfigsResource(
            resource_type=2, resource_name=name, configuration_keys=None
        )
        for name in names
    ]
    answer = wire.ask(describe_configs.DescribeConfigsRequest(resources=resources), 1).results
    assert [row.resource_name for row in answer] == list(dict.fromkeys(names))
    assert len(answer[-1].configs) > 20


def test_a_commit_of_many_partitions(wire: Wire) -> None:
    rows = [
        offset_commit.OffsetCommitRequestPartition(partition_index=n, committed_offset=n)
        for n in range(MANY)
    ]
    topic = offset_commit.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)
    request = offset_commit.OffsetCommitRequest(
        group_id="many", generation_id_or_member_epoch=-1, topics=[topic]
    )

    def codes() -> list[int]:
        [answer] = wire.ask(request, 8).topics
        assert [row.partition_index for row in answer.partitions] == list(range(MANY))
        return [row.error_code for row in answer.partitions]

    found = codes()
    while ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in found:
        found = codes()
    assert found[3:] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - 3)


def test_forty_thousand_names_of_configs_are_refused_at_once(wire: Wire) -> None:
    """46 seconds, when each name was looked for among the others."""
    config = incremental_alter_configs.AlterableConfig
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=2,
        resource_name=TOPIC,
        configs=[config(name=f"n{n}", config_operation=0, value="") for n in range(40_000)],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    [row] = wire.ask(request, 1).responses
    assert row.error_code == ErrorCode.INVALID_CONFIG


def test_a_quota_entity_of_many_parts_is_refused_with_each_of_them_once(wire: Wire) -> None:
    types = [f"type-{n}" for n in range(MANY)]
    parts = [
        alter_client_quotas.EntityData(entity_type=kind, entity_name="x")
        for kind in [*types, *types, "user", "client-id"]
    ]
    entry = alter_client_quotas.EntryData(entity=parts, ops=[])
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)
    [row] = wire.ask(request, 1).entries
    assert row.error_code == ErrorCode.INVALID_REQUEST
    assert [part.entity_type for part in row.entity] == ["client-id", "user", *types]


def test_batches_in_flight_stay_in_order_when_some_take_long(
    wire: Wire, broker: BrokerProcess
) -> None:
    """An idempotent producer with 30 requests in flight: every third is recompressed elsewhere."""
    host, port = broker.bootstrap_servers.split(":")
    frames = []
    for sequence in range(30):
        size = 300_000 if sequence % 3 == 0 else 10
        batch = build_batch(
            [RecordData(b"%d" % sequence, b"v" * size, 1000)],
            codec=Codec.LZ4 if sequence % 3 == 0 else Codec.GZIP,
            producer_id=4711,
            producer_epoch=0,
            base_sequence=sequence,
        )
        data = produce.PartitionProduceData(index=0, records=batch)
        topic = produce.TopicProduceData(name="recompressed", partition_data=[data])
        request = produce.ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic])
        frames.append(encode_request(request, 9, sequence, "order"))
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"".join(frames))
        stream = connection.makefile("rb")
        for sequence in range(30):
            row = answered(stream, sequence)
            assert (row.error_code, row.base_offset) == (0, sequence)
        stream.close()
    partition = fetch.FetchPartition(partition=0, partition_max_bytes=1 << 24)
    reading = fetch.FetchRequest(
        session_epoch=-1,
        max_bytes=1 << 24,
        topics=[fetch.FetchTopic(topic="recompressed", partitions=[partition])],
    )
    [topic] = wire.ask(reading, 12).responses
    keys = [record.key for record in iter_records(topic.partitions[0].records)]
    assert keys == [b"%d" % sequence for sequence in range(30)]


def answered(stream: Any, correlation_id: int) -> Any:
    size = int.from_bytes(stream.read(4), "big")
    got, response = decode_response(produce.ProduceResponse, 9, memoryview(stream.read(size)))
    assert got == correlation_id
    return response.responses[0].partition_responses[0]
