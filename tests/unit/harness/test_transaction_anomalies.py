"""The judge of transactions finds each anomaly in a history that has it, none in a clean one."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tests.harness.faults.anomalies import Mode, Outcome, Poll, Send, run_of
from tests.harness.faults.transaction_anomalies import (
    ANOMALIES,
    CopiedTopic,
    Instance,
    Key,
    PolledRecords,
    SentRecord,
    Transaction,
    TransactionHistory,
    TransactionOutcome,
    cycles,
)

LOG, COPY = Key("log", 0), Key("copy", 0)
BY = Instance("id", "first", 0.0, 1.0)
Records = Sequence[tuple[int, int]]


def transaction(
    *sent: tuple[int, int],
    outcome: TransactionOutcome = TransactionOutcome.COMMITTED,
    polls: Sequence[Records] = (),
    instance: Instance = BY,
    began: float = 2.0,
    key: Key = LOG,
) -> Transaction:
    """`sent` are offsets and values; commit was called one after it began."""
    return Transaction(
        instance,
        began,
        [SentRecord(key, value, offset) for offset, value in sent],
        [PolledRecords(LOG, [o for o, _ in records], [v for _, v in records]) for records in polls],
        inf if outcome is TransactionOutcome.ABORTED else began + 1,
        outcome,
    )


def history(*transactions: Transaction, read: Records = (), at: float = 9.0) -> TransactionHistory:
    """With one poll of an assigned reader."""
    made = TransactionHistory(["log", "copy"])
    made.transactions += transactions
    made.topics["log"].polls.append(Poll("reader", Mode.ASSIGN, 0, *run_of(list(read)), at))
    return made


def found(given: TransactionHistory) -> list[str]:
    return [name for name, cases in given.judge().items() if cases]


def test_a_clean_history_has_none() -> None:
    given = history(
        transaction((0, 1), (1, 2)),
        transaction((3, 3), outcome=TransactionOutcome.ABORTED),
        transaction((5, 4), (6, 5), outcome=TransactionOutcome.UNKNOWN),
        transaction((8, 6), outcome=TransactionOutcome.UNKNOWN),
        transaction((10, 7), polls=[[(0, 1)], [(1, 2), (5, 4)], [(6, 5)]]),
        read=[(0, 1), (1, 2), (5, 4), (6, 5), (10, 7)],
    )
    assert found(given) == []
    assert set(given.judge()) == set(ANOMALIES)


def test_aborted_read() -> None:
    assert found(
        history(transaction((0, 1), outcome=TransactionOutcome.ABORTED), read=[(0, 1)])
    ) == ["G1a"]


def test_read_before_commit_was_called() -> None:
    assert found(history(transaction((0, 1)), read=[(0, 1)], at=2.5)) == ["G1b"]


def test_read_by_its_own_transaction() -> None:
    assert found(history(transaction((0, 1), polls=[[(0, 1)]]), read=[(0, 1)])) == ["G1b"]


def test_part_of_a_transaction() -> None:
    given = history(transaction((0, 1), (1, 2), outcome=TransactionOutcome.UNKNOWN), read=[(0, 1)])
    assert found(given) == ["G1b"]


def test_cycle_of_writes_is_reported() -> None:
    given = history(transaction((0, 1), (2, 3)), transaction((1, 2)), read=[(0, 1), (1, 2), (2, 3)])
    assert found(given) == ["G0", "int-send-skip"]


def test_cycle_of_reads() -> None:
    given = history(
        transaction((0, 1), polls=[[(1, 2)]]),
        transaction((1, 2), polls=[[(0, 1)]]),
        read=[(0, 1), (1, 2)],
    )
    assert found(given) == ["G1c"]


def test_lost_write() -> None:
    given = history(transaction((0, 1)), transaction((1, 2)), read=[(1, 2)])
    assert found(given) == ["lost-write", "poll-skip"]


def test_unseen() -> None:
    assert found(history(transaction((0, 1)), transaction((1, 2)), read=[(0, 1)])) == ["unseen"]


def test_duplicate() -> None:
    assert found(history(transaction((0, 1)), read=[(0, 1), (1, 1)])) == ["duplicate"]


def test_inconsistent_offsets() -> None:
    given = history(transaction((0, 1)), transaction((0, 2)), read=[(0, 1)])
    assert found(given) == ["lost-write", "inconsistent-offsets"]


def test_skip_and_step_back_of_a_reader() -> None:
    sent = transaction((0, 1), (1, 2), (2, 3))
    given = history(sent, read=[(0, 1), (2, 3), (1, 2)])
    assert found(given) == ["poll-skip", "nonmonotonic-poll"]


def test_skip_and_step_back_inside_a_transaction() -> None:
    sent, read = transaction((0, 1), (1, 2), (2, 3)), [(0, 1), (1, 2), (2, 3)]
    skipping = history(sent, transaction(polls=[[(0, 1)], [(2, 3)]]), read=read)
    assert found(skipping) == ["int-poll-skip"]
    repeating = history(sent, transaction(polls=[[(0, 1)], [(0, 1)]]), read=read)
    assert found(repeating) == ["int-nonmonotonic-poll"]


def test_polls_of_two_transactions_are_not_inside_one() -> None:
    sent, read = transaction((0, 1), (1, 2), (2, 3)), [(0, 1), (1, 2), (2, 3)]
    polls = [transaction(polls=[records]) for records in ([(0, 1)], [(2, 3)], [(1, 2)])]
    assert found(history(sent, *polls, read=read)) == []


def test_sends_out_of_order() -> None:
    given = history(transaction((0, 2)), transaction((1, 1)), read=[(0, 2), (1, 1)])
    assert found(given) == ["nonmonotonic-send"]


def test_sends_out_of_order_inside_a_transaction() -> None:
    given = history(transaction((1, 1), (0, 2)), read=[(0, 2), (1, 1)])
    assert found(given) == ["nonmonotonic-send", "int-nonmonotonic-send"]


def test_zombie_commits() -> None:
    later = Instance("id", "later", 2.0, 3.0)
    fenced = transaction((0, 1), began=4.0)
    others = [transaction(instance=later), transaction(instance=Instance("other", "o", 2.0, 3.0))]
    assert found(history(fenced, *others, read=[(0, 1)])) == ["zombie-commit"]


def test_zombies_that_commit_what_they_began_before() -> None:
    """A later instance may have been initialized after the commit; an empty one is not sent."""
    later = Instance("id", "later", 2.0, 3.0)
    begun_before = transaction((0, 1), began=2.5)
    before_the_earlier = transaction(instance=Instance("id", "older", 0.5, 1.5))
    others = [transaction(instance=later), before_the_earlier, transaction(began=4.0)]
    assert found(history(begun_before, *others, read=[(0, 1)])) == []


def copying(*copies: tuple[int, int], committed: int) -> TransactionHistory:
    """Records 1 and 2, and their copies, whose values are 10 times theirs, and one more if made
    again."""
    given = history(
        transaction((0, 1), (3, 2)), transaction(*copies, key=COPY), read=[(0, 1), (3, 2)]
    )
    reads = run_of(list(copies))
    given.topics["copy"].polls.append(Poll("reader", Mode.ASSIGN, 0, *reads, 9.0))
    origin = {value: value // 10 for _, value in copies}
    given.copied.append(CopiedTopic("log", "copy", {0: committed}, origin))
    return given


def test_exact_copy() -> None:
    assert found(copying((0, 10), (1, 20), committed=4)) == []
    assert found(copying((0, 10), committed=3)) == []


def test_inexact_copy() -> None:
    assert found(copying((0, 10), committed=4)) == ["inexact-copy"]
    assert found(copying((0, 10), (1, 20), committed=3)) == ["inexact-copy"]
    assert found(copying((0, 10), (1, 11), (2, 20), committed=4)) == ["inexact-copy"]


def test_records_sent_without_a_transaction_count() -> None:
    given = history(transaction((0, 1)), read=[(0, 1), (1, 2)])
    given.topics["log"].sends.append(Send(0, 2, Outcome.ACKED, 1))
    assert found(given) == []


def test_cycles() -> None:
    edges = {1: {2}, 2: {3, 4}, 3: {1}, 4: {5}, 5: {4, 6}, 6: set()}
    assert sorted(cycles(edges)) == [[1, 2, 3], [4, 5]]
    assert cycles({n: {n + 1} for n in range(2000)}) == []
