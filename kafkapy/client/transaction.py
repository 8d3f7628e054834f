"""A producer's id and epoch, and one transaction, at its coordinator (KIP-98, KIP-360).

Each call is repeated while the coordinator moves, loads, or still writes the markers of the
previous transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.client.coordinators import TRANSACTION_KEY_TYPE, find_coordinator
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkapy.protocol.messages.end_txn import EndTxnRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.schema import Message

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

# From version 4 on AddPartitionsToTxn is for brokers.
_ADD_PARTITIONS_LAST_VERSION: Final = 3
# From version 5 on EndTxn bumps the epoch, which needs produce requests of version 12.
_END_LAST_VERSION: Final = 4
_NO_TIMEOUT_MS: Final = 2**31 - 1  # the value of Java's producers without a transaction


class ProducerIdentity(NamedTuple):
    """A producer's id and epoch; -1 and -1 for one that is not idempotent."""

    producer_id: int = -1
    producer_epoch: int = -1


def new_identity(cluster: Cluster) -> ProducerIdentity:
    """Get a new producer id for an idempotent producer, from any broker.

    Raises:
        ApiError: no broker assigns one: CLUSTER_AUTHORIZATION_FAILED, or none can be reached.
    """

    def request_identity() -> ProducerIdentity:
        return _identity(
            cluster.request(InitProducerIdRequest(transaction_timeout_ms=_NO_TIMEOUT_MS))
        )

    identity: ProducerIdentity = cluster.retry(request_identity)
    return identity


class Transaction:
    """The open transaction of a transactional id. `identity` is its producer."""

    def __init__(self, cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
        """Begin a transaction. The id's previous producer is fenced, and its open transaction
        aborted.

        Raises:
            ApiError: the coordinator refuses, or does not respond within the API timeout.
        """
        self.transactional_id = transactional_id
        self._cluster = cluster
        self._coordinator: int | None = None
        self._partitions: set[TopicPartition] = set()
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self.identity: ProducerIdentity = self._retry_at_coordinator(request, _identity)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction, before anything is written to them.

        Raises:
            ApiError: the coordinator's error, such as INVALID_PRODUCER_EPOCH for a fenced producer.
        """
        new = [each for each in partitions if each not in self._partitions]
        if not new:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(new).items()
            ],
        )
        self._retry_at_coordinator(
            request, _check_partitions, max_version=_ADD_PARTITIONS_LAST_VERSION
        )
        self._partitions.update(new)

    def end(self, committed: bool) -> None:
        """Commit or abort. A transaction without partitions needs neither.

        Raises:
            ApiError: the coordinator's error. After REQUEST_TIMED_OUT or NETWORK_EXCEPTION the
              outcome is unknown.
        """
        if not self._partitions:
            return
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            committed=committed,
        )
        self._retry_at_coordinator(
            request,
            lambda response: _check(response.error_code),
            max_version=_END_LAST_VERSION,
        )

    def _retry_at_coordinator(
        self, request: Message, read: Any, max_version: int | None = None
    ) -> Any:
        """Repeat a request to the coordinator until `read` finds no retriable error."""
        last: ApiError | None = None
        for _ in self._cluster.attempts():
            try:
                if self._coordinator is None:
                    self._coordinator = find_coordinator(
                        self._cluster, self.transactional_id, TRANSACTION_KEY_TYPE
                    )
                return read(
                    self._cluster.request(
                        request, broker_id=self._coordinator, max_version=max_version
                    )
                )
            except ApiError as error:
                if not (error.code.retriable or self._cluster.is_moved_error(error.code)):
                    raise ApiError(
                        error.code, f"Transaction {self.transactional_id}: {error.message}"
                    ) from None
                last = error
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._coordinator = None
        assert last is not None
        raise ApiError(last.code, f"Transaction {self.transactional_id}: {last.message}") from last


def _identity(response: Any) -> ProducerIdentity:
    _check(response.error_code)
    return ProducerIdentity(response.producer_id, response.producer_epoch)


def _check_partitions(response: Any) -> None:
    """Raise the first error of a partition. Errors of partitions that were skipped because of
    another come last.
    """
    codes = [
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
        if each.partition_error_code != ErrorCode.NONE
    ]
    root_errors = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    for code in root_errors or codes:
        _check(code)


def _check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise ApiError(ErrorCode(code))
