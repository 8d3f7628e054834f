"""Finds transactions that will never end (`TransactionsCommand.FindHangingTransactionsCommand`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkapy.admin.errors import topic_error
from kafkapy.admin.transactions import (
    ProducerState,
    TransactionDescription,
    describe_producers,
    describe_transaction,
    list_transactions,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition


class OpenTransaction(NamedTuple):
    """A transaction that is open in one partition."""

    partition: TopicPartition
    producer: ProducerState


def candidates(
    producers: Mapping[TopicPartition, Iterable[ProducerState]], now_ms: int, timeout_ms: int
) -> list[OpenTransaction]:
    """Open transactions whose last record is older than the longest transaction allowed."""
    return [
        OpenTransaction(partition, state)
        for partition, states in producers.items()
        for state in states
        if state.start_offset is not None and now_ms - state.last_timestamp_ms > timeout_ms
    ]


def hanging(
    found: Iterable[OpenTransaction],
    id_of_producer: Mapping[int, str],
    descriptions: Mapping[str, TransactionDescription],
) -> list[OpenTransaction]:
    """The transactions that their coordinator does not list: no transactional id has the producer
    id, the transactional id does not exist any more, or its transaction does not include the
    partition.
    """

    def is_known(each: OpenTransaction) -> bool:
        transactional_id = id_of_producer.get(each.producer.producer_id)
        described = None if transactional_id is None else descriptions.get(transactional_id)
        return described is not None and each.partition in described.partitions

    return [each for each in found if not is_known(each)]


def find_hanging(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    now_ms: int,
    timeout_ms: int,
    broker_id: int | None = None,
) -> list[OpenTransaction]:
    """Request open transactions from a broker (None: the leaders), then check old ones at their
    coordinators.

    Raises:
        ConfigError: a request failed; the message names it.
        ApiError: the brokers do not support transactions.
    """
    producers = {each: producers_of(cluster, each, broker_id) for each in partitions}
    old = candidates(producers, now_ms, timeout_ms)
    if not old:
        return []
    ids = sorted({each.producer.producer_id for each in old})
    try:
        listed = list_transactions(cluster, producer_ids=ids)
    except ApiError as error:
        raise ConfigError(f"Failed to list transactions: {error}") from error
    descriptions = {}
    for listing in listed:
        try:
            described = describe_transaction(cluster, listing.transactional_id)
        except ApiError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise ConfigError(
                    "Failed to describe transaction state of transactional-id"
                    f" `{listing.transactional_id}`: {error}"
                ) from error
            continue
        descriptions[listing.transactional_id] = described
    by_producer = {listing.producer_id: listing.transactional_id for listing in listed}
    return hanging(old, by_producer, descriptions)


def producers_of(
    cluster: Cluster, partition: TopicPartition, broker_id: int | None = None
) -> list[ProducerState]:
    """`describe_producers`, with the error text of Kafka's tool.

    Raises:
        ConfigError: the request failed; the message has the broker and the error.
        ApiError: the broker does not support transactions.
    """
    try:
        return describe_producers(cluster, partition, broker_id)
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise
        where = "leader" if broker_id is None else f"broker {broker_id}"
        raise ConfigError(
            f"Failed to describe producers for partition {partition} on {where}: {error}"
        ) from error


def partitions_on(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    """The partitions to check: the named one; else those of a topic, those with a replica on a
    broker, or both.

    Raises:
        ConfigError: the topic does not exist, or the broker does not describe it.
    """
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    topics = cluster.metadata(None if topic is None else [topic]).topics
    if topic is not None and topics[topic].error:
        error = topic_error(topics[topic].error, topic, f"Topic {topic} does not exist")
        raise ConfigError(f"Failed to describe topics: {error}")
    return [
        TopicPartition(each.name, index)
        for each in topics.values()
        for index, state in each.partitions.items()
        if broker_id is None or broker_id in state.replicas
    ]
