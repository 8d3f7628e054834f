"""Bytes no proper client sends: Kafka's error code or a closed connection, and nobody else notices.

The error codes are those a running Apache Kafka 3.9 gave for the same bytes (but for null records,
which it never answers).
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import confluent_kafka
import pytest
from crc32c import crc32c

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.topics import QUIET, create_topic

TOPIC = "bad-input"
MAX_REQUEST = 104_857_600
RSS_GROWTH_MAX = 64 << 20
VIRTUAL_GROWTH_MAX = 512 << 20  # glibc takes arenas of 64 MiB


class Bystander:
    """A producer and a connection that live through all tests of this module."""

    def __init__(self, servers: str) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers, **QUIET})
        self._connection = RawConnection(servers)

    def check_that_it_goes_on(self) -> None:
        """One acknowledged record, and an answer on the same old connection."""
        errors: list[object] = []
        self._producer.produce(
            TOPIC, b"bystander", on_delivery=lambda error, _: errors.append(error)
        )
        assert self._producer.flush(30) == 0
        assert errors == [None]
        self._connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def bystander(broker: BrokerProcess) -> Iterator[Bystander]:
    create_topic(broker.bootstrap_servers, TOPIC)
    bystander = Bystander(broker.bootstrap_servers)
    yield bystander
    bystander.close()


def frame(body: bytes, size: int | None = None) -> bytes:
    return struct.pack(">i", len(body) if size is None else size) + body


def header(api_key: int, version: int, client_id: bytes = b"\0\3bad") -> bytes:
    return struct.pack(">hhi", api_key, version, 5) + client_id


def random_frames() -> Iterator[bytes]:
    for seed in range(20):
        chance = random.Random(seed)
        yield frame(chance.randbytes(chance.randrange(1, 300)))


CLOSED = {
    "size-negative": frame(b"", -1),
    "size-most-negative": frame(b"", -(2**31)),
    "size-over-the-limit": frame(b"x" * 100, MAX_REQUEST + 1),
    "size-zero": frame(b""),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030102000100") + bytes(200),
    "header-cut": frame(header(3, 9)[:6]),
    "client-id-longer-than-frame": frame(header(3, 9, b"\x7f\xffab")),
    "client-id-size-negative": frame(header(3, 9, b"\xff\xf0")),
    "api-key-unknown": frame(header(9999, 0)),
    "api-key-negative": frame(header(-1, 0)),
    "version-unknown": frame(header(ApiKey.METADATA, 99) + b"\0"),
    "version-negative": frame(header(ApiKey.METADATA, -1)),
    "array-longer-than-frame": frame(header(ApiKey.METADATA, 1) + b"\x7f\xff\xff\xff"),
    "array-size-negative": frame(header(ApiKey.FETCH, 4) + bytes(17) + b"\xff\xff\xff\xf0"),
    "string-longer-than-frame": frame(header(ApiKey.METADATA, 1) + b"\0\0\0\1\x7f\xff"),
    "compact-array-too-long": frame(header(ApiKey.METADATA, 9) + b"\0\xff\xff\xff\xff\x0f"),
    "varint-without-end": frame(header(ApiKey.METADATA, 9) + b"\0" + b"\xff" * 12),
    "tags-lie": frame(header(ApiKey.METADATA, 9) + b"\xff\xff\xff\xff\x07"),
    "random": b"".join(random_frames()),
}


@pytest.mark.parametrize("data", CLOSED.values(), ids=CLOSED.keys())
def test_violation_closes_the_connection_and_is_logged_once(
    broker: BrokerProcess, bystander: Bystander, data: bytes
) -> None:
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send(data)
        assert connection.is_closed_by_peer()
    bystander.check_that_it_goes_on()
    told = [line for line in broker.output_text().splitlines() if peer_is(connection.name, line)]
    assert len(told) == 1, told
    assert re.search(r" (WARN|ERROR|INFO) ", told[0])
    assert "Traceback" not in broker.output_text()


def peer_is(name: str, line: str) -> bool:
    return re.search(rf"{re.escape(name)}\b", line) is not None


def test_every_api_survives_nonsense(broker: BrokerProcess, bystander: Bystander) -> None:
    """Each served API and version gets bodies that are empty, huge in promise, or noise."""
    with RawConnection(broker.bootstrap_servers) as connection:
        served = connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys
    assert len(served) > 10
    before = broker.resident_bytes()
    for api in served:
        for version in {api.min_version, api.max_version}:
            for body in nonsense(api.api_key * 100 + version):
                with RawConnection(broker.bootstrap_servers) as connection:
                    connection.send(frame(header(api.api_key, version) + body))
                    connection.finish_sending()
                    connection.is_closed_by_peer()  # or an answer: either way, in time
    bystander.check_that_it_goes_on()
    assert broker.resident_bytes() - before < RSS_GROWTH_MAX


def nonsense(seed: int) -> Iterator[bytes]:
    """Bodies for any API: lengths that lie in both encodings, and noise."""
    chance = random.Random(seed)
    yield b""
    yield b"\xff" * 64
    yield b"\0" + b"\x7f\xff\xff\xff" * 16
    yield b"\0" + b"\xff\xff\xff\xff\x07" * 12
    yield b"\0" * 64
    for _ in range(4):
        yield b"\0" + chance.randbytes(chance.randrange(1, 200))


def test_api_versions_of_an_unknown_version_is_answered(broker: BrokerProcess) -> None:
    """KIP-511: the answer is version 0, says UNSUPPORTED_VERSION, and lists what is served."""
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send(frame(header(ApiKey.API_VERSIONS, 99) + b"\0\1\1\0"))
        answer = connection.read_frame()
    assert answer is not None
    correlation_id, error, count = struct.unpack_from(">ihi", answer)
    assert (correlation_id, error) == (5, ErrorCode.UNSUPPORTED_VERSION)
    assert count > 0


def test_promised_bytes_take_no_memory(broker: BrokerProcess, bystander: Bystander) -> None:
    """Fifty connections promise 100 MB each and send a little."""
    before, asked_before = broker.resident_bytes(), broker.virtual_bytes()
    connections = [RawConnection(broker.bootstrap_servers) for _ in range(50)]
    for connection in connections:
        connection.send(frame(header(ApiKey.PRODUCE, 9) + bytes(2000), MAX_REQUEST))
    bystander.check_that_it_goes_on()
    assert broker.resident_bytes() - before < RSS_GROWTH_MAX
    assert broker.virtual_bytes() - asked_before < VIRTUAL_GROWTH_MAX
    for connection in connections:
        connection.close()
    bystander.check_that_it_goes_on()


def test_half_a_frame_then_silence(broker: BrokerProcess, bystander: Bystander) -> None:
    """A client that goes away inside a frame is no error worth a line."""
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send(frame(header(ApiKey.METADATA, 1), 400))
        connection.finish_sending()
        assert connection.is_closed_by_peer()
    bystander.check_that_it_goes_on()


GOOD = build_batch([RecordData(b"k", b"v" * 20, 1_700_000_000_000)])


def edited(position: int, layout: str, value: int, keep_crc: bool = False) -> bytes:
    """A good batch with one field changed, under a CRC that is right unless kept."""
    batch = bytearray(GOOD)
    struct.pack_into(layout, batch, position, value)
    if not keep_crc:
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


class BadBatch(NamedTuple):
    """Records for one partition and the error code they must get."""

    records: bytes | None
    error: ErrorCode


BAD_BATCHES = {
    "crc": BadBatch(edited(17, ">I", 1, keep_crc=True), ErrorCode.CORRUPT_MESSAGE),
    "byte-flipped": BadBatch(edited(70, ">B", 1, keep_crc=True), ErrorCode.CORRUPT_MESSAGE),
    "magic-3": BadBatch(edited(16, ">b", 3), ErrorCode.CORRUPT_MESSAGE),
    "magic-1": BadBatch(edited(16, ">b", 1), ErrorCode.INVALID_RECORD),
    "length-too-long": BadBatch(edited(8, ">i", 10_000), ErrorCode.INVALID_RECORD),
    "length-negative": BadBatch(edited(8, ">i", -1), ErrorCode.CORRUPT_MESSAGE),
    "length-tiny": BadBatch(edited(8, ">i", 3), ErrorCode.CORRUPT_MESSAGE),
    "base-offset": BadBatch(edited(0, ">q", 12345), ErrorCode.INVALID_RECORD),
    "last-offset-delta": BadBatch(edited(23, ">i", 5), ErrorCode.INVALID_RECORD),
    "last-offset-delta-negative": BadBatch(edited(23, ">i", -2), ErrorCode.INVALID_RECORD),
    "count-zero": BadBatch(edited(57, ">i", 0), ErrorCode.INVALID_RECORD),
    "count-lies": BadBatch(edited(57, ">i", 2**31 - 1), ErrorCode.INVALID_RECORD),
    "count-negative": BadBatch(edited(57, ">i", -1), ErrorCode.INVALID_RECORD),
    "control": BadBatch(edited(21, ">h", 0x20), ErrorCode.INVALID_RECORD),
    "two-batches": BadBatch(GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "half-a-header": BadBatch(GOOD[:30], ErrorCode.INVALID_RECORD),
    "no-batch": BadBatch(b"", ErrorCode.INVALID_RECORD),
    "null": BadBatch(None, ErrorCode.INVALID_RECORD),
}


def produce(servers: str, records: bytes | None) -> int:
    """The error code of a Produce v9 of these records."""
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    with RawConnection(servers) as connection:
        response = connection.request(request, 9, ProduceResponse)
    return int(response.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("bad", BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_bad_batch_is_refused(broker: BrokerProcess, bystander: Bystander, bad: BadBatch) -> None:
    assert ErrorCode(produce(broker.bootstrap_servers, bad.records)).name == bad.error.name
    bystander.check_that_it_goes_on()


def test_good_batch_is_taken(broker: BrokerProcess, bystander: Bystander) -> None:
    assert produce(broker.bootstrap_servers, GOOD) == 0


@pytest.mark.parametrize("offset", [-5, 10**9, 2**63 - 1])
def test_impossible_fetch_offset(broker: BrokerProcess, bystander: Bystander, offset: int) -> None:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=TOPIC, partitions=[asked])])
    with RawConnection(broker.bootstrap_servers) as connection:
        response = connection.request(request, 11, FetchResponse)
    row = response.responses[0].partitions[0]
    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert not row.records
