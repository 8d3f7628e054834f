"""Requests of producers, and of brokers on their behalf: InitProducerId, AddPartitionsToTxn.
Kafka: `kafka.coordinator.transaction.TransactionCoordinator`.

A call, also a repeated one, succeeds only after an append to the log. Kafka answers a repeated call
from memory. But a replaced coordinator that is not yet aware of its successor has an earlier
transaction in memory: it would add the next one to it, or report it as committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Producer, Token
from kafkapy.coordinator.transactions import ends
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    InitProducerId,
    InitProducerIdResult,
    PartitionsResult,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.state import (
    IDLE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARED,
    Transaction,
    Transition,
    is_epoch_exhausted,
)

_TOMBSTONE_BYTES: Final = 16
_BATCH_BYTES: Final = 64 * 1024
"""The size of the tombstones in one batch. It is far below any limit of the topic."""

# InitProducerId


def init_producer_id(core: Core, token: Token, request: InitProducerId) -> None:
    """Kafka: `handleInitProducerId`. An open transaction is aborted first: the producer gets
    CONCURRENT_TRANSACTIONS, and retries.
    """
    name = request.transactional_id
    limit_ms = core.config.transaction_max_timeout_ms
    error = core.check(name)
    if name and not 0 < request.timeout_ms <= limit_ms:
        error = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    if error is not ErrorCode.NONE:
        core.outbox.reply(token, InitProducerIdResult(error))
        return
    transaction = core.find(name)
    if transaction is None:
        if request.new_producer_id == NO_PRODUCER_ID:
            core.awaiting_producer_id.append((token, request))
            return
        transaction = Transaction(
            name, request.new_producer_id, last_update_ms=core.clock.time_ms()
        )
        core.partitions[core.partition_for(name)].transactions[name] = transaction
    error = _check_next_producer(transaction, request.expected)
    if error is not ErrorCode.NONE:
        core.outbox.reply(token, InitProducerIdResult(error))
    elif transaction.state is ONGOING:
        _fence(core, token, transaction)
    else:
        _next_producer(core, token, transaction, request)


def _check_next_producer(transaction: Transaction, expected: Producer | None) -> ErrorCode:
    if transaction.pending is not None or (expected and transaction.is_next_producer(expected)):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and transaction.producer_epoch != NO_PRODUCER_EPOCH:
        is_repeated = expected.producer_id == transaction.last_producer_id and is_epoch_exhausted(
            expected.producer_epoch
        )
        if expected.producer_id != transaction.producer_id and not is_repeated:
            return ErrorCode.PRODUCER_FENCED
    if transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE


def _fence(core: Core, token: Token, transaction: Transaction) -> None:
    ticket = core.outbox.hold(token)

    def fenced(error: ErrorCode) -> None:
        error_code = ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error
        core.outbox.answer(ticket, InitProducerIdResult(error_code))

    ends.fence_and_abort(core, transaction, fenced)


def _next_producer(
    core: Core, token: Token, transaction: Transaction, request: InitProducerId
) -> None:
    expected_epoch = request.expected.producer_epoch if request.expected is not None else None
    time_ms = core.clock.time_ms()
    to: Transition | ErrorCode
    if transaction.is_epoch_exhausted and expected_epoch in (None, transaction.producer_epoch):
        if request.new_producer_id == NO_PRODUCER_ID:
            core.awaiting_producer_id.append((token, request))
            return
        to = transaction.prepare_new_producer_id(
            request.new_producer_id,
            request.timeout_ms,
            time_ms,
            keeps_last_epoch=expected_epoch is not None,
        )
    else:
        to = transaction.prepare_next_epoch(request.timeout_ms, expected_epoch, time_ms)
    if isinstance(to, ErrorCode):
        core.outbox.reply(token, InitProducerIdResult(to))
        return
    ticket = core.outbox.hold(token)
    result = InitProducerIdResult(ErrorCode.NONE, to.producer_id, to.producer_epoch)

    def stored(_now_ms: int, error: ErrorCode) -> None:
        is_done = error is ErrorCode.NONE
        core.outbox.answer(ticket, result if is_done else InitProducerIdResult(error))

    core.store(transaction, to, stored)


# partitions of a transaction


def add_partitions(core: Core, token: Token, request: AddPartitions) -> None:
    """Kafka: `handleAddPartitionsToTransaction`."""
    found = core.find_or_error(request.transactional_id)
    error = _check_add(found, request.producer) if isinstance(found, Transaction) else found
    if not isinstance(found, Transaction) or error is not ErrorCode.NONE:
        core.outbox.reply(token, PartitionsResult(error))
        return
    ticket = core.outbox.hold(token)

    def stored(_now_ms: int, error: ErrorCode) -> None:
        core.outbox.answer(ticket, PartitionsResult(error))

    time_ms = core.clock.time_ms()
    to = found.prepare_add(request.partitions, time_ms, request.client_version)
    core.store(found, to, stored)


def _check_add(transaction: Transaction, producer: Producer) -> ErrorCode:
    # First: the pending transition may be the one that assigns this producer id.
    if transaction.pending is not None or transaction.is_next_producer(producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    error = _check_current_producer(transaction, producer)
    if error is ErrorCode.NONE and transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return error


def _check_current_producer(transaction: Transaction, producer: Producer) -> ErrorCode:
    """NONE if this is the present producer of the id, else the error."""
    if transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def verify_partitions(core: Core, token: Token, request: VerifyPartitions) -> None:
    """Kafka: `handleVerifyPartitionsInTransaction`. A pending transition does not matter, because
    the partition's own state checks the append again.
    """
    found = core.find_or_error(request.transactional_id)
    error = (
        _check_current_producer(found, request.producer)
        if isinstance(found, Transaction)
        else found
    )
    if not isinstance(found, Transaction) or error is not ErrorCode.NONE:
        result = PartitionsResult(error)
    elif found.state in PREPARED:
        result = PartitionsResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    else:
        absent = set(request.partitions) - found.partitions
        result = PartitionsResult(errors=dict.fromkeys(absent, ErrorCode.TRANSACTION_ABORTABLE))
    core.outbox.reply(token, result)


def expire_ids(core: Core) -> None:
    """Remove expired transactional ids, after their tombstones are in the log."""
    before_ms = core.clock.time_ms() - core.config.transactional_id_expiration_ms
    for index, state_partition in core.partitions.items():
        expired = [
            transaction
            for transaction in state_partition.transactions.values()
            if not state_partition.loading
            and transaction.state in IDLE
            and transaction.pending is None
            and transaction.last_update_ms <= before_ms
        ]
        for batch in _batches(expired):
            core.remove_expired(index, batch)


def _batches(transactions: Iterable[Transaction]) -> Iterator[list[Transaction]]:
    """Split ids into batches. Many may expire at once, and an append for each would stop the
    broker."""
    batch: list[Transaction] = []
    size = 0
    for transaction in transactions:
        batch.append(transaction)
        size += len(transaction.transactional_id) + _TOMBSTONE_BYTES
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
