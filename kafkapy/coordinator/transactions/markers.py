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
from kafkapy.coordinator.transactions.core import Core, Unmarked
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.coordinator.transactions.state import PREPARE_COMMIT, PREPARED, Transaction

RETRY_BACKOFF_MS: Final = 100

_TOLD: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
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
    unmarked = Unmarked(decision, completion, set(transaction.partitions))
    core.unmarked[transaction.transactional_id] = unmarked
    if unmarked.remaining:
        core.markers.append(decision)
    else:
        _complete(core, transaction, unmarked)


def written(
    core: Core, now_ms: int, markers: Markers, errors: Mapping[TopicPartition, ErrorCode]
) -> None:
    """Record the outcome of some markers. Markers with a retriable error are sent again later."""
    unmarked = core.unmarked.get(markers.transactional_id)
    transaction = core.find(markers.transactional_id)
    if unmarked is None or transaction is None or not _same(unmarked.decision, markers):
        return  # of a previous coordinator or transaction
    if any(error in _SUPERSEDED for error in errors.values()):
        core.log.info("%s: another coordinator has taken over", markers.transactional_id)
        del core.unmarked[markers.transactional_id]
        return
    again = tuple(partition for partition, error in errors.items() if error not in _TOLD)
    unmarked.remaining.difference_update(set(errors).difference(again))
    unmarked.leaderless.difference_update(errors)
    unmarked.leaderless.update(p for p in again if errors[p] is ErrorCode.LEADER_NOT_AVAILABLE)
    if again:
        retry = markers._replace(partitions=again)
        core.later.append((now_ms + RETRY_BACKOFF_MS, partial(_retry, core, retry)))
    if not unmarked.remaining:
        _complete(core, transaction, unmarked)


def _retry(core: Core, markers: Markers, _now_ms: int) -> None:
    unmarked = core.unmarked.get(markers.transactional_id)
    if unmarked is not None and _same(unmarked.decision, markers):
        core.markers.append(markers)


def _same(decision: Markers, markers: Markers) -> bool:
    return decision.coordinator_epoch == markers.coordinator_epoch and (
        decision.producer == markers.producer
    )


def _complete(core: Core, transaction: Transaction, unmarked: Unmarked) -> None:
    name = transaction.transactional_id

    def stored(now_ms: int, error: ErrorCode) -> None:
        if core.unmarked.get(name) is not unmarked:
            return  # another broker coordinates the id
        if error is ErrorCode.NONE:
            del core.unmarked[name]
        else:
            unmarked.append_failed = True
            core.later.append((now_ms + RETRY_BACKOFF_MS, again))

    def again(_now_ms: int) -> None:
        if core.unmarked.get(name) is unmarked and transaction.pending is None:
            unmarked.completion = transaction.prepare_completion(core.clock.time_ms())
            core.store(transaction, unmarked.completion, stored)

    core.store(transaction, unmarked.completion, stored)


def resume(core: Core, partition: int, leader_epoch: int) -> None:
    """Complete the decisions that the previous coordinator did not complete.

    Called once everything that was loaded is replicated. Kafka sends the markers as soon as it has
    loaded the log up to its end. A decision above the high watermark may still be lost with this
    broker: the next coordinator would then abort a transaction that is committed in some
    partitions.
    """
    held = core.partitions.get(partition)
    if held is None or held.leader_epoch != leader_epoch:
        return
    for transaction in list(held.transactions.values()):
        if transaction.state in PREPARED and transaction.transactional_id not in core.unmarked:
            begin(core, transaction)
