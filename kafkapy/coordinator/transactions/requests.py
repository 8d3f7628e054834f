"""Requests of producers, and of brokers on their behalf: InitProducerId, AddPartitionsToTxn,
EndTxn. Kafka: `kafka.coordinator.transaction.TransactionCoordinator`.

A call, also a repeated one, succeeds only after an append to the log. Kafka answers a repeated call
from memory. But a coordinator that was replaced, and does not know it yet, remembers an earlier
transaction: it would add the next one to it, or report it as committed.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Producer, Token
from kafkapy.coordinator.transactions import markers
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    EndTransaction,
    EndTransactionResult,
    InitProducerId,
    InitProducerIdResult,
    PartitionsResult,
    VerifyPartitions,
)
from kafkapy.coordinator.transactions.state import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    Transaction,
    Transition,
    is_epoch_exhausted,
)

Answer = Callable[[ErrorCode], None]


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
            core.want_producer_id.append((token, request))
            return
        transaction = Transaction(
            name, request.new_producer_id, last_update_ms=core.clock.time_ms()
        )
        core.partitions[core.partition_for(name)].transactions[name] = transaction
    error = _may_be_producer(transaction, request.expected)
    if error is not ErrorCode.NONE:
        core.outbox.reply(token, InitProducerIdResult(error))
    elif transaction.state is ONGOING:
        _fence(core, token, transaction)
    else:
        _next_producer(core, token, transaction, request)


def _may_be_producer(transaction: Transaction, expected: Producer | None) -> ErrorCode:
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and transaction.producer_epoch != NO_PRODUCER_EPOCH:
        repeats = expected.producer_id == transaction.last_producer_id and is_epoch_exhausted(
            expected.producer_epoch
        )
        if expected.producer_id != transaction.producer_id and not repeats:
            return ErrorCode.PRODUCER_FENCED
    if transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE


def _fence(core: Core, token: Token, transaction: Transaction) -> None:
    ticket = core.outbox.park(token)

    def fenced(error: ErrorCode) -> None:
        again = ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error
        core.outbox.answer(ticket, InitProducerIdResult(again))

    fence_and_abort(core, transaction, fenced)


def _next_producer(
    core: Core, token: Token, transaction: Transaction, request: InitProducerId
) -> None:
    expected_epoch = request.expected.producer_epoch if request.expected is not None else None
    time_ms = core.clock.time_ms()
    to: Transition | ErrorCode
    if transaction.is_epoch_exhausted and expected_epoch in (None, transaction.producer_epoch):
        if request.new_producer_id == NO_PRODUCER_ID:
            core.want_producer_id.append((token, request))
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
    ticket = core.outbox.park(token)
    result = InitProducerIdResult(ErrorCode.NONE, to.producer_id, to.producer_epoch)

    def stored(_now_ms: int, error: ErrorCode) -> None:
        is_done = error is ErrorCode.NONE
        core.outbox.answer(ticket, result if is_done else InitProducerIdResult(error))

    core.store(transaction, to, stored)


# partitions of a transaction


def _find(core: Core, name: str, producer: Producer) -> Transaction | ErrorCode:
    """The id with this producer, or the error."""
    error = core.check(name)
    if error is not ErrorCode.NONE:
        return error
    transaction = core.find(name)
    if transaction is None or transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return transaction


def add_partitions(core: Core, token: Token, request: AddPartitions) -> None:
    """Kafka: `handleAddPartitionsToTransaction`."""
    found = _find(core, request.transactional_id, request.producer)
    if isinstance(found, Transaction):
        error = _may_add(found, request)
    else:
        error = found
    if not isinstance(found, Transaction) or error is not ErrorCode.NONE:
        core.outbox.reply(token, PartitionsResult(error))
        return
    ticket = core.outbox.park(token)

    def stored(_now_ms: int, error: ErrorCode) -> None:
        core.outbox.answer(ticket, PartitionsResult(error))

    core.store(found, found.prepare_add(request.partitions, core.clock.time_ms()), stored)


def _may_add(transaction: Transaction, request: AddPartitions) -> ErrorCode:
    if transaction.producer_epoch != request.producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None or transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE


def verify_partitions(core: Core, token: Token, request: VerifyPartitions) -> None:
    """Kafka: `handleVerifyPartitionsInTransaction`. A pending transition does not matter, because
    the partition's own state checks the append again.
    """
    found = _find(core, request.transactional_id, request.producer)
    if not isinstance(found, Transaction):
        result = PartitionsResult(found)
    elif found.producer_epoch != request.producer.producer_epoch:
        result = PartitionsResult(ErrorCode.PRODUCER_FENCED)
    elif found.state in PREPARED:
        result = PartitionsResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    else:
        absent = set(request.partitions) - found.partitions
        result = PartitionsResult(errors=dict.fromkeys(absent, ErrorCode.TRANSACTION_ABORTABLE))
    core.outbox.reply(token, result)


# EndTxn


def end_transaction(core: Core, token: Token, request: EndTransaction) -> None:
    """End a transaction. The answer is sent when the decision is in the log; the markers follow."""
    found = _find(core, request.transactional_id, request.producer)
    error = _may_end(found, request) if isinstance(found, Transaction) else found
    if not isinstance(found, Transaction) or error not in (None, ErrorCode.NONE):
        core.outbox.reply(token, EndTransactionResult(error or ErrorCode.NONE))
        return
    ticket = core.outbox.park(token)

    def answer(error: ErrorCode) -> None:
        core.outbox.answer(ticket, EndTransactionResult(error))

    if error is None:
        _end(core, found, request.commit, answer)
    else:
        core.store(found, found.prepare_repetition(), lambda _now_ms, error: answer(error))


def _may_end(transaction: Transaction, request: EndTransaction) -> ErrorCode | None:
    """Check whether the transaction may end. None if it may; NONE if this repeats a call that
    succeeded.
    """
    if transaction.producer_epoch != request.producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    state, commit = transaction.state, request.commit
    if state is ONGOING:
        return None
    if state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
        return ErrorCode.NONE
    if state is (PREPARE_COMMIT if commit else PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _end(core: Core, transaction: Transaction, commit: bool, answer: Answer) -> None:
    def stored(_now_ms: int, error: ErrorCode) -> None:
        answer(error)
        if error is ErrorCode.NONE:
            markers.begin(core, transaction)

    core.store(
        transaction, transaction.prepare_end(commit=commit, time_ms=core.clock.time_ms()), stored
    )


def fence_and_abort(core: Core, transaction: Transaction, answer: Answer) -> None:
    """Fence the producer with an epoch that no producer has, then abort its transaction."""
    transaction.begin_fence(transaction.prepare_fence())

    def aborted(error: ErrorCode) -> None:
        if error not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            transaction.has_failed_epoch_fence = True
        answer(error)

    _end(core, transaction, False, aborted)


def abort_timed_out(core: Core) -> None:
    """Abort transactions that are open for longer than their producers' timeout."""
    time_ms = core.clock.time_ms()
    for transaction in list(core.loaded()):
        is_late = transaction.start_ms + transaction.timeout_ms < time_ms
        if transaction.state is ONGOING and transaction.pending is None and is_late:
            core.log.info(
                "Aborting the transaction of %s, open for more than %d ms",
                transaction.transactional_id,
                transaction.timeout_ms,
            )
            fence_and_abort(core, transaction, lambda _error: None)


def expire_ids(core: Core) -> None:
    """Remove transactional ids that were unused for long, once their tombstones are in the log."""
    before_ms = core.clock.time_ms() - core.config.transactional_id_expiration_ms
    for transaction in list(core.loaded()):
        if (
            transaction.state in AT_REST
            and transaction.pending is None
            and transaction.last_update_ms <= before_ms
        ):
            core.bury(transaction)
