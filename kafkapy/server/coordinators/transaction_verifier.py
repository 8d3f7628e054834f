"""Verifies with the coordinator that a partition is part of a producer's transaction, or adds it
(KIP-890; `kafka.server.AddPartitionsToTxnManager`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import (
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
    by_topic,
)
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    PartitionsResult,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.state import EPOCH_BUMP_VERSION
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkapy.server.coordinators.coordinator_log import CallLater
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.storage.transaction_verification import TransactionVerification, Verification

if TYPE_CHECKING:
    from kafkapy.server.coordinators.transaction_service import TransactionService
    from kafkapy.server.replicas.replica_manager import ReplicaManager

_VERSION: Final = 4
_RETRY_MS: Final = 20
_RETRIES_MS: Final = 100
"""The time limit of retries while the previous transaction is being completed. Kafka:
add.partitions.to.txn.retry.backoff.ms and .max.ms."""

_COORDINATOR_UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The errors that producers receive as NOT_ENOUGH_REPLICAS. Producers of all versions retry after
it, and do not look for another leader."""

_UNKNOWN_PRODUCER_ERRORS: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""The errors for ids and epochs that no producer has. Their batches' verification is dropped."""

Errors = dict[TopicPartition, ErrorCode]
OnVerified = Callable[[Errors], None]
TxnRequest = AddPartitions | VerifyPartitions
OnAnswer = Callable[[PartitionsResult], None]


class PendingWrite(NamedTuple):
    """A producer that is about to write to a partition within its transaction. `adds`: the broker
    adds the partition to the transaction (version 2). Before version 2 the producer did this.
    """

    partition: TopicPartition
    producer: Producer
    sequence: int = 0
    adds: bool = False


class TransactionVerifier:
    """Requests of a partition leader to transaction coordinators, on this broker and on others."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        transactions: TransactionService,
        nodes: NodeClients,
        clock: Clock,
        call_later: CallLater,
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._replicas = replicas
        self._transactions = transactions
        self._nodes = nodes
        self._clock = clock
        self._call_later = call_later

    def writes_to_verify(self, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
        """The writes that would begin a transaction in a partition that this broker leads."""
        found = []
        for write in writes:
            topic, index = write.partition
            partition = self._replicas.partitions.get(topic, {}).get(index)
            if (
                partition is not None
                and partition.is_leader
                and partition.log.producers.verification.is_needed(*write.producer, write.adds)
            ):
                found.append(write)
        return found

    def verify(
        self, transactional_id: str, writes: Sequence[PendingWrite], on_verified: OnVerified
    ) -> None:
        """Verify or add the writes of one producer that `writes_to_verify` returned. Then call
        `on_verified` with the errors of the partitions that may not be written to.
        """
        verifications: dict[TopicPartition, tuple[TransactionVerification, Verification]] = {}
        now_ms = self._clock.time_ms()
        for partition, producer, sequence, adds in writes:
            log = self._replicas.partitions[partition.topic][partition.partition].log
            known = log.producers.verification
            # With version 2 each transaction has its own epoch, and its sequences begin with 0.
            lowest = 0 if adds else sequence
            verifications[partition] = known, known.begin(*producer, lowest, now_ms, adds)
        _, producer, _, adds = writes[0]

        def on_answer(result: PartitionsResult) -> None:
            errors: Errors = {}
            for partition, (known, verification) in verifications.items():
                error = _to_producer(result.error_for(partition))
                if error is ErrorCode.NONE:
                    known.confirm(producer.producer_id, verification)
                else:
                    errors[partition] = error
                    if error in _UNKNOWN_PRODUCER_ERRORS:
                        known.drop(producer.producer_id, verification)
            on_verified(errors)

        partitions = tuple(verifications)
        if adds:
            request = AddPartitions(transactional_id, producer, partitions, EPOCH_BUMP_VERSION)
            self._add(request, on_answer, self._clock.monotonic_ms() + _RETRIES_MS)
        else:
            self._request(VerifyPartitions(transactional_id, producer, partitions), on_answer)

    def _add(self, request: AddPartitions, on_answer: OnAnswer, until_ms: int) -> None:
        """Add partitions. The request is repeated while the previous transaction is being
        completed: the producer begins the next one as soon as that is decided, and its own retry
        would take longer.
        """

        def added(result: PartitionsResult) -> None:
            errors = {result.error_for(partition) for partition in request.partitions}
            is_late = self._clock.monotonic_ms() + _RETRY_MS > until_ms
            if ErrorCode.CONCURRENT_TRANSACTIONS in errors and not is_late:
                retry = partial(self._add, request, on_answer, until_ms)
                self._call_later(_RETRY_MS / 1000, retry)
            else:
                on_answer(result)

        self._request(request, added)

    def _request(self, request: TxnRequest, on_answer: OnAnswer) -> None:
        image = self._metadata.image
        topic = image.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            on_answer(PartitionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        index = self._transactions.coordinator.partition_for(request.transactional_id)
        known = topic.partitions.get(index)
        leader = -1 if known is None else known.leader
        if leader == self._broker_id:
            service = self._transactions
            if isinstance(request, AddPartitions):
                if any(image.partition(*each) is None for each in request.partitions):
                    # This broker leads a partition that is not in the metadata yet. The partition
                    # would count as deleted, and get no marker.
                    on_answer(PartitionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                    return
                service.run_internal(service.coordinator.add_partitions, request, on_answer)
            else:
                service.run_internal(service.coordinator.verify_partitions, request, on_answer)
            return
        try:
            self._nodes.client_for(leader).call(
                _wire(request), _VERSION, lambda answer: on_answer(_result(answer))
            )
        except NodeUnavailable:
            on_answer(PartitionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def close(self) -> None:
        """Drop the connections."""
        self._nodes.close()


def _to_producer(error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NOT_ENOUGH_REPLICAS if error in _COORDINATOR_UNAVAILABLE else error


def _wire(request: TxnRequest) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=request.transactional_id,
                producer_id=request.producer.producer_id,
                producer_epoch=request.producer.producer_epoch,
                verify_only=isinstance(request, VerifyPartitions),
                topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                    for topic, partitions in by_topic(request.partitions).items()
                ],
            )
        ]
    )


def _result(answer: Any) -> PartitionsResult:
    if isinstance(answer, NodeUnavailable):
        return PartitionsResult(ErrorCode.NETWORK_EXCEPTION)
    if answer.error_code:
        return PartitionsResult(ErrorCode(answer.error_code))
    errors = {
        TopicPartition(topic.name, row.partition_index): ErrorCode(row.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for row in topic.results_by_partition
    }
    return PartitionsResult(ErrorCode.NETWORK_EXCEPTION, errors)
