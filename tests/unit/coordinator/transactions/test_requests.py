"""Requests of producers: fencing, partitions logged before records, decisions that stay."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.log_records import transaction_key, transaction_value
from kafkapy.coordinator.transactions.messages import InitProducerId
from kafkapy.coordinator.transactions.state import LAST_EPOCH, TransactionState, Transition
from kafkapy.record.builder import RecordData
from tests.harness.cores.transaction_shell import ID, T0, T1, TIMEOUT_MS, WALL_MS, TransactionShell


@pytest.fixture
def shell() -> TransactionShell:
    return TransactionShell()


def next_epoch(producer: Producer) -> Producer:
    return Producer(producer.producer_id, producer.producer_epoch + 1)


# InitProducerId


def test_a_new_id_gets_a_producer_id_of_its_own(shell: TransactionShell) -> None:
    assert shell.begin("a") == (4001, 0)
    assert shell.begin("b") == (4002, 0)


def test_a_second_instance_fences_the_first(shell: TransactionShell) -> None:
    first = shell.begin()
    second = shell.begin()
    assert second == next_epoch(first)
    assert shell.add(first, T0) is ErrorCode.PRODUCER_FENCED
    assert shell.add(second, T0) is ErrorCode.NONE


def test_the_answer_waits_for_the_log(shell: TransactionShell) -> None:
    shell.held = []
    assert shell.init() is None
    shell.release()
    assert [reply.error for reply in shell.replies.values()] == [ErrorCode.NONE]


def test_nobody_is_the_producer_while_it_is_being_decided(shell: TransactionShell) -> None:
    shell.begin()
    shell.held = []
    shell.init()
    assert shell.init().error is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_the_log_refuses_is_not_so(
    shell: TransactionShell, stored: ErrorCode, told: ErrorCode
) -> None:
    producer = shell.begin()
    shell.append_error = stored
    assert shell.init().error is told
    shell.append_error = ErrorCode.NONE
    assert shell.add(producer, T0) is ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_brokers_is_refused(shell: TransactionShell, timeout_ms: int) -> None:
    result = shell.ask(shell.coordinator.init_producer_id, InitProducerId(ID, timeout_ms))
    assert result.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_timeout_is_refused_by_any_broker() -> None:
    shell = TransactionShell(load=False)
    result = shell.ask(shell.coordinator.init_producer_id, InitProducerId(ID, 0))
    assert result.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_id_is_refused(shell: TransactionShell) -> None:
    assert shell.init("").error is ErrorCode.INVALID_REQUEST


def test_an_open_transaction_is_aborted_first(shell: TransactionShell) -> None:
    first = shell.begin()
    shell.add(first, T0)
    assert shell.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    (decision,) = shell.markers
    assert (decision.commit, decision.partitions) == (False, (T0,))
    assert decision.producer == next_epoch(first), "or the old producer could write on"
    assert shell.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.mark()
    assert shell.begin() == next_epoch(next_epoch(first))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),  # no descriptor was free
    ],
)
def test_a_fence_that_is_not_stored_is_tried_again_with_the_same_epoch(
    shell: TransactionShell, error: ErrorCode, told: ErrorCode
) -> None:
    first = shell.begin()
    shell.add(first, T0)
    shell.append_error = error
    for _ in range(3):
        assert shell.init().error is told
    shell.append_error = ErrorCode.NONE
    shell.init()
    assert shell.markers[0].producer == next_epoch(first)


def test_a_producer_goes_on_where_it_was_but_not_if_another_took_over(
    shell: TransactionShell,
) -> None:
    first = shell.begin()
    again = shell.init(expected=first)
    assert (again.producer_id, again.producer_epoch) == next_epoch(first)
    assert shell.init(expected=first) == again, "its answer was lost"
    shell.begin()
    assert shell.init(expected=first).error is ErrorCode.PRODUCER_FENCED
    stranger = Producer(9, 0)
    assert shell.init(expected=stranger).error is ErrorCode.PRODUCER_FENCED


def shell_at_epoch(epoch: int) -> TransactionShell:
    shell = TransactionShell(load=False)
    to = Transition(
        TransactionState.COMPLETE_COMMIT, 7, epoch, -1, TIMEOUT_MS, frozenset(), WALL_MS, WALL_MS
    )
    shell.lead(1, [RecordData(transaction_key(ID), transaction_value(to), WALL_MS)])
    return shell


def test_an_id_without_epochs_left_gets_another_producer_id() -> None:
    assert shell_at_epoch(LAST_EPOCH - 2).begin() == (7, LAST_EPOCH - 1)
    assert shell_at_epoch(LAST_EPOCH - 1).begin() == (4001, 0)


def test_a_repeated_call_for_another_producer_id_gets_the_same_one() -> None:
    shell = shell_at_epoch(LAST_EPOCH - 1)
    last = Producer(7, LAST_EPOCH - 1)
    first = shell.init(expected=last)
    again = shell.init(expected=last)
    assert (first.producer_id, first.producer_epoch) == (4001, 0)
    assert (again.producer_id, again.producer_epoch) == (4001, 0)


def test_a_repeated_call_for_the_last_epoch_gets_it_again() -> None:
    shell = shell_at_epoch(LAST_EPOCH - 2)
    before = Producer(7, LAST_EPOCH - 2)
    first, again = shell.init(expected=before), shell.init(expected=before)
    assert (first.producer_id, first.producer_epoch) == (7, LAST_EPOCH - 1)
    assert again == first, "Kafka's coordinator fails here"
    assert shell.init(expected=Producer(7, 3)).error is ErrorCode.PRODUCER_FENCED


# partitions


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_in_the_epoch_that_no_producer_gets_is_aborted(version: int) -> None:
    shell = shell_at_epoch(LAST_EPOCH)
    shell.version = version
    intruder = Producer(7, LAST_EPOCH)
    assert shell.add(intruder, T0) is ErrorCode.NONE
    other = shell.begin("other")
    shell.add(other, T1, name="other")
    shell.pass_time(TIMEOUT_MS + 1)
    shell.perform(shell.coordinator.abort_timed_out(shell.now_ms))
    assert [decision.transactional_id for decision in shell.markers] == [ID, "other"]
    assert shell.markers[0].producer == intruder
    shell.mark()
    assert shell.begin().producer_epoch == 0


def test_an_instance_aborts_a_transaction_in_the_epoch_that_no_producer_gets() -> None:
    shell = shell_at_epoch(LAST_EPOCH)
    shell.add(Producer(7, LAST_EPOCH), T0)
    assert shell.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.mark()
    assert shell.begin().producer_epoch == 0


def test_partitions_are_in_the_log_before_the_answer(shell: TransactionShell) -> None:
    producer = shell.begin()
    shell.held = []
    assert shell.add(producer, T0) is None
    assert shell.add(producer, T1) is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.release()
    assert shell.state == "Ongoing"
    assert shell.add(producer, T1) is ErrorCode.NONE
    assert list(shell.describe().partitions) == [T0, T1]


def test_a_replaced_coordinator_confirms_nothing_from_memory(shell: TransactionShell) -> None:
    """It has not heard yet that another broker leads: its appends get no acks."""
    producer = shell.begin()
    shell.add(producer, T0, T1)
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert shell.add(producer, T1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    assert shell.add(producer, T1) is ErrorCode.NONE
    shell.end(producer)
    shell.mark()
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert shell.end(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    assert shell.end(producer) is ErrorCode.NONE
    shell.restart()
    assert shell.state == "CompleteCommit"


def test_only_the_producer_adds(shell: TransactionShell) -> None:
    producer = shell.begin()
    assert shell.add(Producer(9, 0), T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert shell.add(next_epoch(producer), T0) is ErrorCode.PRODUCER_FENCED
    assert shell.add(producer, T0, name="other") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_broker_hears_which_partitions_are_not_in_the_transaction(
    shell: TransactionShell,
) -> None:
    producer = shell.begin()
    shell.add(producer, T0)
    result = shell.verify(producer, T0, T1)
    assert result.error_for(T0) is ErrorCode.NONE
    assert result.error_for(T1) is ErrorCode.TRANSACTION_ABORTABLE
    assert shell.verify(next_epoch(producer), T0).error_for(T0) is ErrorCode.PRODUCER_FENCED
    assert shell.verify(Producer(9, 0), T0).error_for(T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    shell.end(producer)
    assert shell.verify(producer, T0).error_for(T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.mark()
    assert shell.verify(producer, T0).error_for(T0) is ErrorCode.TRANSACTION_ABORTABLE


# EndTxn


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_is_answered_before_the_markers(shell: TransactionShell, commit: bool) -> None:
    producer = shell.begin()
    shell.add(producer, T0)
    shell.held = []
    assert shell.end(producer, commit) is None
    assert not shell.markers, "the log does not have it yet"
    shell.release()
    assert shell.replies[max(shell.replies)].error is ErrorCode.NONE
    assert shell.state == ("PrepareCommit" if commit else "PrepareAbort")
    assert shell.end(producer, commit) is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.mark()
    assert shell.state == ("CompleteCommit" if commit else "CompleteAbort")
    assert shell.end(producer, commit) is ErrorCode.NONE
    assert shell.end(producer, not commit) is ErrorCode.INVALID_TXN_STATE


def test_what_was_not_begun_cannot_be_ended(shell: TransactionShell) -> None:
    producer = shell.begin()
    assert shell.end(producer) is ErrorCode.INVALID_TXN_STATE
    assert shell.end(next_epoch(producer)) is ErrorCode.PRODUCER_FENCED


def test_the_next_transaction_waits_for_the_markers_of_the_last(shell: TransactionShell) -> None:
    producer = shell.begin()
    shell.add(producer, T0)
    shell.end(producer)
    assert shell.add(producer, T1) is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.mark()
    assert shell.add(producer, T1) is ErrorCode.NONE
    assert list(shell.describe().partitions) == [T1]


def test_a_decision_that_is_not_stored_is_none(shell: TransactionShell) -> None:
    producer = shell.begin()
    shell.add(producer, T0)
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert shell.end(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shell.append_error = ErrorCode.NONE
    assert (shell.state, shell.markers) == ("Ongoing", [])
    assert shell.end(producer, commit=False) is ErrorCode.NONE


# by the clock


def test_a_transaction_open_for_too_long_is_aborted(shell: TransactionShell) -> None:
    producer = shell.begin()
    shell.add(producer, T0)
    shell.clock.now_ms += TIMEOUT_MS
    shell.perform(shell.coordinator.abort_timed_out(shell.now_ms))
    assert not shell.markers, "not before its time is over"
    shell.clock.now_ms += 1
    shell.perform(shell.coordinator.abort_timed_out(shell.now_ms))
    (decision,) = shell.markers
    assert (decision.commit, decision.producer) == (False, next_epoch(producer))
    shell.mark()
    assert shell.state == "CompleteAbort"
    assert shell.add(producer, T0) is ErrorCode.PRODUCER_FENCED


def test_an_id_that_is_not_used_expires_and_one_in_use_does_not(shell: TransactionShell) -> None:
    busy = shell.begin("busy")
    shell.add(busy, T0, name="busy")
    shell.begin("idle")
    shell.clock.now_ms += shell.config.transactional_id_expiration_ms
    shell.perform(shell.coordinator.expire_ids(shell.now_ms))
    assert shell.describe("idle").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert shell.log[-1].value is None, "the log forgets it too"
    assert shell.describe("busy").state == "Ongoing"


def test_an_id_does_not_expire_without_its_tombstone(shell: TransactionShell) -> None:
    producer = shell.begin()
    shell.clock.now_ms += shell.config.transactional_id_expiration_ms
    shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.perform(shell.coordinator.expire_ids(shell.now_ms))
    shell.append_error = ErrorCode.NONE
    assert shell.add(producer, T0) is ErrorCode.NONE


def test_ids_that_expire_together_are_one_batch(shell: TransactionShell) -> None:
    """An append for each would stop the broker for as long as they take: an application that makes
    its ids anew has thousands."""
    for number in range(1_000):
        shell.begin(f"idle-{number}")
    shell.clock.now_ms += shell.config.transactional_id_expiration_ms
    effects = shell.coordinator.expire_ids(shell.now_ms)
    assert [len(append.records) for append in effects.appends] == [1_000]
    assert shell.init("idle-0").error is ErrorCode.CONCURRENT_TRANSACTIONS
    shell.perform(effects)
    assert not shell.coordinator.ids_by_state()


def test_long_ids_that_expire_together_fit_into_their_batches(shell: TransactionShell) -> None:
    for number in range(100):
        shell.begin(f"{number}".zfill(30_000))
    shell.clock.now_ms += shell.config.transactional_id_expiration_ms
    effects = shell.coordinator.expire_ids(shell.now_ms)
    sizes = [sum(len(r.key or b"") for r in append.records) for append in effects.appends]
    assert max(sizes) < 100_000
    shell.perform(effects)
    assert not shell.coordinator.ids_by_state()


def test_ids_whose_coordinator_moves_before_their_tombstones_are_stored_stay_with_the_next(
    shell: TransactionShell,
) -> None:
    shell.begin("one")
    shell.begin("two")
    shell.clock.now_ms += shell.config.transactional_id_expiration_ms
    shell.held = []
    shell.perform(shell.coordinator.expire_ids(shell.now_ms))
    shell.lead(2)
    shell.release()
    assert shell.describe("one").state == shell.describe("two").state == "Empty"
    assert shell.init("one").error is ErrorCode.NONE
