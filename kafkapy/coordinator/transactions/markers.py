"""Completes a decided transaction: writes a marker to each of its partitions, then the completion
to the log. Kafka: `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.core import Core, PendingCompletion
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.coordinator.transactions.state import PREPARE_COMMIT, PREPARED, Transaction

RETRY_BACKOFF_MS: Final = 100

_FINAL_ERRORS: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
"""The results after which a marker is not sent again. A log with an old message format has no
transactions to end."""

_SUPERSEDED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
"""The errors after another coordinator has taken over. It completes the transactions."""


def begin(core: Core, transaction: Transaction) -> None:
    """Send the markers of a decided transaction."""
    commit = transaction.state is PREPARE_COMMIT
    decision = Markers(
        transaction.transactional_id,
        Producer(transaction.producer_id, transaction.producer_epoch),
        commit,
        core.leader_epoch(transaction.transactional_id),
        tuple(sorted(transaction.partitions)),
        transaction.client_version,
    )
    completion = transaction.prepare_completion(core.clock.time_ms())
    pending = PendingCompletion(decision, completion, set(transaction.partitions))
    core.pending_completions[transaction.transactional_id] = pending
    if pending.remaining:
        core.markers.append(decision)
    else:
        _complete(core, transaction, pending)


def handle_outcomes(
    core: Core, now_ms: int, markers: Markers, errors: Mapping[TopicPartition, ErrorCode]
) -> None:
    """Record the outcome of some markers. Markers with a retriable error are sent again later."""
    pending = core.pending_completions.get(markers.transactional_id)
    transaction = core.find(markers.transactional_id)
    if pending is None or transaction is None or not _is_same_decision(pending.decision, markers):
        return  # of a previous coordinator or transaction
    if any(error in _SUPERSEDED for error in errors.values()):
        core.log.info("%s: another coordinator has taken over", markers.transactional_id)
        del core.pending_completions[markers.transactional_id]
        return
    retriable = tuple(
        partition for partition, error in errors.items() if error not in _FINAL_ERRORS
    )
    pending.remaining.difference_update(set(errors).difference(retriable))
    pending.leaderless.difference_update(errors)
    pending.leaderless.update(p for p in retriable if errors[p] is ErrorCode.LEADER_NOT_AVAILABLE)
    if retriable:
        retry = markers._replace(partitions=retriable)
        core.delayed_actions.append((now_ms + RETRY_BACKOFF_MS, partial(_retry, core, retry)))
    if not pending.remaining:
        _complete(core, transaction, pending)


def _retry(core: Core, markers: Markers, _now_ms: int) -> None:
    pending = core.pending_completions.get(markers.transactional_id)
    if pending is not None and _is_same_decision(pending.decision, markers):
        core.markers.append(markers)


def _is_same_decision(decision: Markers, markers: Markers) -> bool:
    return decision.coordinator_epoch == markers.coordinator_epoch and (
        decision.producer == markers.producer
    )


def _complete(core: Core, transaction: Transaction, pending: PendingCompletion) -> None:
    name = transaction.transactional_id

    def stored(now_ms: int, error: ErrorCode) -> None:
        if core.pending_completions.get(name) is not pending:
            return  # another broker coordinates the id
        if error is ErrorCode.NONE:
            del core.pending_completions[name]
        else:
            pending.append_failed = True
            core.delayed_actions.append((now_ms + RETRY_BACKOFF_MS, retry_append))

    def retry_append(_now_ms: int) -> None:
        if core.pending_completions.get(name) is pending and transaction.pending is None:
            pending.completion = transaction.prepare_completion(core.clock.time_ms())
            core.store(transaction, pending.completion, stored)

    core.store(transaction, pending.completion, stored)


def resume(core: Core, partition: int, leader_epoch: int) -> None:
    """Complete the decisions that the previous coordinator did not complete.

    Called once everything that was loaded is replicated. Kafka sends the markers as soon as it has
    loaded the log up to its end. A decision above the high watermark may still be lost with this
    broker: the next coordinator would then abort a transaction that is committed in some
    partitions.
    """
    state_partition = core.partitions.get(partition)
    if state_partition is None or state_partition.leader_epoch != leader_epoch:
        return
    for transaction in list(state_partition.transactions.values()):
        if (
            transaction.state in PREPARED
            and transaction.transactional_id not in core.pending_completions
        ):
            begin(core, transaction)
