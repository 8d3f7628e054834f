"""The Python clients: confluent-kafka (librdkafka), kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version

import confluent_kafka
from confluent_kafka import AcknowledgeType

with warnings.catch_warnings():  # theirs, not ours
    warnings.simplefilter("ignore")
    import aiokafka
    import kafka
    import kafka.codec
    from kafka.structs import OffsetAndMetadata

from tests.conformance.peer import CODECS, SHARE, limit_s
from tests.conformance.workload import Headers, Received, Row
from tests.harness.processes.kafka_python import closed
from tests.harness.processes.topics import create_topic

BATCH = 500
SESSION_TIMEOUT_MS = 45_000  # Kafka's own default; theirs is too short for a busy machine


def headers_of(raw: Sequence[tuple[str, bytes | None]] | None) -> Headers:
    return tuple((name, value or b"") for name, value in raw or ())


def next_offsets(received: Sequence[Received]) -> dict[int, int]:
    """partition -> the offset to commit after reading `received`."""
    return {record.partition: record.offset + 1 for record in received}


def _received(message: confluent_kafka.Message) -> Received:
    assert message.error() is None, message.error()
    return Received(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers_of(message.headers()),
    )


class ConfluentPeer:
    """librdkafka by its Python binding, idempotent; its groups have `protocol`."""

    name = "confluent-kafka"
    codecs = CODECS
    sets_timestamps = True
    fixed_headers = False

    def __init__(self, protocol: str = "classic") -> None:
        self.protocol = protocol

    def version(self) -> str:
        return f"{version('confluent-kafka')} (librdkafka {confluent_kafka.libversion()[0]})"

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        failures: list[str] = []

        def delivered(error: confluent_kafka.KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(str(error))

        settings = {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 2,
        }
        producer = confluent_kafka.Producer(settings)
        for row in rows:
            producer.produce(
                topic,
                row.value,
                row.key,
                headers=list(row.headers),
                timestamp=row.timestamp,
                on_delivery=delivered,
            )
            producer.poll(0)
        left = producer.flush(limit_s(len(rows)))
        assert not left, f"{left} records not delivered"
        assert not failures, failures[:3]

    def _consumer(self, servers: str, group: str) -> confluent_kafka.Consumer:
        settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": self.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
        }
        return confluent_kafka.Consumer(settings)

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        if self.protocol == SHARE:
            return self._share(servers, topic, group, count)
        received: list[Received] = []
        consumer = self._consumer(servers, group)
        deadline = time.monotonic() + limit_s(count)
        try:
            consumer.subscribe([topic])
            while len(received) < count:
                assert time.monotonic() < deadline, f"{len(received)} of {count} records"
                for message in consumer.consume(min(BATCH, count - len(received)), 0.1):
                    received.append(_received(message))
            offsets = [
                confluent_kafka.TopicPartition(topic, partition, offset)
                for partition, offset in next_offsets(received).items()
            ]
            for committed in consumer.commit(offsets=offsets, asynchronous=False):
                assert committed.error is None, committed.error
        finally:
            consumer.close()
        return received

    def _share(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        """Accept exactly `count` records, and release others."""
        received: list[Received] = []
        mode = {"share.acknowledgement.mode": "explicit"}
        settings = {"bootstrap.servers": servers, "group.id": group, "log_level": 2, **mode}
        consumer = confluent_kafka.ShareConsumer(settings)
        deadline = time.monotonic() + limit_s(count)
        try:
            consumer.subscribe([topic])
            while len(received) < count:
                assert time.monotonic() < deadline, f"{len(received)} of {count} records"
                for message in consumer.poll(0.1) or ():
                    row = _received(message)
                    kind = AcknowledgeType.RELEASE
                    if len(received) < count:
                        kind = AcknowledgeType.ACCEPT
                        received.append(row)
                    consumer.acknowledge(message, kind)
                refused = [each for each in consumer.commit_sync().values() if each is not None]
                assert not refused, refused[:3]
        finally:
            consumer.close()
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        consumer = self._consumer(servers, "look-up")
        try:
            asked = confluent_kafka.TopicPartition(topic, partition, timestamp)
            return int(consumer.offsets_for_times([asked], timeout=30)[0].offset)
        finally:
            consumer.close()

    def create(self, servers: str, topic: str, partitions: int, replicas: int) -> None:
        """Create a topic."""
        create_topic(servers, topic, partitions, replication_factor=replicas)

    def committed(self, servers: str, topic: str, group: str, partitions: int) -> dict[int, int]:
        """partition -> the group's committed offset (-1001 if none)."""
        consumer = self._consumer(servers, group)
        try:
            asked = [confluent_kafka.TopicPartition(topic, index) for index in range(partitions)]
            return {item.partition: item.offset for item in consumer.committed(asked, timeout=30)}
        finally:
            consumer.close()


