"""Records of a topic, for assertions."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafkapy.admin.errors import topic_error
from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import READ_COMMITTED, READ_UNCOMMITTED
from kafkapy.client.librdkafka import create_client, is_of_unused_group, reader_config
from kafkapy.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition

READ_LIMIT_S: Final = 60.0
_POLL_S: Final = 0.1

log: Final = logging.getLogger("kafkapy.testing")


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a consumer receives it. `timestamp_ms` is since the epoch."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_topic(
    servers: str, topic: str, read_committed: bool, properties: Mapping[str, str]
) -> list[Record]:
    """All records that a topic has at the call, by partition and offset. `properties` are those of
    a client.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION; TOPIC_AUTHORIZATION_FAILED; REQUEST_TIMED_OUT: not all
            records were read within `READ_LIMIT_S`.
    """
    with Cluster(servers, properties) as cluster:
        found = cluster.metadata([topic], refresh=True).topics[topic]
        if found.error is not ErrorCode.NONE:
            raise topic_error(found.error, topic, f"Topic '{topic}' does not exist")
        partitions = [TopicPartition(topic, index) for index in found.partitions]
        level = READ_COMMITTED if read_committed else READ_UNCOMMITTED
        # librdkafka would take half a second to find the first offsets.
        starts = _offsets(cluster, partitions, EARLIEST_TIMESTAMP, level)
        ends = _offsets(cluster, partitions, LATEST_TIMESTAMP, level)
    # Imported only here: tests with a client of their own do not need librdkafka.
    import confluent_kafka

    isolation_level = "read_committed" if read_committed else "read_uncommitted"
    config = reader_config(properties, "kafkapy.testing", isolation_level)
    config["bootstrap.servers"] = servers
    consumer = create_client(confluent_kafka.Consumer, config, log.info)
    try:
        consumer.assign([confluent_kafka.TopicPartition(*each, starts[each]) for each in starts])
        records = _read_to_the_ends(consumer, ends)
    finally:
        consumer.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int, isolation_level: int
) -> dict[TopicPartition, int]:
    found = cluster.list_offsets(dict.fromkeys(partitions, timestamp), isolation_level)
    for result in found.values():
        if result.error is not ErrorCode.NONE:
            raise ApiError(result.error, result.reason)
    return {topic_partition: result.offset for topic_partition, result in found.items()}


def _read_to_the_ends(consumer: Any, ends: Mapping[TopicPartition, int]) -> list[Record]:
    """The records before these offsets. A partition is complete at its present end, too: the last
    offset may be that of a transaction's marker, which is no record.
    """
    from confluent_kafka import KafkaError

    records: list[Record] = []
    unread = set(ends)
    deadline = time.monotonic() + READ_LIMIT_S
    while unread:
        message = consumer.poll(_POLL_S)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            unread.discard(TopicPartition(message.topic(), message.partition()))
        elif error is not None and not is_of_unused_group(error):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, error.str())
        elif error is None and message is not None:
            topic_partition = TopicPartition(message.topic(), message.partition())
            if message.offset() < ends[topic_partition]:
                records.append(_record(message))
            if message.offset() + 1 >= ends[topic_partition]:
                unread.discard(topic_partition)
        if unread and time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(unread)))
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT, f"Not read within {READ_LIMIT_S:.0f} s: {names}"
            )
    return records


def _record(message: Any) -> Record:
    return Record(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
