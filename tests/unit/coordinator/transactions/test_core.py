"""A transition counts once the log has it, and only for the leadership that wrote it."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from tests.harness.cores.transaction_shell import T0, TransactionShell


def test_each_transition_is_one_record_of_its_id() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.add(producer, T0)
    shell.end(producer)
    shell.mark()
    states = [record.value[16] for record in shell.log if record.value]
    assert states == [0, 1, 2, 4], "Empty, Ongoing, PrepareCommit, CompleteCommit"
    assert len({record.key for record in shell.log}) == 1


def test_an_append_of_an_earlier_leadership_changes_nothing() -> None:
    shell = TransactionShell()
    producer = shell.begin()
    shell.held = []
    shell.add(producer, T0)
    (append,) = shell.held
    shell.held = None
    shell.lead(2)
    shell.finish(append)
    assert shell.state == "Empty"
    assert shell.replies[max(shell.replies) - 1].error is ErrorCode.NOT_COORDINATOR
