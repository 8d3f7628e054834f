"""AddPartitionsToTxn (key 24), versions 0-5.

Behaviour: adds partitions to the producer's transaction. The response is sent when they are in the
coordinator's log. If a partition does not exist, none is added: that partition gets
UNKNOWN_TOPIC_OR_PARTITION, the others OPERATION_NOT_ATTEMPTED. Clients get
TOPIC_AUTHORIZATION_FAILED for internal topics. Version notes: v4 and later are sent by brokers, for
many transactions. Partitions are added, for producers with transaction version 2, or only verified
(KIP-890). Below v2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import INTERNAL_TOPICS, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    PartitionsResult,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.state import EPOCH_BUMP_VERSION
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafkapy.server.api.handler_support import gather, transactional_error
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.transaction_service import TransactionService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, Work, chunks, hash_units, run_now

_FIRST_BATCHED_VERSION = 4
_FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def handle(
    transactions: TransactionService,
    metadata: MetadataCache,
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
) -> Work[Outcome[AddPartitionsToTxnResponse]]:
    """Add partitions to each transaction. The response waits for all."""
    requested_transactions = _transactions(request, context.version)
    starts = []
    for transaction in requested_transactions:
        partitions, errors = yield from _check_partitions(metadata, transaction, context.version)
        starts.append(partial(_add, transactions, transaction, partitions, errors, context.version))
        yield 1

    def response(results: list[PartitionsResult]) -> Work[AddPartitionsToTxnResponse]:
        rows = []
        for transaction, result in zip(requested_transactions, results, strict=True):
            rows.append((yield from _row(transaction, result, context.version)))
        return _response(rows, context.version)

    longest = max((hash_units(each.transactional_id) for each in requested_transactions), default=0)
    return (yield from gather(starts, response, ROW_UNITS + 2 * longest))


def _check_partitions(
    metadata: MetadataCache, transaction: AddPartitionsToTxnTransaction, version: int
) -> Work[tuple[list[TopicPartition], dict[TopicPartition, ErrorCode]]]:
    """The distinct partitions in the request, and errors for partitions that cannot be added."""
    image = metadata.image
    partitions, errors = [], {}
    for topic in transaction.topics:
        is_forbidden = version < _FIRST_BATCHED_VERSION and topic.name in INTERNAL_TOPICS
        # Repeated partitions of a topic get one row in the response.
        topic.partitions = list(dict.fromkeys(topic.partitions))
        for index in topic.partitions:
            partition = TopicPartition(topic.name, index)
            partitions.append(partition)
            if is_forbidden:
                errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(*partition) is None:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield ROW_UNITS // 2
        yield 1
    return partitions, errors


def _transactions(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    if version >= _FIRST_BATCHED_VERSION:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def _add(
    service: TransactionService,
    transaction: AddPartitionsToTxnTransaction,
    partitions: list[TopicPartition],
    errors: dict[TopicPartition, ErrorCode],
    version: int,
    on_result: Callable[[PartitionsResult], None],
) -> None:
    if errors:
        on_result(PartitionsResult(ErrorCode.OPERATION_NOT_ATTEMPTED, errors))
        return
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        service.run_internal(
            service.coordinator.verify_partitions,
            VerifyPartitions(transaction.transactional_id, producer, partitions),
            on_result,
        )
    else:
        service.run_internal(
            service.coordinator.add_partitions,
            AddPartitions(
                transaction.transactional_id,
                producer,
                partitions,
                EPOCH_BUMP_VERSION if version >= _FIRST_BATCHED_VERSION else 0,
            ),
            on_result,
        )


def _row(
    transaction: AddPartitionsToTxnTransaction, result: PartitionsResult, version: int
) -> Work[AddPartitionsToTxnResult]:
    topics = []
    for topic in transaction.topics:
        topic_result = AddPartitionsToTxnTopicResult(name=topic.name)
        topics.append(topic_result)
        for few in chunks(topic.partitions):
            topic_result.results_by_partition += [
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=transactional_error(
                        result.error_for(TopicPartition(topic.name, index)),
                        version,
                        _FIRST_VERSION_WITH_PRODUCER_FENCED,
                    ),
                )
                for index in few
            ]
            yield 2 * len(few)
        yield 1
    yield 1
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id, topic_results=topics
    )


def _response(rows: list[AddPartitionsToTxnResult], version: int) -> AddPartitionsToTxnResponse:
    if version < _FIRST_BATCHED_VERSION:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows[0].topic_results)
    return AddPartitionsToTxnResponse(results_by_transaction=rows)


def refuse(
    request: AddPartitionsToTxnRequest, error: ApiError, version: int
) -> AddPartitionsToTxnResponse:
    """The same error for every partition; from v4 on, one top-level error."""
    if version >= _FIRST_BATCHED_VERSION:
        return AddPartitionsToTxnResponse(error_code=error.code)
    result = PartitionsResult(error.code)
    rows = [run_now(_row(each, result, version)) for each in _transactions(request, version)]
    return _response(rows, version)
