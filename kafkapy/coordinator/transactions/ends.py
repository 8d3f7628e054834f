"""The end of a transaction: EndTxn, the fence of a previous producer, the timeout. The tables have
the effect of EndTxn in each state.

With transaction version 2 (KIP-890) each end assigns the next epoch. A late batch of the ended
transaction is refused, because the markers have that epoch. A producer that repeats its call has
the previous epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.transactions import markers
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import EndTransaction, EndTransactionResult
from kafkapy.coordinator.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
    TransactionState,
    Transition,
)

AnswerCallback = Callable[[ErrorCode], None]


class Ending(Enum):
    """The effects of EndTxn."""

    DECIDE = "decides the transaction"
    REPEAT = "succeeds again: the transaction was ended so"
    WAIT = "CONCURRENT_TRANSACTIONS: the markers are being written"


Rules = Mapping[tuple[TransactionState, bool], Ending]
"""The effects of EndTxn by state, and by whether it commits. Without a row, the error is
INVALID_TXN_STATE."""

_DECIDED_RULES: Final[Rules] = {
    (PREPARE_COMMIT, True): Ending.WAIT,
    (PREPARE_ABORT, False): Ending.WAIT,
    (COMPLETE_COMMIT, True): Ending.REPEAT,
    (COMPLETE_ABORT, False): Ending.REPEAT,
}
"""For a repeated call. With version 2, its epoch distinguishes it from the next call."""

_OPEN_RULES: Final[Rules] = {
    (ONGOING, True): Ending.DECIDE,
    (ONGOING, False): Ending.DECIDE,
}

RULES_WITHOUT_BUMP: Final[Rules] = {**_OPEN_RULES, **_DECIDED_RULES}
"""For transaction versions before 2."""

RULES_WITH_BUMP: Final[Rules] = {
    **_OPEN_RULES,
    (EMPTY, False): Ending.DECIDE,
    (COMPLETE_COMMIT, False): Ending.DECIDE,
    (COMPLETE_ABORT, False): Ending.DECIDE,
    (PREPARE_COMMIT, True): Ending.WAIT,
    (PREPARE_COMMIT, False): Ending.WAIT,
    (PREPARE_ABORT, True): Ending.WAIT,
    (PREPARE_ABORT, False): Ending.WAIT,
}
"""For version 2 and the current epoch. A producer may abort a transaction without partitions,
because it may not know whether its first batch added one."""

REPEATED_RULES_WITH_BUMP: Final[Rules] = _DECIDED_RULES
"""For version 2 and the previous epoch."""


def end_transaction(core: Core, token: Token, request: EndTransaction) -> None:
    """End a transaction. The answer is sent when the decision is in the log; the markers follow."""
    found = core.find_or_error(request.transactional_id)
    ending = _ending(found, request) if isinstance(found, Transaction) else found
    if not isinstance(found, Transaction) or isinstance(ending, ErrorCode):
        assert isinstance(ending, ErrorCode)
        core.outbox.reply(token, EndTransactionResult(ending))
        return
    bumps_epoch = request.client_version >= EPOCH_BUMP_VERSION
    needs_producer_id = bumps_epoch and ending is Ending.DECIDE and found.is_epoch_exhausted
    if needs_producer_id and request.new_producer_id == NO_PRODUCER_ID:
        core.awaiting_producer_id.append((token, request))
        return
    time_ms = core.clock.time_ms()
    if ending is Ending.REPEAT:
        to = found.prepare_repetition()
    elif bumps_epoch:
        next_id = request.new_producer_id if needs_producer_id else NO_PRODUCER_ID
        to = found.prepare_end_with_bump(
            commit=request.commit, time_ms=time_ms, next_producer_id=next_id
        )
    else:
        to = found.prepare_end(commit=request.commit, time_ms=time_ms)
    ticket = core.outbox.hold(token)

    def answer(error: ErrorCode) -> None:
        is_done = error is ErrorCode.NONE
        result = EndTransactionResult(error, to.next_producer) if is_done else None
        core.outbox.answer(ticket, result or EndTransactionResult(error))

    if ending is Ending.REPEAT:
        core.store(found, to, lambda _now_ms, error: answer(error))
    else:
        _decide(core, found, to, answer)


def _ending(transaction: Transaction, request: EndTransaction) -> Ending | ErrorCode:
    """The effect of a call, or its error."""
    producer = request.producer
    rules = RULES_WITHOUT_BUMP
    is_repeated = False
    if request.client_version >= EPOCH_BUMP_VERSION:
        # First: the pending transition may be the one that assigns this producer id.
        if transaction.pending is not None or transaction.is_next_producer(producer):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_repeated = transaction.is_ended_by(producer)
        rules = REPEATED_RULES_WITH_BUMP if is_repeated else RULES_WITH_BUMP
    if not is_repeated and producer.producer_id != transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not is_repeated and producer.producer_epoch != transaction.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    ending = rules.get((transaction.state, request.commit), ErrorCode.INVALID_TXN_STATE)
    return ErrorCode.CONCURRENT_TRANSACTIONS if ending is Ending.WAIT else ending


def _decide(core: Core, transaction: Transaction, to: Transition, answer: AnswerCallback) -> None:
    def stored(_now_ms: int, error: ErrorCode) -> None:
        answer(error)
        if error is ErrorCode.NONE:
            markers.begin(core, transaction)

    core.store(transaction, to, stored)


def fence_and_abort(core: Core, transaction: Transaction, answer: AnswerCallback) -> None:
    """Fence the producer with the next epoch, and abort its transaction.

    With version 2 the abort itself assigns that epoch, and the producer may go on with it. A
    producer id without another epoch is fenced as before version 2.
    """
    time_ms = core.clock.time_ms()
    if core.version() >= EPOCH_BUMP_VERSION and not transaction.is_epoch_exhausted:
        to = transaction.prepare_end_with_bump(commit=False, time_ms=time_ms)
        _decide(core, transaction, to, answer)
        return
    transaction.begin_fence(transaction.prepare_fence())

    def aborted(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            transaction.has_failed_epoch_fence = True
        answer(error)

    to = transaction.prepare_end(commit=False, time_ms=time_ms)
    _decide(core, transaction, to, aborted)


def abort_timed_out(core: Core) -> None:
    """Abort transactions that are open for longer than their producers' timeout."""
    time_ms = core.clock.time_ms()
    for transaction in list(core.loaded_transactions()):
        is_late = transaction.start_ms + transaction.timeout_ms < time_ms
        if transaction.state is ONGOING and transaction.pending is None and is_late:
            core.log.info(
                "Aborting the transaction of %s, open for more than %d ms",
                transaction.transactional_id,
                transaction.timeout_ms,
            )
            fence_and_abort(core, transaction, lambda _error: None)
