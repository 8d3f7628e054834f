"""The judge finds each anomaly in a history that has it, and none in a clean one."""

from __future__ import annotations

import pytest

from tests.harness.faults.anomalies import PRODUCER_STEP, History, Mode, Outcome, Poll, Send, run_of

ACKED, FAILED, UNKNOWN = Outcome.ACKED, Outcome.FAILED, Outcome.UNKNOWN
Records = list[tuple[int, int]]


def history(
    sends: list[Send], *polls: Records, group: Records | None = None, partition: int = 0
) -> History:
    """Sends, successive polls of one assigned consumer, and one poll of a group."""
    made = History()
    made.sends = sends
    made.polls = [Poll("reader", Mode.ASSIGN, partition, *run_of(records)) for records in polls]
    if group is not None:
        made.polls.append(Poll("member", Mode.SUBSCRIBE, partition, *run_of(group)))
    return made


def acked(*values: int) -> list[Send]:
    """Values acknowledged at the offsets 0, 1, 2, ..."""
    return [Send(0, value, ACKED, offset) for offset, value in enumerate(values)]


def found(given: History) -> list[str]:
    return [name for name, cases in given.judge().items() if cases]


def test_a_clean_history_has_none() -> None:
    sends = [*acked(10, 11, 12), Send(0, 13, UNKNOWN), Send(0, 14, FAILED), Send(0, 15, UNKNOWN)]
    read = [(0, 10), (1, 11), (2, 12), (3, 15)]
    assert found(history(sends, read[:2], read[2:], group=read)) == []


def test_an_answer_without_an_offset_is_clean_when_read() -> None:
    assert found(history([Send(0, 7, ACKED)], [(0, 7)])) == []


@pytest.mark.parametrize("offset", [1, 2])
def test_lost_write(offset: int) -> None:
    sends = [Send(0, 1, ACKED, 0), Send(0, 2, ACKED, offset), Send(0, 3, ACKED, 3)]
    given = history(sends, [(0, 1)], [(3, 3)])
    assert "lost-write" in found(given)
    assert f"value 2 acknowledged at offset {offset};" in given.judge()["lost-write"][0]


def test_lost_write_overwritten_by_another() -> None:
    names = found(history([*acked(1, 2), Send(0, 3, ACKED, 1)], [(0, 1), (1, 3)]))
    assert names == ["lost-write", "inconsistent-offsets"]


@pytest.mark.parametrize("polls", [[], [[(0, 1)]]])
def test_unseen_at_the_end(polls: list[Records]) -> None:
    assert found(history(acked(1, 2), *polls)) == ["unseen"]


def test_unseen_without_an_offset() -> None:
    assert found(history([*acked(1), Send(0, 2, ACKED)], [(0, 1)])) == ["unseen"]


def test_unseen_by_the_group_alone() -> None:
    given = history(acked(1, 2), [(0, 1), (1, 2)], group=[(0, 1)])
    assert found(given) == ["unseen"]
    assert given.judge()["unseen"] == [
        "partition 0: value 2 acknowledged at offset 1; not polled by subscribe"
    ]


def test_duplicate_in_the_log() -> None:
    assert found(history(acked(1, 2), [(0, 1), (1, 2), (2, 1)])) == ["duplicate"]


def test_duplicate_of_an_answer() -> None:
    assert "duplicate" in found(history(acked(1, 2), [(0, 1), (1, 9), (2, 2)]))


def test_inconsistent_offsets_between_two_readers() -> None:
    sends = [*acked(1), Send(0, 2, UNKNOWN), Send(0, 3, UNKNOWN)]
    given = history(sends, [(0, 1), (1, 2)], group=[(0, 1), (1, 3)])
    assert found(given) == ["inconsistent-offsets"]


def test_aborted_read() -> None:
    assert found(history([*acked(1), Send(0, 2, FAILED)], [(0, 1), (1, 2)])) == ["aborted-read"]


def test_unsent_read() -> None:
    assert found(history(acked(1), [(0, 1), (1, 99)])) == ["unsent-read"]


@pytest.mark.parametrize("cut", [1, 2])
def test_poll_skip_between_and_within_polls(cut: int) -> None:
    read, whole = [(0, 1), (2, 3), (3, 4)], [(0, 1), (1, 2), (2, 3), (3, 4)]
    sends = acked(1, 2, 3, 4)
    sends[1] = Send(0, 2, UNKNOWN)
    assert found(history(sends, read[:cut], read[cut:], group=whole)) == ["poll-skip"]


def test_an_offset_that_nobody_knows_is_no_skip() -> None:
    sends = [Send(0, 1, ACKED, 0), Send(0, 2, ACKED, 2)]
    assert found(history(sends, [(0, 1)], [(2, 2)])) == []


@pytest.mark.parametrize("again", [0, 1])
def test_nonmonotonic_poll(again: int) -> None:
    given = history(acked(1, 2), [(0, 1), (1, 2)], [(again, again + 1)])
    assert found(given) == ["nonmonotonic-poll"]


def test_a_group_may_go_back() -> None:
    read = [(0, 1), (1, 2)]
    given = history(acked(1, 2), read, group=[*read, (0, 1)])
    assert found(given) == []


def test_reordered() -> None:
    sends = [Send(0, 2, ACKED, 0), Send(0, 1, ACKED, 1)]
    assert found(history(sends, [(0, 2), (1, 1)])) == ["reordered"]


def test_two_producers_have_no_order() -> None:
    sends = [Send(0, PRODUCER_STEP, ACKED, 0), Send(0, 1, ACKED, 1)]
    assert found(history(sends, [(0, PRODUCER_STEP), (1, 1)])) == []


def test_partitions_are_judged_apart() -> None:
    given = history(acked(1), [(0, 1)])
    given.sends.append(Send(1, 1, ACKED, 5))
    given.polls.append(Poll("reader", Mode.ASSIGN, 1, *run_of([(5, 1)])))
    assert found(given) == []
