"""Finds anomalies in the deliveries to members of a share group and their acknowledgements.

A record is done when it was accepted or rejected, or delivered as often as the limit allows:

| anomaly         | what it is                                                               |
|-----------------|--------------------------------------------------------------------------|
| done-twice      | a record that was done is delivered, and its acknowledgement confirmed   |
| delivered-again | a record was delivered long after it was done                            |
| lost-record     | the group has nothing left, but no member accepted or rejected a record  |
| wrong-count     | a delivery count that is not between 1 and the limit                     |
| count-back      | a count that does not exceed that of a release which was confirmed before |

A member may receive a record late: its broker was stopped, and the lock expired meanwhile. So
deliveries have an order only if their acknowledgements were confirmed, which needs the lock. But
brokers confirm acknowledgements of records before the group's start without a check (Kafka's
`SharePartition.acknowledge`). So a delivery is compared only with acknowledgements that were
answered before it arrived: it was also acquired after them, if its lock was held until it arrived.
If the lock may have expired on the way, the delivery is compared only with acknowledgements that
were answered before it was requested. A delivery is compared with none if its broker was deposed
before it arrived, and led again before the acknowledgement: two leaders do not know each other's
locks and acknowledgements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import NamedTuple

ANOMALIES = ("done-twice", "delivered-again", "lost-record", "wrong-count", "count-back")


class Acknowledgement(Enum):
    """An acknowledgement; all but a release finish a record."""

    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"


class AckOutcome(Enum):
    """The outcome of an acknowledgement, from its member's responses."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"  # nothing was changed
    UNKNOWN = "unknown"


class Place(NamedTuple):
    """A record of the topic."""

    partition: int
    offset: int


@dataclass(slots=True)
class Delivery:
    """A record that a member received at `at`, and its acknowledgement.

    The acknowledgement was sent at `acknowledged_at` and answered at `answered_at`. `requested_at`,
    the time of the request, is set if the lock may have expired before `at`: the record may have
    been acquired at any time since then. It is -inf if the delivery has no order.
    """

    member: str
    place: Place
    count: int
    at: float
    acknowledgement: Acknowledgement
    acknowledged_at: float = inf
    answered_at: float = inf
    ack_outcome: AckOutcome = AckOutcome.REFUSED
    requested_at: float = inf

    @property
    def confirmed(self) -> bool:
        return self.ack_outcome is AckOutcome.CONFIRMED

    @property
    def counts_from(self) -> float:
        """The time that orders deliveries: of the arrival if the lock was held, else of the
        request."""
        return min(self.requested_at, self.at)

    def __str__(self) -> str:
        return (
            f"{self.acknowledgement.value} by {self.member} {self.ack_outcome.value}"
            f" at {self.answered_at:.3f}"
            f" (delivery {self.count}, at {self.at:.3f})"
        )


def judge(
    deliveries: Iterable[Delivery], written: Iterable[Place], limit: int, late_s: float
) -> dict[str, list[str]]:
    """Each anomaly's name and its cases, once the group has nothing left of `written`.

    A record that arrives within `late_s` may have been fetched before it was done.
    """
    found: dict[str, list[str]] = {name: [] for name in ANOMALIES}
    by_place: dict[Place, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        by_place[delivery.place].append(delivery)
    for place in written:
        by_place.setdefault(place, [])
    for place, of_record in sorted(by_place.items()):
        for name, case in _anomalies(of_record, limit, late_s):
            found[name].append(f"partition {place.partition} offset {place.offset}: {case}")
    return found


def _anomalies(deliveries: list[Delivery], limit: int, late_s: float) -> Iterator[tuple[str, str]]:
    confirmed = sorted((d for d in deliveries if d.confirmed), key=lambda d: d.acknowledged_at)
    for n, earlier in enumerate(confirmed):
        for later in (d for d in confirmed[n + 1 :] if d.counts_from > earlier.answered_at):
            if earlier.acknowledgement is not Acknowledgement.RELEASE:
                yield "done-twice", f"{earlier}, {later}"
            elif later.count <= earlier.count:
                yield "count-back", f"{earlier}, {later}"
    done_at = min(
        (d.answered_at for d in confirmed if d.acknowledgement is not Acknowledgement.RELEASE),
        default=inf,
    )
    for delivery in deliveries:
        if delivery.at > done_at + late_s:
            yield "delivered-again", f"done at {done_at:.3f}, {delivery}"
        if not 1 <= delivery.count <= limit:
            yield "wrong-count", str(delivery)
    maybe = (
        d
        for d in deliveries
        if d.ack_outcome is not AckOutcome.REFUSED
        and d.acknowledgement is not Acknowledgement.RELEASE
    )
    if not any(maybe) and all(d.count < limit for d in deliveries):
        yield "lost-record", "; ".join(map(str, deliveries)) or "never delivered"
