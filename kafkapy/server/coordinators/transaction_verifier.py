"""Asks the coordinator whether a partition is part of a producer's transaction (KIP-890, part 1;
`kafka.server.AddPartitionsToTxnManager`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import (
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
    by_topic,
    partition_for_key,
)
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import PartitionsResult, VerifyPartitions
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.storage.transaction_verification import TransactionVerification, Verification

if TYPE_CHECKING:
    from kafkapy.server.coordinators.transaction_service import TransactionService
    from kafkapy.server.replicas.replica_manager import ReplicaManager

_VERSION: Final = 4

_COORDINATOR_AWAY: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Producers of any age try again after NOT_ENOUGH_REPLICAS, and look for no other leader."""

Errors = dict[TopicPartition, ErrorCode]
Verified = Callable[[Errors], None]


class Writing(NamedTuple):
    """A producer that is about to write to a partition within its transaction."""

    partition: TopicPartition
    producer: Producer


class TransactionVerifier:
    """Fixed: this broker's id, its own coordinator, and the way to the others."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        transactions: TransactionService,
        nodes: NodeClients,
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._replicas = replicas
        self._transactions = transactions
        self._nodes = nodes

    def unverified(self, writings: Sequence[Writing]) -> list[Writing]:
        """Those whose transactions would begin in partitions that are led here."""
        found = []
        for writing in writings:
            topic, index = writing.partition
            partition = self._replicas.partitions.get(topic, {}).get(index)
            if (
                partition is not None
                and partition.is_leader
                and partition.log.producers.verification.is_needed(*writing.producer)
            ):
                found.append(writing)
        return found

    def verify(
        self, transactional_id: str, writings: Sequence[Writing], verified: Verified
    ) -> None:
        """Ask about what `unverified` gave, of one producer, then call `verified` with the errors
        of those that may not be written to."""
        questions: dict[TopicPartition, tuple[TransactionVerification, Verification]] = {}
        for (topic, index), producer in writings:
            known = self._replicas.partitions[topic][index].log.producers.verification
            questions[TopicPartition(topic, index)] = known, known.begin(*producer)
        producer = writings[0].producer

        def answered(result: PartitionsResult) -> None:
            errors: Errors = {}
            for partition, (known, question) in questions.items():
                error = _to_producer(result.of(partition))
                if error is ErrorCode.NONE:
                    known.confirm(producer.producer_id, question)
                else:
                    errors[partition] = error
                    if error is not ErrorCode.NOT_ENOUGH_REPLICAS:
                        known.drop(producer.producer_id, question)
            verified(errors)

        self._ask(VerifyPartitions(transactional_id, producer, tuple(questions)), answered)

    def _ask(
        self, question: VerifyPartitions, answered: Callable[[PartitionsResult], None]
    ) -> None:
        topic = self._metadata.image.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            answered(PartitionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        index = partition_for_key(question.transactional_id, len(topic.partitions))
        known = topic.partitions.get(index)
        leader = -1 if known is None else known.leader
        if leader == self._broker_id:
            service = self._transactions
            service.ask(service.coordinator.verify_partitions, question, answered)
            return
        try:
            self._nodes.of(leader).call(
                _wire(question), _VERSION, lambda answer: answered(_result(answer))
            )
        except NodeUnavailable:
            answered(PartitionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def close(self) -> None:
        """Ask nobody any more."""
        self._nodes.close()


def _to_producer(error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NOT_ENOUGH_REPLICAS if error in _COORDINATOR_AWAY else error


def _wire(question: VerifyPartitions) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer.producer_id,
                producer_epoch=question.producer.producer_epoch,
                verify_only=True,
                topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                    for topic, partitions in by_topic(question.partitions).items()
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
