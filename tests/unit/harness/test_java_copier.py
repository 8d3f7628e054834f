"""A copy of a topic has the same values in the same order."""

from __future__ import annotations

import pytest

from tests.harness.faults.anomalies import Mode, Poll, run_of
from tests.harness.faults.java_copier import differences


def polled(*values: int) -> list[Poll]:
    """By one reader, one record after the other."""
    return [
        Poll("reader", Mode.ASSIGN, 0, *run_of([(offset, value)]))
        for offset, value in enumerate(values)
    ]


def test_an_exact_copy() -> None:
    assert differences(polled(1, 2, 3), polled(1, 2, 3)) == []


@pytest.mark.parametrize(
    ("copies", "where"),
    [((1, 3), 1), ((1, 3, 2), 1), ((1, 2, 2, 3), 2), ((1, 2), "the end of one")],
)
def test_an_inexact_copy(copies: tuple[int, ...], where: object) -> None:
    assert differences(polled(1, 2, 3), polled(*copies)) == [
        f"partition 0: {len(copies)} copies of 3 records; the first difference is at {where}"
    ]


def test_a_copy_of_nothing() -> None:
    assert len(differences(polled(), polled(1))) == 1
