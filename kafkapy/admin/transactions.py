"""Transactions: list, describe, abort (AdminClient's part of `TransactionsCommand`, KIP-664).

A broker without transactions answers UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.admin.all_coordinators import request_all_brokers
from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import TRANSACTION_KEY_TYPE, find_coordinator
from kafkapy.client.transaction import Transaction
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

# The version of ListTransactions that filters by age (KIP-994).
_DURATION_VERSION: Final = 1
_ABORT: Final = False


class TransactionListing(NamedTuple):
    """One transactional id, and the broker that coordinates it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """One transactional id. `start_ms` is None if no transaction is open."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


class ProducerState(NamedTuple):
    """A replica's state of one producer. None means "no transaction is open", -1 "unknown"."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None


def list_transactions(
    cluster: Cluster,
    *,
    duration_ms: int | None = None,
    producer_ids: Sequence[int] = (),
    id_pattern: re.Pattern[str] | None = None,
) -> list[TransactionListing]:
    """The transactional ids of every broker, sorted. With `duration_ms`, only those with a
    transaction that is open for longer; with `id_pattern`, only those that match as a whole.

    Raises:
        ApiError: a broker refused, is too old for the filter, or has no transactions.
    """
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if duration_ms is None else duration_ms,
    )
    min_version = None if duration_ms is None else _DURATION_VERSION
    found = []
    for broker_id, response in request_all_brokers(cluster, request, min_version):
        found += [
            TransactionListing(
                state.transactional_id, broker_id, state.producer_id, state.transaction_state
            )
            for state in response.transaction_states
            if id_pattern is None or id_pattern.fullmatch(state.transactional_id)
        ]
    return sorted(found)


def describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    """One transactional id.

    Raises:
        ApiError: TRANSACTIONAL_ID_NOT_FOUND, or its coordinator refused.
    """
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    # Without transactions, brokers have no coordinator for them, and its search would take long.
    cluster.channel().version_for(request)
    response = cluster.coordinator_request(
        transactional_id, request, key_type=TRANSACTION_KEY_TYPE, is_repeatable=True
    )
    coordinator = find_coordinator(cluster, transactional_id, TRANSACTION_KEY_TYPE)
    (state,) = response.transaction_states
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"DescribeTransactions request for transactionalId `{transactional_id}` failed because"
            " the ID could not be found.",
        )
    check(state.error_code)
    start_ms = state.transaction_start_time_ms
    return TransactionDescription(
        transactional_id,
        coordinator,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        start_ms if start_ms >= 0 else None,
        tuple(
            TopicPartition(topic.topic, partition)
            for topic in state.topics
            for partition in topic.partitions
        ),
    )


def describe_producers(
    cluster: Cluster, partition: TopicPartition, broker_id: int | None = None
) -> list[ProducerState]:
    """The producers of a partition at a replica (None: the leader), by id.

    Raises:
        ApiError: the partition does not exist, or the broker refused.
    """
    topic = TopicRequest(name=partition.topic, partition_indexes=[partition.partition])

    def send(replica_id: int) -> Any:
        response = cluster.request(DescribeProducersRequest(topics=[topic]), broker_id=replica_id)
        (found,) = response.topics[0].partitions
        check(found.error_code, found.error_message)
        return found

    if broker_id is None:
        found = _at_leader(cluster, partition, send, is_repeatable=True)
    else:
        found = send(broker_id)
    states = [
        ProducerState(
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.last_sequence,
            state.last_timestamp,
            state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
        )
        for state in found.active_producers
    ]
    return sorted(states)


def abort_transaction(
    cluster: Cluster,
    partition: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
) -> None:
    """Write an abort marker to one partition, without the coordinator.

    Raises:
        ApiError: the leader refused.
    """
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=_ABORT,
        topics=[
            WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        ],
        # It is -1 if the partition has had no marker yet.
        coordinator_epoch=max(coordinator_epoch, 0),
    )

    def send(leader: int) -> None:
        response = cluster.request(WriteTxnMarkersRequest(markers=[marker]), broker_id=leader)
        for code in _marker_codes(response.markers):
            check(code)

    _at_leader(cluster, partition, send)


def terminate_transaction(cluster: Cluster, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id, and fence its producer
    (`Admin.forceTerminateTransaction`, KIP-939).

    Raises:
        ApiError: TRANSACTIONAL_ID_NOT_FOUND, where Kafka's client would create the id; or its
            coordinator refused.
    """
    timeout_ms = describe_transaction(cluster, transactional_id).timeout_ms
    Transaction(cluster, transactional_id, timeout_ms)


def _at_leader(
    cluster: Cluster,
    partition: TopicPartition,
    send: Callable[[int], Any],
    *,
    is_repeatable: bool = False,
) -> Any:
    """Call `send` with a partition's leader. Retries look up the leader again."""

    def attempt() -> Any:
        try:
            return send(cluster.leader_of(partition))
        except ApiError:
            cluster.invalidate_topics([partition.topic])
            raise

    return cluster.retry(attempt, is_repeatable=is_repeatable)


def _marker_codes(markers: Iterable[Any]) -> list[int]:
    return [
        partition.error_code
        for marker in markers
        for topic in marker.topics
        for partition in topic.partitions
    ]
