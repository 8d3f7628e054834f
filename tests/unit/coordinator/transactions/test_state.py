"""One transactional id: epochs that fence, and transitions that the log must have first."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.transactions.state import (
    LAST_EPOCH,
    VALID_PREVIOUS_STATES,
    Transaction,
    TransactionState,
    Transition,
)

S = TransactionState
T0 = TopicPartition("t", 0)


def transaction(state: TransactionState = S.EMPTY, epoch: int = 3, **fields: Any) -> Transaction:
    return Transaction("x", 7, epoch, state=state, timeout_ms=60, **fields)


def done(subject: Transaction, to: Transition | ErrorCode) -> Transition:
    assert isinstance(to, Transition)
    subject.complete(to)
    return to


def test_each_state_is_reached_from_kafkas_states_only() -> None:
    """KIP-98, KIP-360 for the fence, KIP-890 for aborts: TransactionState.validPreviousStates."""
    rest = {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
    assert {to: set(froms) for to, froms in VALID_PREVIOUS_STATES.items()} == {
        S.EMPTY: rest,
        S.ONGOING: rest | {S.ONGOING},
        S.PREPARE_COMMIT: {S.ONGOING},
        S.PREPARE_ABORT: rest | {S.ONGOING, S.PREPARE_EPOCH_FENCE},
        S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
        S.COMPLETE_ABORT: {S.PREPARE_ABORT},
        S.DEAD: rest,
        S.PREPARE_EPOCH_FENCE: {S.ONGOING},
    }


def test_states_are_named_as_kafkas_tools_name_them() -> None:
    assert [S.EMPTY.text, S.PREPARE_COMMIT.text, S.PREPARE_EPOCH_FENCE.text] == [
        "Empty",
        "PrepareCommit",
        "PrepareEpochFence",
    ]


def test_a_prepared_transition_changes_nothing_until_it_is_complete() -> None:
    subject = transaction()
    to = subject.prepare_add([T0], 500)
    assert (subject.state, subject.partitions, subject.pending) == (S.EMPTY, set(), S.ONGOING)
    subject.complete(to)
    assert (subject.state, subject.partitions, subject.start_ms) == (S.ONGOING, {T0}, 500)
    assert subject.pending is None


def test_an_abandoned_transition_leaves_the_state_as_it_was() -> None:
    subject = transaction()
    subject.prepare_add([T0], 500)
    subject.abandon()
    assert (subject.state, subject.partitions, subject.pending) == (S.EMPTY, set(), None)


def test_a_transition_out_of_order_is_a_fault() -> None:
    with pytest.raises(AssertionError):
        transaction(S.EMPTY).prepare_end(commit=True, time_ms=1)
    subject = transaction()
    subject.prepare_add([T0], 1)
    with pytest.raises(AssertionError):
        subject.prepare_add([T0], 2)


def test_a_transaction_starts_with_its_first_partition() -> None:
    subject = transaction(S.COMPLETE_ABORT, start_ms=100)
    done(subject, subject.prepare_add([T0], 500))
    done(subject, subject.prepare_add([TopicPartition("t", 1)], 600))
    assert (subject.start_ms, subject.last_update_ms) == (500, 600)
    assert subject.partitions == {T0, TopicPartition("t", 1)}


def test_an_end_keeps_the_partitions_until_completion() -> None:
    subject = transaction(S.ONGOING, partitions={T0}, start_ms=5)
    done(subject, subject.prepare_end(commit=False, time_ms=9))
    assert (subject.state, subject.partitions) == (S.PREPARE_ABORT, {T0})
    done(subject, subject.prepare_completion(10))
    assert (subject.state, subject.partitions, subject.start_ms) == (S.COMPLETE_ABORT, set(), 5)


# epochs


def test_a_producer_without_expectation_gets_the_next_epoch() -> None:
    subject = transaction(epoch=3)
    to = done(subject, subject.prepare_next_epoch(70, None, 1))
    assert (to.producer_epoch, to.last_producer_epoch, to.timeout_ms) == (4, -1, 70)


def test_a_producer_that_repeats_its_call_gets_the_same_epoch() -> None:
    subject = transaction(epoch=3)
    assert done(subject, subject.prepare_next_epoch(60, 3, 1)).producer_epoch == 4
    assert done(subject, subject.prepare_next_epoch(60, 3, 2)).producer_epoch == 4
    assert subject.last_producer_epoch == 3


def test_a_producer_of_an_older_epoch_is_fenced() -> None:
    subject = transaction(epoch=3)
    assert subject.prepare_next_epoch(60, 1, 1) is ErrorCode.PRODUCER_FENCED
    assert subject.pending is None


def test_a_new_instance_fences_the_one_whose_call_is_repeated() -> None:
    subject = transaction(epoch=3)
    done(subject, subject.prepare_next_epoch(60, 3, 1))
    done(subject, subject.prepare_next_epoch(60, None, 2))
    assert subject.prepare_next_epoch(60, 3, 3) is ErrorCode.PRODUCER_FENCED


def test_the_last_epoch_is_kept_for_fencing() -> None:
    assert not transaction(epoch=LAST_EPOCH - 2).is_epoch_exhausted
    assert transaction(epoch=LAST_EPOCH - 1).is_epoch_exhausted
    fence = transaction(S.ONGOING, epoch=LAST_EPOCH - 1).prepare_fence()
    assert fence.producer_epoch == LAST_EPOCH


def test_another_producer_id_remembers_the_one_before() -> None:
    subject = transaction(epoch=LAST_EPOCH - 1)
    done(subject, subject.prepare_new_producer_id(8, 60, 1, keeps_last_epoch=True))
    assert (subject.producer_id, subject.producer_epoch) == (8, 0)
    assert (subject.last_producer_id, subject.last_producer_epoch) == (7, LAST_EPOCH - 1)


def test_a_fence_that_the_log_refused_does_not_use_another_epoch_up() -> None:
    subject = transaction(S.ONGOING, epoch=3)
    subject.begin_fence(subject.prepare_fence())
    assert subject.producer_epoch == 4
    subject.has_failed_epoch_fence = True
    assert subject.prepare_fence().producer_epoch == 4
