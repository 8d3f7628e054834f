"""No batch begins a transaction that its coordinator has not vouched for (KIP-890)."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.storage.producer_state import ProducerEntry, ProducerState
from kafkapy.storage.transaction_verification import TransactionVerification
from tests.harness.cores.ports import NOW_MS


@pytest.fixture
def state() -> ProducerState:
    return ProducerState()


def vouch(verification: TransactionVerification, producer_id: int = 7, epoch: int = 0) -> None:
    verification.confirm(producer_id, verification.begin(producer_id, epoch, 0, NOW_MS))


def refused(verification: TransactionVerification, epoch: int = 0) -> bool:
    try:
        verification.check(7, epoch, 0)
    except ApiError as error:
        return error.code is ErrorCode.INVALID_TXN_STATE
    return False


def test_the_first_batch_needs_a_vouched_for_producer(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    assert refused(verification)
    question = verification.begin(7, 0, 0, NOW_MS)
    assert refused(verification), "the coordinator has not answered"
    verification.confirm(7, question)
    assert not refused(verification)


def test_a_marker_in_between_makes_the_answer_worthless(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    question = verification.begin(7, 0, 0, NOW_MS)
    verification.on_transaction_ended(7, 0)
    verification.confirm(7, question)
    assert refused(verification)


def test_those_who_ask_at_the_same_time_share_a_question(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    assert verification.begin(7, 0, 0, NOW_MS) is verification.begin(7, 0, 0, NOW_MS)
    assert verification.begin(7, 1, 0, NOW_MS) is not verification.begin(8, 1, 0, NOW_MS)


def test_an_answer_is_for_its_epoch_only(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    vouch(verification, epoch=0)
    assert refused(verification, epoch=1)
    vouch(verification, epoch=1)
    assert not refused(verification, epoch=1)
    assert refused(verification, epoch=0)


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_batch_of_a_wrong_epoch_takes_no_answer_from_the_right_one(
    state: ProducerState, wrong: int
) -> None:
    verification = TransactionVerification(state, True)
    verification.begin(7, wrong, 0, NOW_MS)
    right = verification.begin(7, 1, 0, NOW_MS)
    verification.begin(7, wrong, 0, NOW_MS)
    verification.confirm(7, right)
    assert not refused(verification, epoch=1)
    assert refused(verification, epoch=wrong)


def test_a_refused_verification_is_not_remembered(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    question = verification.begin(7, 0, 0, NOW_MS)
    verification.drop(7, question)
    again = verification.begin(7, 0, 0, NOW_MS)
    verification.drop(7, question)
    assert again is not question
    assert verification.begin(7, 0, 0, NOW_MS) is again


def test_an_open_transaction_is_not_asked_about(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    state.producers[7] = ProducerEntry(7, producer_epoch=0, transaction_first_offset=3)
    assert not refused(verification)
    assert refused(verification, epoch=1)


def test_where_it_is_not_required_nobody_is_asked(state: ProducerState) -> None:
    verification = TransactionVerification(state, False)
    assert not verification.is_needed(7, 0)
    assert not refused(verification)


def test_a_batch_that_adds_its_partition_asks_even_there(state: ProducerState) -> None:
    assert TransactionVerification(state, False).is_needed(7, 0, adds_partition=True)


def test_a_transaction_does_not_begin_without_its_first_batch(state: ProducerState) -> None:
    """The coordinator may have refused the first one, and confirmed the second."""
    verification = TransactionVerification(state, True)
    verification.begin(7, 0, 3, NOW_MS)
    verification.begin(7, 0, 8, NOW_MS).is_confirmed = True
    with pytest.raises(ApiError) as caught:
        verification.check(7, 0, 8)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verification.check(7, 0, 3)


def test_the_marker_of_the_previous_transaction_does_not_end_the_next_one(
    state: ProducerState,
) -> None:
    """With version 2 both have the same epoch."""
    verification = TransactionVerification(state, True)
    verification.begin(7, 1, 0, NOW_MS, adds_partition=True).is_confirmed = True
    verification.on_transaction_ended(7, 1)
    assert not refused(verification, epoch=1)
    verification.on_transaction_ended(7, 2)
    assert refused(verification, epoch=1)


def test_a_confirmed_verification_expires_too(state: ProducerState) -> None:
    verification = TransactionVerification(state, True)
    vouch(verification)
    assert verification.expire(NOW_MS + 4, 5) == 0
    assert not refused(verification)
    assert verification.expire(NOW_MS + 5, 5) == 1
    assert refused(verification)


def test_nothing_stays_of_zombies_whose_successor_expired_before_it_was_confirmed(
    state: ProducerState,
) -> None:
    """An empty entry stayed for good."""
    verification = TransactionVerification(state, True)
    successor = verification.begin(7, 1, 0, NOW_MS)
    verification.begin(7, 0, 0, NOW_MS + 1)
    verification.expire(NOW_MS + 5, 5)
    verification.confirm(7, successor)
    assert not verification._by_producer
