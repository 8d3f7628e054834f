"""The loads scripts/bench puts on a broker: each takes an address and returns a figure."""

from __future__ import annotations

import socket
import ssl
import struct
import time

import confluent_kafka

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.record.builder import RecordData, build_batch

LIMIT_S = 300
PIPELINED = 5
LIST = 10_000
PRODUCED_BYTES = 52
"""The bytes of a Produce v7 response for one partition, with the size prefix and without the
topic's name."""
PRODUCED_ERROR_AT = 22
"""The position of its error code, without the topic's name."""


def produce_librdkafka(servers: str, topic: str, value_bytes: int, count: int) -> float:
    """Records/s of one librdkafka producer with acks=all to partition 0."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 5,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "batch.num.messages": 100_000,
            "log_level": 2,
        }
    )
    producer.list_topics(topic, timeout=30)
    messages = [{"value": b"x" * value_bytes} for _ in range(LIST)]
    started = time.perf_counter()
    for _ in range(count // LIST):
        while len(producer) > 20 * LIST:
            producer.poll(0.001)
        queued = producer.produce_batch(topic, messages, partition=0)
        assert queued == LIST, queued
    left = producer.flush(LIMIT_S)
    assert not left, f"{left} records not acknowledged"
    return count / (time.perf_counter() - started)


def consume_librdkafka(servers: str, topic: str, count: int) -> float:
    """Records/s of one librdkafka consumer from the start of partition 0."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            # Otherwise it pauses for a second when its queue is full, by records or by bytes.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1 << 20,
            "log_level": 2,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    got, started = 0, 0.0
    deadline = time.perf_counter() + LIMIT_S
    while got < count:
        assert time.perf_counter() < deadline, f"{got} of {count} records"
        got += len(consumer.consume(min(LIST, count - got), 1.0))
        started = started or time.perf_counter()
    seconds = time.perf_counter() - started
    consumer.close()
    return (got - LIST) / seconds


def connected(servers: str, ca: str | None = None) -> socket.socket:
    """A connection to the first of `servers`; over TLS if `ca`, the file of a CA, is given."""
    host, _, port = servers.partition(",")[0].rpartition(":")
    made = socket.create_connection((host, int(port)), timeout=LIMIT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if ca is not None:
        made = ssl.create_default_context(cafile=ca).wrap_socket(made, server_hostname=host)
    return made


class RawClient:
    """A connection that sends ready-made requests and gives their responses undecoded."""

    def __init__(self, servers: str, ca: str | None = None) -> None:
        self.socket = connected(servers, ca)
        self._buffer = memoryview(bytearray(8 << 20))

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def receive(self) -> memoryview:
        """The next response without its size."""
        (size,) = struct.unpack(">i", self._take(4))
        return self._take(size)

    def receive_appended(self, topic: str, count: int) -> None:
        """Take `count` responses to Produce v7 of one partition, and check their error codes."""
        size = PRODUCED_BYTES + len(topic)
        error_at = PRODUCED_ERROR_AT + len(topic)
        data = self._take(size * count)
        for at in (error_at, error_at + 1):
            assert not any(data[at::size]), f"a request failed: {bytes(data[:size])!r}"

    def _take(self, size: int) -> memoryview:
        filled = 0
        while filled < size:
            filled += self.socket.recv_into(self._buffer[filled:size])
        return self._buffer[:size]

    def close(self) -> None:
        self.socket.close()


def request(api_key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", api_key, version, 1, 5) + b"bench"
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce_request(topic: str, value_bytes: int, records: int) -> bytes:
    """Produce v7 with one batch for partition 0, acks=all."""
    now = int(time.time() * 1000)
    batch = build_batch([RecordData(None, b"x" * value_bytes, now) for _ in range(records)])
    name = struct.pack(">h", len(topic)) + topic.encode()
    body = struct.pack(">hhii", -1, -1, 30_000, 1) + name
    return request(ApiKey.PRODUCE, 7, body + struct.pack(">iii", 1, 0, len(batch)) + batch)


def produce_raw(servers: str, topic: str, value_bytes: int, records: int, count: int) -> float:
    """Requests/s of one connection with PIPELINED requests of one batch in flight."""
    client = RawClient(servers)
    message = produce_request(topic, value_bytes, records)
    started = time.perf_counter()
    for _ in range(PIPELINED):
        client.send(message)
    for _ in range(count - PIPELINED):
        client.receive()
        client.send(message)
    for _ in range(PIPELINED):
        client.receive()
    seconds = time.perf_counter() - started
    client.close()
    return count / seconds


def produce_burst(servers: str, topic: str, count: int) -> float:
    """Requests/s of one record each, sent 100 at a time and answered in order."""
    client = RawClient(servers)
    burst = produce_request(topic, 100, 1) * 100
    started = time.perf_counter()
    client.send(burst)
    for _ in range(count // 100 - 1):
        client.send(burst)
        for _ in range(100):
            client.receive()
    for _ in range(100):
        client.receive()
    seconds = time.perf_counter() - started
    client.close()
    return count / seconds


def fetch_raw(servers: str, topic: str, total_bytes: int) -> float:
    """Bytes/s of one connection that fetches 1 MiB at a time, each request at the next offset."""
    client = RawClient(servers)
    got, offset = 0, 0
    started = time.perf_counter()
    while got < total_bytes:
        client.send(fetch_request(topic, offset))
        response = client.receive()
        records = response[len(topic) + 48 :]
        error, high_watermark = struct.unpack_from(">hq", response, len(topic) + 22)
        assert error == 0, f"error {error} at offset {offset}"
        assert len(records) > 61, f"no records at offset {offset} of {high_watermark}"
        got += len(records)
        offset = last_offset(records) + 1
    seconds = time.perf_counter() - started
    client.close()
    return got / seconds


def fetch_request(
    topic: str, offset: int, max_bytes: int = 1 << 20, max_wait_ms: int = 500
) -> bytes:
    """Fetch v4 of partition 0, for at least one byte."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    body = struct.pack(">iiiibi", -1, max_wait_ms, 1, max_bytes, 0, 1) + name
    return request(ApiKey.FETCH, 4, body + struct.pack(">iiqi", 1, 0, offset, max_bytes))


def last_offset(records: memoryview) -> int:
    """The last offset of the last whole batch."""
    at, last = 0, -1
    while at + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, at)
        if at + 12 + length > len(records):
            break
        last = base + struct.unpack_from(">i", records, at + 23)[0]
        at += 12 + length
    return last
