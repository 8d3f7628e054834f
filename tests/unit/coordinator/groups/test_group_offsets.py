"""The offsets of one group."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.groups.group_offsets import Commit, GroupOffsets
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata
from tests.harness.cores.group_shell import T0, T1

PRODUCER = 42


def commit(offset: int, at_ms: int = 0, expiry_ms: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", at_ms, expiry_ms)


FIVE, SIX = commit(5), commit(6)


def test_a_commit_counts_when_it_is_in_the_log() -> None:
    offsets = GroupOffsets()
    offsets.begin({T0: FIVE})
    assert not offsets.committed
    assert offsets.any
    assert offsets.is_unstable(T0)
    assert not offsets.is_unstable(T1)
    offsets.succeed({T0: FIVE}, 10)
    assert offsets.committed == {T0: Commit(FIVE, 10)}
    assert not offsets.is_unstable(T0)


def test_a_failed_commit_leaves_the_old_one() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1)
    offsets.begin({T0: SIX})
    offsets.fail({T0: SIX})
    assert offsets.committed == {T0: Commit(FIVE, 1)}
    assert not offsets.in_flight


def test_a_failed_commit_that_is_in_the_log_does_not_count_but_goes_with_the_others() -> None:
    offsets = GroupOffsets()
    offsets.begin({T0: FIVE, T1: commit(5, at_ms=100)})
    offsets.fail({T0: FIVE, T1: commit(5, at_ms=100)}, is_in_log=True)
    assert not offsets.committed
    assert not offsets.is_unstable(T0)
    assert offsets.partitions == [T0, T1]
    assert offsets.expired([T0, T1], 60, 50, lambda c: c.commit_timestamp_ms) == [T0]
    assert offsets.remove([T0]) == [T0]
    assert offsets.remove([T0]) == []
    assert offsets.any
    offsets.begin({T1: SIX})
    offsets.succeed({T1: SIX}, 10)
    assert not offsets.unreplicated


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_in_flight_the_later_in_the_log_counts(order: tuple[int, int]) -> None:
    offsets = GroupOffsets()
    for value in (FIVE, SIX):
        offsets.begin({T0: value})
    for i in order:
        assert offsets.is_unstable(T0)
        offsets.succeed({T0: (FIVE, SIX)[i]}, (10, 11)[i])
    assert offsets.committed == {T0: Commit(SIX, 11)}
    assert not offsets.in_flight


@pytest.mark.parametrize("order", ["fail first", "fail last"])
def test_of_two_in_flight_the_one_that_succeeds_counts(order: str) -> None:
    offsets = GroupOffsets()
    for value in (FIVE, SIX):
        offsets.begin({T0: value})
    if order == "fail first":
        offsets.fail({T0: SIX})
    offsets.succeed({T0: FIVE}, 10)
    if order == "fail last":
        offsets.fail({T0: SIX})
    assert offsets.committed == {T0: Commit(FIVE, 10)}
    assert not offsets.in_flight


def test_an_unknown_log_offset_is_taken_for_the_latest() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1)
    offsets.begin({T0: SIX})
    offsets.succeed({T0: SIX}, -1)
    assert offsets.committed[T0].value is SIX


def test_a_partition_removed_meanwhile_stays_removed() -> None:
    offsets = GroupOffsets()
    offsets.begin({T0: FIVE})
    assert offsets.remove([T0]) == [T0]
    offsets.succeed({T0: FIVE}, 10)
    assert not offsets.any


def test_removal_tells_what_has_a_record() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1)
    offsets.replay(T1, SIX, 2, PRODUCER)
    assert offsets.partitions == [T0, T1]
    assert offsets.remove([T0, T1]) == [T0, T1]
    assert offsets.remove([T0, T1]) == []
    assert not offsets.any


def test_transactional_offsets_wait_for_the_marker() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1)
    offsets.replay(T0, SIX, 2, PRODUCER)
    assert offsets.committed[T0].value is FIVE
    assert offsets.is_unstable(T0)
    offsets.end_transaction(PRODUCER + 1, committed=True)
    assert offsets.committed[T0].value is FIVE
    offsets.end_transaction(PRODUCER, committed=True)
    assert offsets.committed[T0] == Commit(SIX, 2)
    assert not offsets.is_unstable(T0)


def test_an_aborted_transaction_commits_nothing() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, SIX, 2, PRODUCER)
    offsets.end_transaction(PRODUCER, committed=False)
    assert not offsets.any


def test_a_plain_commit_after_a_transactional_one_stays() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, SIX, 2, PRODUCER)
    offsets.replay(T0, FIVE, 3)
    offsets.end_transaction(PRODUCER, committed=True)
    assert offsets.committed[T0] == Commit(FIVE, 3)


def test_tombstones() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1)
    offsets.replay(T0, None, 2)
    offsets.replay(T1, SIX, 3, PRODUCER)
    offsets.replay(T1, None, 4, PRODUCER)
    offsets.end_transaction(PRODUCER, committed=True)
    assert not offsets.committed


def test_a_tombstone_ends_what_is_pending_before_it() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, FIVE, 1, PRODUCER)
    offsets.replay(T0, None, 2)
    assert not offsets.any
    offsets.replay(T0, SIX, 3, PRODUCER)
    offsets.end_transaction(PRODUCER, committed=True)
    assert offsets.committed == {T0: Commit(SIX, 3)}


def test_expiry_counts_from_the_given_time() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, commit(5, at_ms=100), 1)
    offsets.replay(T1, commit(5, at_ms=200), 2)

    def due(time_ms: int, subscribed: frozenset[str] = frozenset()) -> list[object]:
        partitions = offsets.may_expire()
        return [
            *offsets.expired(partitions, time_ms, 50, lambda c: c.commit_timestamp_ms, subscribed)
        ]

    assert due(149) == []
    assert due(150) == [T0]
    assert due(250) == [T0, T1]
    assert due(250, frozenset({"t"})) == []
    offsets.begin({T0: SIX})
    assert due(250) == [T1]
    offsets.replay(T1, SIX, 3, PRODUCER)
    assert due(250) == []
    offsets.end_transaction(PRODUCER, committed=False)
    assert due(250) == [T1]


def test_an_expiry_of_its_own_wins() -> None:
    offsets = GroupOffsets()
    offsets.replay(T0, commit(5, at_ms=100, expiry_ms=1_000), 1)
    offsets.replay(T1, commit(5, at_ms=100, expiry_ms=110), 2)
    assert offsets.expired([T0, T1], 999, 50, lambda c: c.commit_timestamp_ms) == [T1]
    assert offsets.expired([T0, T1], 1_000, 5_000, lambda c: c.commit_timestamp_ms) == [T0, T1]
