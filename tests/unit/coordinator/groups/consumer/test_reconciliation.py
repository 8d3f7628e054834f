"""The member's states: every transition of the table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    TopicIdPartition,
)
from kafkapy.coordinator.groups.consumer.reconciliation import Target, is_reconciled, reconcile
from kafkapy.coordinator.groups.consumer.records import CurrentAssignment, MemberState
from tests.harness.cores.consumer_shell import topic_id

A = topic_id(1)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def some(*indexes: int) -> Assignment:
    return {A: frozenset(indexes)} if indexes else {}


def given(epochs: dict[int, int]) -> dict[TopicIdPartition, int]:
    return {TopicIdPartition(A, index): epoch for index, epoch in epochs.items()}


def all_but(*indexes: int) -> Callable[[TopicIdPartition], bool]:
    return lambda partition: partition.partition not in indexes


ROWS = {
    "stable, at its target": (
        (CurrentAssignment(5, 4, STABLE, some(0)), some(0), all_but(), None),
        CurrentAssignment(5, 4, STABLE, some(0)),
    ),
    "new": (
        (CurrentAssignment(), some(0, 1), all_but(), EMPTY_ASSIGNMENT),
        CurrentAssignment(5, 0, STABLE, some(0, 1)),
    ),
    "new, another has a partition": (
        (CurrentAssignment(), some(0, 1), all_but(1), EMPTY_ASSIGNMENT),
        CurrentAssignment(5, 0, UNRELEASED, some(0)),
    ),
    "less, which it does not know": (
        (CurrentAssignment(4, 3, STABLE, some(0, 1)), some(0), all_but(), None),
        CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)),
    ),
    "less, which it has already left": (
        (CurrentAssignment(4, 3, STABLE, some(0, 1)), some(0), all_but(), some(0)),
        CurrentAssignment(5, 4, STABLE, some(0)),
    ),
    "others, of which none is free": (
        (CurrentAssignment(4, 3, STABLE, some(0)), some(1), all_but(1), some(0)),
        CurrentAssignment(4, 4, UNREVOKED, some(), some(0)),
    ),
    "unrevoked, silent about it": (
        (CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)), some(0), all_but(), None),
        CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)),
    ),
    "unrevoked, still at it": (
        (CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)), some(0), all_but(), some(0, 1)),
        CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)),
    ),
    "unrevoked, done": (
        (CurrentAssignment(4, 4, UNREVOKED, some(0), some(1)), some(0), all_but(), some(0)),
        CurrentAssignment(5, 4, STABLE, some(0)),
    ),
    "unrevoked, done, and there is more to revoke": (
        (CurrentAssignment(4, 4, UNREVOKED, some(0, 2), some(1)), some(0), all_but(), some(0, 2)),
        CurrentAssignment(4, 4, UNREVOKED, some(0), some(2)),
    ),
    "unreleased, nothing is free yet": (
        (CurrentAssignment(5, 4, UNRELEASED, some(0)), some(0, 1), all_but(1), None),
        CurrentAssignment(5, 5, UNRELEASED, some(0)),
    ),
    "unreleased, all is free": (
        (CurrentAssignment(5, 4, UNRELEASED, some(0)), some(0, 1), all_but(), None),
        CurrentAssignment(5, 5, STABLE, some(0, 1)),
    ),
    "unreleased, and a newer target takes something away": (
        (CurrentAssignment(4, 3, UNRELEASED, some(0)), some(1), all_but(), None),
        CurrentAssignment(4, 4, UNREVOKED, some(), some(0)),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_transition(row: str) -> None:
    (current, target, is_free, owned), after = ROWS[row]
    found = reconcile(current, Target(5, target), is_free, owned)
    assert found._replace(epochs={}) == after._replace(epochs={})


@pytest.mark.parametrize(
    ("current", "owned", "epochs"),
    [
        (CurrentAssignment(), EMPTY_ASSIGNMENT, {0: 5, 1: 5}),
        (
            CurrentAssignment(4, 3, STABLE, some(0), EMPTY_ASSIGNMENT, given({0: 2})),
            None,
            {0: 2, 1: 5},
        ),
        (CurrentAssignment(4, 3, STABLE, some(0)), None, {0: 4, 1: 5}),
        (
            CurrentAssignment(5, 4, UNRELEASED, some(0), EMPTY_ASSIGNMENT, given({0: 2})),
            None,
            {0: 2, 1: 5},
        ),
        (
            CurrentAssignment(4, 3, STABLE, some(0, 2), EMPTY_ASSIGNMENT, given({0: 2, 2: 3})),
            None,
            {0: 2, 2: 3},
        ),
        (
            CurrentAssignment(4, 3, STABLE, some(0, 2), EMPTY_ASSIGNMENT, given({0: 2, 2: 3})),
            some(0),
            {0: 2, 1: 5},
        ),
    ],
    ids=["new", "more", "of a record without epochs", "released", "to revoke", "revoked"],
)
def test_a_partition_has_the_epoch_in_which_it_was_given(
    current: CurrentAssignment, owned: Assignment | None, epochs: dict[int, int]
) -> None:
    found = reconcile(current, Target(5, some(0, 1)), all_but(), owned)
    assert found.epochs == given(epochs)


def test_a_member_is_reconciled_in_the_targets_epoch_when_it_has_all() -> None:
    assert is_reconciled(CurrentAssignment(5, 4, STABLE), 5)
    assert not is_reconciled(CurrentAssignment(4, 3, STABLE), 5)
    assert not is_reconciled(CurrentAssignment(5, 4, UNRELEASED), 5)
