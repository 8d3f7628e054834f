"""Each anomaly of a share group is found, and a history without any has none."""

from __future__ import annotations

from math import inf

import pytest

from tests.harness.faults.share_anomalies import Acknowledgement, AckOutcome, Delivery, Place, judge

PLACE = Place(0, 7)
LIMIT = 5
LATE_S = 20.0


def delivery(
    acknowledgement: Acknowledgement,
    at: float,
    count: int = 1,
    ack_outcome: AckOutcome = AckOutcome.CONFIRMED,
    answer_s: float = 0.2,
    requested_at: float = inf,
) -> Delivery:
    """One that is acknowledged at once."""
    return Delivery(
        "a", PLACE, count, at, acknowledgement, at + 0.1, at + answer_s, ack_outcome, requested_at
    )


def found(*deliveries: Delivery) -> list[str]:
    """The names of the anomalies of one record."""
    return [name for name, cases in judge(deliveries, [PLACE], LIMIT, LATE_S).items() if cases]


ACCEPTED = delivery(Acknowledgement.ACCEPT, 1)


@pytest.mark.parametrize(
    "deliveries",
    [
        [ACCEPTED],
        [delivery(Acknowledgement.REJECT, 1)],
        [delivery(Acknowledgement.RELEASE, 1), delivery(Acknowledgement.ACCEPT, 2, 2)],
        # The lock ended; the answer of another was lost; the last delivery was its last chance.
        [
            delivery(Acknowledgement.ACCEPT, 1, ack_outcome=AckOutcome.REFUSED),
            delivery(Acknowledgement.ACCEPT, 2, 2),
        ],
        [delivery(Acknowledgement.ACCEPT, 1, ack_outcome=AckOutcome.UNKNOWN)],
        [delivery(Acknowledgement.ACCEPT, 1, LIMIT, AckOutcome.REFUSED)],
        # Fetched before it was done by another.
        [ACCEPTED, delivery(Acknowledgement.ACCEPT, 1 + LATE_S, ack_outcome=AckOutcome.REFUSED)],
        # A new leader does not know of acquisitions that nobody acknowledged.
        [
            delivery(Acknowledgement.RELEASE, 1, 3, AckOutcome.UNKNOWN),
            delivery(Acknowledgement.ACCEPT, 2, 1),
        ],
        # Its lock had ended, and the group's start was after it when it was acknowledged.
        [delivery(Acknowledgement.ACCEPT, 1, answer_s=9), delivery(Acknowledgement.ACCEPT, 2)],
        # It came late: its lock had ended when it was accepted by another, or released by another.
        [ACCEPTED, delivery(Acknowledgement.ACCEPT, 2, requested_at=1.1)],
        [
            delivery(Acknowledgement.RELEASE, 1, 2),
            delivery(Acknowledgement.ACCEPT, 2, 1, requested_at=1.1),
        ],
        # Two releases at the same time: one order has the counts.
        [
            delivery(Acknowledgement.RELEASE, 1, 2, answer_s=9),
            delivery(Acknowledgement.ACCEPT, 2, 1),
        ],
    ],
)
def test_without_anomaly(deliveries: list[Delivery]) -> None:
    assert found(*deliveries) == []


@pytest.mark.parametrize("acknowledgement", Acknowledgement)
def test_done_twice(acknowledgement: Acknowledgement) -> None:
    assert found(ACCEPTED, delivery(acknowledgement, 2, 2)) == ["done-twice"]
    assert found(delivery(Acknowledgement.REJECT, 1), delivery(acknowledgement, 2, 2)) == [
        "done-twice"
    ]


def test_what_came_late_was_asked_for_when_the_record_was_done() -> None:
    late = delivery(Acknowledgement.ACCEPT, 2, requested_at=ACCEPTED.answered_at + 0.01)
    assert found(ACCEPTED, late) == ["done-twice"]
    assert found(delivery(Acknowledgement.RELEASE, 1), late) == ["count-back"]


def test_delivered_again() -> None:
    late = delivery(Acknowledgement.ACCEPT, 2 + LATE_S, 2, AckOutcome.REFUSED)
    assert found(ACCEPTED, late) == ["delivered-again"]


def test_lost_record() -> None:
    assert found() == ["lost-record"]
    assert found(delivery(Acknowledgement.RELEASE, 1)) == ["lost-record"]
    assert found(delivery(Acknowledgement.ACCEPT, 1, ack_outcome=AckOutcome.REFUSED)) == [
        "lost-record"
    ]


@pytest.mark.parametrize("count", [0, LIMIT + 1])
def test_wrong_count(count: int) -> None:
    assert found(delivery(Acknowledgement.ACCEPT, 1, count)) == ["wrong-count"]


def test_count_back() -> None:
    assert found(
        delivery(Acknowledgement.RELEASE, 1, 2), delivery(Acknowledgement.ACCEPT, 2, 2)
    ) == ["count-back"]
