"""Administrators' requests: DescribeTransactions and ListTransactions (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.transactions.core import Core
from kafkapy.coordinator.transactions.messages import (
    DescribedTransaction,
    DescribeTransactions,
    DescribeTransactionsResult,
    ListedTransaction,
    ListTransactions,
    ListTransactionsResult,
)
from kafkapy.coordinator.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    Transaction,
    TransactionState,
)

_IDS_AT_ONCE: Final = 256


def describe_transactions(core: Core, token: Token, request: DescribeTransactions) -> None:
    """Describe each id, with an error of its own."""
    described = [_describe(core, name) for name in request.transactional_ids]
    core.outbox.reply(token, DescribeTransactionsResult(described))


def _describe(core: Core, name: str) -> DescribedTransaction:
    error = core.check(name)
    transaction = core.find(name)
    if error is ErrorCode.NONE and transaction is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if error is not ErrorCode.NONE or transaction is None:
        return DescribedTransaction(name, error)
    is_complete = transaction.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    return DescribedTransaction(
        name,
        ErrorCode.NONE,
        transaction.state.text,
        transaction.timeout_ms,
        transaction.start_ms,
        transaction.producer_id,
        transaction.producer_epoch,
        () if is_complete else sorted(transaction.partitions),
    )


def list_transactions(core: Core, token: Token, request: ListTransactions) -> None:
    """List the transactions of this coordinator; COORDINATOR_LOAD_IN_PROGRESS while it loads."""
    if not core.active:
        core.outbox.reply(token, ListTransactionsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    if any(partition.loading for partition in core.partitions.values()):
        core.outbox.reply(token, ListTransactionsResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    known = {state.text for state in TransactionState}
    unknown = [state for state in dict.fromkeys(request.states) if state not in known]
    listed = _listed([*core.loaded_transactions()], request, core.clock.time_ms())
    core.outbox.reply(token, ListTransactionsResult(ErrorCode.NONE, unknown, listed))


def _listed(
    transactions: Sequence[Transaction], request: ListTransactions, time_ms: int
) -> Iterator[list[ListedTransaction]]:
    states, producer_ids = set(request.states), set(request.producer_ids)
    for start in range(0, len(transactions), _IDS_AT_ONCE):
        yield [
            ListedTransaction(found.transactional_id, found.producer_id, found.state.text)
            for found in transactions[start : start + _IDS_AT_ONCE]
            if (not states or found.state.text in states)
            and (not producer_ids or found.producer_id in producer_ids)
            and (request.longer_than_ms < 0 or time_ms - found.start_ms > request.longer_than_ms)
        ]
