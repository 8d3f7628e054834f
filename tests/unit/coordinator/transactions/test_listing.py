"""Transactions described and listed for administrators (KIP-664, KIP-994)."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.transactions.messages import ListTransactions, ListTransactionsResult
from tests.harness.cores.transaction_shell import T0, T1, TIMEOUT_MS, WALL_MS, TransactionShell


@pytest.fixture
def shell() -> TransactionShell:
    made = TransactionShell()
    made.add(made.begin("open"), T1, T0, name="open")
    made.clock.now_ms += 10
    made.begin("idle")
    return made


def listed(shell: TransactionShell, **filters: Any) -> ListTransactionsResult:
    result = shell.ask(shell.coordinator.list_transactions, ListTransactions(**filters))
    assert isinstance(result, ListTransactionsResult)
    return result


def names(result: ListTransactionsResult) -> list[str]:
    return [listed.transactional_id for listed in chain.from_iterable(result.transactions)]


def test_an_open_transaction_is_described(shell: TransactionShell) -> None:
    described = shell.describe("open")
    assert described[1:] == (
        ErrorCode.NONE, "Ongoing", TIMEOUT_MS, WALL_MS, 4001, 0, [T0, T1],
    )  # fmt: skip


def test_an_id_without_transaction_has_no_start(shell: TransactionShell) -> None:
    described = shell.describe("idle")
    assert (described.state, described.start_ms, described.partitions) == ("Empty", -1, [])


def test_an_id_that_is_not_known_is_not_found(shell: TransactionShell) -> None:
    assert shell.describe("x").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert shell.describe("").error is ErrorCode.INVALID_REQUEST


def test_each_filter_leaves_out_what_it_says(shell: TransactionShell) -> None:
    assert names(listed(shell)) == ["open", "idle"]
    assert names(listed(shell, states=["Ongoing"])) == ["open"]
    assert names(listed(shell, producer_ids=[4002])) == ["idle"]
    assert names(listed(shell, states=["Ongoing"], longer_than_ms=9)) == ["open"]
    assert names(listed(shell, states=["Ongoing"], longer_than_ms=10)) == []


def test_a_state_that_there_is_not_is_named(shell: TransactionShell) -> None:
    result = listed(shell, states=["Ongoing", "Nonsense"])
    assert (names(result), result.unknown_states) == (["open"], ["Nonsense"])


def test_a_list_that_would_lack_some_is_refused(shell: TransactionShell) -> None:
    shell.perform(shell.coordinator.unload(0))
    shell.coordinator.start_loading(0, 7)
    assert listed(shell).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shell.perform(shell.coordinator.shutdown())
    assert listed(shell).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_ids_are_listed_in_pieces_also_if_none_matches(shell: TransactionShell) -> None:
    for number in range(1_000):
        shell.begin(f"id-{number}")
    pieces = [*listed(shell).transactions]
    assert max(map(len, pieces)) <= 256
    assert len([*chain.from_iterable(pieces)]) == 1_002
    assert [*listed(shell, states=["Dead"]).transactions] == [[]] * len(pieces)
