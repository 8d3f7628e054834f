"""The topic `_schemas`: read in order, and written by one registry at a time.

A write is a transaction. Its begin fences the registry that wrote before. A registry that then
reads to the end of the topic decides on the latest state. No leader is needed.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Position

from kafkapy.admin.configs import Resource, describe_configs
from kafkapy.admin.topics import NewTopic, create_topic
from kafkapy.client.batch_producer import BatchProducer
from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import READ_COMMITTED, READ_UNCOMMITTED
from kafkapy.client.librdkafka import create_client, is_of_unused_group, reader_config
from kafkapy.client.offsets import LATEST_TIMESTAMP
from kafkapy.client.producer_settings import ProducerSettings
from kafkapy.client.transaction import Transaction
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.schemas.records import Record

REPLICAS_MAX: Final = 3
_TRANSACTION_TIMEOUT_MS: Final = 10_000
_WRITE_TIMEOUT_MS: Final = 10_000
_POLL_S: Final = 0.1
_BATCH_RECORDS: Final = 500
_PAUSE_S: Final = 0.1
_PAUSE_MAX_S: Final = 2.0
_POLICY: Final = "cleanup.policy"

BEGINNING: Final = Record(b"", None)
"""Not a record: those that follow it are all that the topic has, and earlier ones are void."""

log: Final = logging.getLogger("kafkapy.schemas")


def create_if_missing(cluster: Cluster, name: str) -> None:
    """Create the topic with one partition, compacted, on up to three brokers.

    Raises:
        ConfigError: there is one with several partitions, or one whose records are deleted.
        ApiError: it can be neither described nor created.
    """
    found = cluster.metadata([name], refresh=True)
    topic = found.topics[name]
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        replicas = min(REPLICAS_MAX, len(found.brokers))
        try:
            configs = {_POLICY: "compact"}
            create_topic(cluster, NewTopic(name, 1, replicas, configs=configs))
        except ApiError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
    elif topic.error is not ErrorCode.NONE:
        raise ApiError(topic.error, f"Topic {name}: {topic.error.name}")
    elif len(topic.partitions) != 1:
        raise ConfigError(
            f"Topic {name} has {len(topic.partitions)} partitions; the topic of schemas has one"
        )
    else:
        _check_policy(cluster, name)


def _check_policy(cluster: Cluster, name: str) -> None:
    """
    Raises:
        ConfigError: brokers delete records, by default after a week.
    """
    topic = Resource(ResourceType.TOPIC, name)
    try:
        configs = describe_configs(cluster, [topic], synonyms=False)[topic]
    except ApiError as error:  # the login may lack DescribeConfigs
        log.warning("The %s of topic %s is not known: %s", _POLICY, name, error.message)
        return
    policy = next((each.value for each in configs if each.name == _POLICY), None)
    if policy != "compact":
        raise ConfigError(
            f"Topic {name} has {_POLICY}={policy}, by which brokers delete schemas. Set"
            f" {_POLICY}=compact with 'kafkapy configs --alter --topic {name}'"
        )


class SchemasTopic:
    """A position in the topic. Not thread-safe."""

    def __init__(self, cluster: Cluster, properties: Mapping[str, str], name: str) -> None:
        """`properties` are those of a client, with bootstrap.servers."""
        self.partition = TopicPartition(name, 0)
        self._cluster = cluster
        self._topic_id = ZERO_UUID
        self._next_offset = 0
        self._read_ahead: list[Record] = []  # by a read that failed later
        config = reader_config(properties, "kafkapy.schemas", "read_committed")
        self._consumer = create_client(Consumer, config, log.info)
        self._consumer.assign([Position(name, 0, 0)])

    def close(self) -> None:
        self._consumer.close()

    def read_stable(self) -> list[Record]:
        """The following records, without those of an open transaction; after `BEGINNING`, all.

        Raises:
            ApiError: the topic cannot be read.
        """
        return self._read(self._end(READ_COMMITTED))

    def read_all(self) -> list[Record]:
        """The following records. Waits for the end of an open transaction.

        Raises:
            ApiError: also if the topic ends before a record that was read: its leader does not know
                the end yet, or the consumer does not know yet that the topic was created again.
        """
        end = self._end(READ_UNCOMMITTED)
        if end < self._next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.partition} was read up to offset {self._next_offset}, and ends at {end}",
            )
        return self._read(end)

    def begin(self) -> Transaction:
        """Begin to write. The registry that wrote before cannot write any more.

        Raises:
            ApiError: the coordinator refuses, or does not respond.
        """
        # Reads the topic's id again, so that no write is decided on a topic that was replaced.
        self._cluster.invalidate_topics([self.partition.topic])
        name = f"{self.partition.topic}-writer"
        return Transaction(self._cluster, name, _TRANSACTION_TIMEOUT_MS)

    def write(self, transaction: Transaction, records: Sequence[Record]) -> None:
        """Write all records, or none.

        Raises:
            DeliveryError, ApiError: another registry has begun to write, or the write failed. After
                an ApiError, the records may be there.
        """
        producer = BatchProducer(
            self._cluster, ProducerSettings(delivery_timeout_ms=_WRITE_TIMEOUT_MS), transaction
        )
        now_ms = int(time.time() * 1000)
        rows = [RecordData(key, value, now_ms) for key, value in records]
        for start in range(0, len(rows), _BATCH_RECORDS):
            batch = build_batch(rows[start : start + _BATCH_RECORDS])
            producer.put(self.partition, bytearray(batch))
        producer.flush()
        transaction.end(committed=True)

    def pause(self, attempt: int) -> None:
        """Wait before the next attempt to write: a random time, longer with each attempt."""
        time.sleep(random.uniform(0, min(_PAUSE_S * 2**attempt, _PAUSE_MAX_S)))

    def _end(self, isolation_level: int) -> int:
        timestamps = {self.partition: LATEST_TIMESTAMP}
        found = self._cluster.list_offsets(timestamps, isolation_level)[self.partition]
        if found.error is not ErrorCode.NONE:
            raise ApiError(found.error, f"{self.partition}: {found.reason}")
        name = self.partition.topic
        topic_id = self._cluster.metadata([name]).topics[name].topic_id
        if self._topic_id not in (topic_id, ZERO_UUID):
            self._restart()
        elif found.offset < self._next_offset:
            self._poll()  # perhaps librdkafka finds that the topic lost records
        self._topic_id = topic_id
        return found.offset

    def _read(self, end: int) -> list[Record]:
        limit_s = self._cluster.api_timeout_ms / 1000  # without a record: a topic may be large
        deadline_s = time.monotonic() + limit_s
        while self._next_offset < end:
            position = self._next_offset
            self._poll()
            if self._next_offset != position:
                deadline_s = time.monotonic() + limit_s
            elif time.monotonic() > deadline_s:
                raise ApiError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{self.partition}: offset {position} was not read in time",
                )
        records, self._read_ahead = self._read_ahead, []
        return records

    def _poll(self) -> None:
        for message in self._consumer.consume(_BATCH_RECORDS, _POLL_S):
            error = message.error()
            is_in_topic = error is None or error.code() == KafkaError._PARTITION_EOF
            if is_in_topic and message.offset() < self._next_offset:
                # librdkafka goes back if the topic does not have the next offset.
                self._restart()
                return
            self._take(message)

    def _restart(self) -> None:
        """Read the topic from its beginning: it was created again, or lost records."""
        self._read_ahead, self._next_offset = [BEGINNING], 0
        self._consumer.assign([Position(self.partition.topic, self.partition.partition, 0)])

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is None:
            self._read_ahead.append(Record(message.key() or b"", message.value()))
            self._next_offset = message.offset() + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            self._next_offset = max(self._next_offset, message.offset())
        elif not error.retriable() and not is_of_unused_group(error):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.partition}: {error.str()}")