class KafkaPythonPeer:
    """kafka-python: its own protocol code, threads, selectors."""

    name = "kafka-python"
    sets_timestamps = True
    fixed_headers = False

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs whose libraries are installed here."""
        known = {"none": True} | {
            codec: getattr(kafka.codec, f"has_{codec}")() for codec in CODECS[1:]
        }
        return tuple(codec for codec in CODECS if known[codec])

    def version(self) -> str:
        return version("kafka-python")

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        compression = None if codec == "none" else codec
        with closed(
            kafka.KafkaProducer(
                bootstrap_servers=servers, compression_type=compression, acks="all", linger_ms=20
            )
        ) as producer:
            futures = [
                producer.send(
                    topic,
                    value=row.value,
                    key=row.key,
                    headers=list(row.headers),
                    timestamp_ms=row.timestamp,
                )
                for row in rows
            ]
            producer.flush(timeout=limit_s(len(rows)))
            for future in futures:
                future.get(timeout=30)

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + limit_s(count)
        with closed(
            kafka.KafkaConsumer(
                topic,
                bootstrap_servers=servers,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_TIMEOUT_MS,
            )
        ) as consumer:
            while len(received) < count:
                assert time.monotonic() < deadline, f"{len(received)} of {count} records"
                wanted = min(BATCH, count - len(received))
                for batch in consumer.poll(timeout_ms=500, max_records=wanted).values():
                    received += [
                        Received(m.partition, m.offset, m.timestamp, m.key, m.value, h)
                        for m in batch
                        for h in [headers_of(m.headers)]
                    ]
            consumer.commit(
                {
                    kafka.TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                    for partition, offset in next_offsets(received).items()
                }
            )
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        with closed(kafka.KafkaConsumer(bootstrap_servers=servers)) as consumer:
            asked = kafka.TopicPartition(topic, partition)
            return int(consumer.offsets_for_times({asked: timestamp})[asked].offset)


class AioKafkaPeer:
    """aiokafka: asyncio, idempotent."""

    name = "aiokafka"
    codecs = CODECS
    sets_timestamps = True
    fixed_headers = False

    def version(self) -> str:
        return version("aiokafka")

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        asyncio.run(self._produce(servers, topic, codec, rows))

    async def _produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=True,
            linger_ms=20,
        )
        async with producer:
            futures = [
                await producer.send(
                    topic,
                    value=row.value,
                    key=row.key,
                    headers=list(row.headers),
                    timestamp_ms=row.timestamp,
                )
                for row in rows
            ]
            await asyncio.wait_for(asyncio.gather(*futures), limit_s(len(rows)))

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        return asyncio.run(asyncio.wait_for(self._consume(servers, topic, group, count), 600))

    async def _consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        received: list[Received] = []
        deadline = time.monotonic() + limit_s(count)
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
        )
        async with consumer:
            while len(received) < count:
                assert time.monotonic() < deadline, f"{len(received)} of {count} records"
                wanted = min(BATCH, count - len(received))
                for batch in (await consumer.getmany(timeout_ms=500, max_records=wanted)).values():
                    received += [
                        Received(m.partition, m.offset, m.timestamp, m.key, m.value, h)
                        for m in batch
                        for h in [headers_of(m.headers)]
                    ]
            await consumer.commit(
                {
                    aiokafka.TopicPartition(topic, partition): offset
                    for partition, offset in next_offsets(received).items()
                }
            )
        return received

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        return asyncio.run(self._offset_for_time(servers, topic, partition, timestamp))

    async def _offset_for_time(
        self, servers: str, topic: str, partition: int, timestamp: int
    ) -> int:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
            asked = aiokafka.TopicPartition(topic, partition)
            found = await consumer.offsets_for_times({asked: timestamp})
            return int(found[asked].offset)
