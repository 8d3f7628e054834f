"""The face of the coordinator: deadlines, tokens, partitions."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import TransactionConfig
from kafkapy.coordinator.transactions.markers import RETRY_BACKOFF_MS
from tests.harness.cores.transaction_shell import T0, TransactionShell


def test_it_asks_to_be_called_when_something_is_to_be_repeated() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    shell.end(producer)
    assert shell.coordinator.next_deadline_ms() is None
    shell.mark(ErrorCode.NETWORK_EXCEPTION)
    assert shell.coordinator.next_deadline_ms() == shell.now_ms + RETRY_BACKOFF_MS
    shell.pass_time(RETRY_BACKOFF_MS)
    assert shell.coordinator.next_deadline_ms() is None


def test_a_connection_that_is_gone_gets_no_answer_and_its_request_happens() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.held = []
    shell.add(producer, T0)
    shell.coordinator.drop_token(max([2, *shell.replies]))
    shell.release()
    assert shell.state == "Ongoing"
    assert 2 not in shell.replies


def test_ids_are_spread_over_the_partitions_that_there_are() -> None:
    shell = TransactionShell(TransactionConfig(), load=False)
    assert shell.coordinator.partition_for("payments") == 13
    shell.coordinator.set_num_partitions(4)
    assert shell.coordinator.partition_for("payments") < 4


def test_after_shutdown_nobody_is_served() -> None:
    shell = TransactionShell()
    shell.perform(shell.coordinator.shutdown())
    assert shell.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
