"""A decision reaches every partition, however often it must be sent, and only then is complete."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.markers import RETRY_BACKOFF_MS
from kafkapy.coordinator.transactions.state import TransactionState
from tests.harness.cores.call_counts import assert_at_most
from tests.harness.cores.transaction_shell import T0, T1, TransactionShell


@pytest.fixture
def shell() -> TransactionShell:
    return TransactionShell()


def decide(shell: TransactionShell) -> Producer:
    producer = shell.begin()
    shell.add(producer, T0, T1)
    shell.end(producer)
    return producer


def test_a_decision_says_who_and_by_which_coordinator(shell: TransactionShell) -> None:
    producer = decide(shell)
    (decision,) = shell.markers
    assert (decision.producer, decision.commit) == (producer, True)
    assert (decision.coordinator_epoch, decision.partitions) == (1, (T0, T1))


def test_it_is_complete_when_the_last_partition_has_its_marker(shell: TransactionShell) -> None:
    decide(shell)
    (decision,) = shell.markers
    for partition, state in ((T0, "PrepareCommit"), (T1, "CompleteCommit")):
        errors = {partition: ErrorCode.NONE}
        shell.perform(shell.coordinator.markers_written(shell.now_ms, decision, errors))
        assert shell.state == state


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.LEADER_NOT_AVAILABLE,
    ],
)
def test_a_marker_that_was_not_written_is_tried_again(
    shell: TransactionShell, error: ErrorCode
) -> None:
    decide(shell)
    (decision,) = shell.markers
    shell.markers.clear()
    errors = {T0: ErrorCode.NONE, T1: error}
    shell.perform(shell.coordinator.markers_written(shell.now_ms, decision, errors))
    leaderless = error is ErrorCode.LEADER_NOT_AVAILABLE
    assert shell.coordinator.num_leaderless() == leaderless
    shell.pass_time(RETRY_BACKOFF_MS - 1)
    assert not shell.markers, "not at once: the leader may need a moment"
    shell.pass_time(1)
    assert [again.partitions for again in shell.markers] == [(T1,)]
    shell.mark()
    assert shell.state == "CompleteCommit"
    assert shell.coordinator.num_leaderless() == 0


def test_many_that_wait_for_a_leader_cost_each_other_nothing(shell: TransactionShell) -> None:
    """The shell asks for the next deadline after each answer."""
    coordinator = shell.coordinator
    for number in range(200):
        name = f"id-{number}"
        producer = shell.begin(name)
        shell.add(producer, T0, name=name)
        shell.end(producer, name=name)
    decisions = list(shell.markers)
    shell.markers.clear()

    def ask_all() -> None:
        for decision in decisions:
            errors = {T0: ErrorCode.LEADER_NOT_AVAILABLE}
            coordinator.markers_written(shell.now_ms, decision, errors)
            assert coordinator.next_deadline_ms() == shell.now_ms + RETRY_BACKOFF_MS

    assert_at_most(50, ask_all, len(decisions))
    assert coordinator.num_leaderless() == len(decisions)
    shell.pass_time(RETRY_BACKOFF_MS)
    assert len(shell.markers) == len(decisions)
    shell.mark()
    assert coordinator.num_leaderless() == 0


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
def test_who_was_superseded_does_not_complete(shell: TransactionShell, error: ErrorCode) -> None:
    decide(shell)
    size = len(shell.log)
    shell.mark(error)
    shell.pass_time(10 * RETRY_BACKOFF_MS)
    assert (shell.markers, len(shell.log)) == ([], size)


def test_a_partition_of_an_old_format_has_nothing_to_end(shell: TransactionShell) -> None:
    decide(shell)
    shell.mark(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    assert shell.state == "CompleteCommit"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,  # no descriptor was free: the partition is led as before
        ErrorCode.MESSAGE_TOO_LARGE,
    ],
)
def test_a_completion_that_is_not_stored_is_tried_again(
    shell: TransactionShell, error: ErrorCode
) -> None:
    decide(shell)
    shell.append_error = error
    shell.mark()
    assert shell.state == "PrepareCommit"
    shell.pass_time(RETRY_BACKOFF_MS)
    shell.append_error = ErrorCode.NONE
    assert shell.state == "PrepareCommit"
    assert shell.coordinator.num_append_retries() == 1
    assert shell.coordinator.ids_by_state() == {TransactionState.PREPARE_COMMIT: 1}
    shell.pass_time(RETRY_BACKOFF_MS)
    assert shell.state == "CompleteCommit"
    assert shell.coordinator.num_append_retries() == 0
    assert shell.coordinator.ids_by_state() == {TransactionState.COMPLETE_COMMIT: 1}


def test_the_answer_of_an_earlier_decision_does_not_count_for_this_one(
    shell: TransactionShell,
) -> None:
    producer = decide(shell)
    (first,) = shell.markers
    shell.mark()
    shell.begin()
    second = Producer(producer.producer_id, producer.producer_epoch + 1)
    shell.add(second, T0)
    shell.end(second)
    errors = dict.fromkeys(first.partitions, ErrorCode.NONE)
    shell.perform(shell.coordinator.markers_written(shell.now_ms, first, errors))
    assert shell.state == "PrepareCommit"


def test_a_new_coordinator_ends_what_was_decided(shell: TransactionShell) -> None:
    producer = decide(shell)
    shell.restart(epoch=2)
    (decision,) = shell.markers
    assert (decision.producer, decision.commit) == (producer, True)
    assert (decision.coordinator_epoch, decision.partitions) == (2, (T0, T1))
    shell.mark()
    assert shell.state == "CompleteCommit"


def test_a_coordinator_that_leads_no_more_sends_nothing(shell: TransactionShell) -> None:
    decide(shell)
    shell.mark(ErrorCode.NETWORK_EXCEPTION)
    shell.perform(shell.coordinator.unload(0))
    shell.pass_time(10 * RETRY_BACKOFF_MS)
    assert not shell.markers
