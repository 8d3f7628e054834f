"""Finds anomalies in clients' histories of a cluster under faults: Jepsen's anomalies for logs.

A history has the answers to producers and the polls of consumers. Values are unique within a
partition. The terms and definitions are those of `jepsen.tests.kafka`; without transactions these
remain:

| anomaly              | what it is                                                               |
|----------------------|--------------------------------------------------------------------------|
| lost-write           | acknowledged at or before the highest polled offset, but never polled     |
| unseen               | acknowledged, not polled by one kind of reader when all had been drained |
| duplicate            | one value at two offsets                                                 |
| inconsistent-offsets | one offset with two values                                               |
| aborted-read         | polled, although its send definitely failed                              |
| unsent-read          | polled, although it was never sent                                       |
| poll-skip            | an assigned consumer's next record leaves out one that exists            |
| nonmonotonic-poll    | an assigned consumer's next record is not after the one before           |
| reordered            | a producer's values are not in the order in which it sent them           |

A consumer of a group may go back and skip when it is rebalanced; it must still see everything.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from math import inf
from typing import NamedTuple

Anomalies = dict[str, list[str]]
"""Cases by the name of the anomaly."""

PRODUCER_STEP = 10**9
"""Producer n sends the values n * PRODUCER_STEP + 0, 1, 2, ... to each partition."""

ANOMALIES = (
    "lost-write",
    "unseen",
    "duplicate",
    "inconsistent-offsets",
    "aborted-read",
    "unsent-read",
    "poll-skip",
    "nonmonotonic-poll",
    "reordered",
)


class Outcome(Enum):
    """Result of a send, from its producer's responses."""

    ACKED = "acked"
    FAILED = "failed"  # it was never sent: no consumer may read it
    UNKNOWN = "unknown"  # it may be in the log


class Mode(Enum):
    """Kind of a consumer: with assigned partitions, or subscribed in a group of some kind."""

    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CONSUMER = "consumer group"  # KIP-848
    SHARE = "share group"


class Send(NamedTuple):
    """A finished send; `offset` is -1 when it is not known, as for a duplicate's answer."""

    partition: int
    value: int
    outcome: Outcome
    offset: int = -1


class Poll(NamedTuple):
    """Records of one partition from one poll of one consumer, in the order of the poll.

    `at` is the time at which the poll ended, for comparisons.
    """

    consumer: str
    mode: Mode
    partition: int
    offsets: array[int]
    values: array[int]
    at: float = inf


class History:
    """Finished sends and polls. Call `judge` once all readers are drained."""

    def __init__(self) -> None:
        self.sends: list[Send] = []
        self.polls: list[Poll] = []

    def judge(self) -> dict[str, list[str]]:
        """Each anomaly's name, and the cases found: all empty for a clean history."""
        found: dict[str, list[str]] = {name: [] for name in ANOMALIES}
        named = {send.partition for send in self.sends} | {poll.partition for poll in self.polls}
        for partition in sorted(named):
            view = _PartitionView(
                partition,
                [send for send in self.sends if send.partition == partition],
                [poll for poll in self.polls if poll.partition == partition],
            )
            for name, case in view.anomalies():
                found[name].append(f"partition {partition}: {case}")
        return found


class _PartitionView:
    """The known part of one partition's log, from all sends and polls."""

    def __init__(self, partition: int, sends: list[Send], polls: list[Poll]) -> None:
        self.sends = {send.value: send for send in sends}
        self.polls = polls
        self.values_at: dict[int, set[int]] = defaultdict(set)
        self.offsets_of: dict[int, set[int]] = defaultdict(set)
        self.polled: dict[Mode, set[int]] = {poll.mode: set() for poll in polls}
        for send in sends:
            if send.outcome is Outcome.ACKED and send.offset >= 0:
                self._add_value(send.offset, send.value)
        for poll in polls:
            self.polled[poll.mode].update(poll.values)
            for offset, value in zip(poll.offsets, poll.values, strict=True):
                self._add_value(offset, value)
        self.highest_polled = max((max(poll.offsets) for poll in polls), default=-1)

    def _add_value(self, offset: int, value: int) -> None:
        self.values_at[offset].add(value)
        self.offsets_of[value].add(offset)

    def anomalies(self) -> Iterator[tuple[str, str]]:
        yield from self._writes()
        yield from self._contradictions()
        yield from self._reads()
        yield from self._disorder()
        for consumer in sorted({p.consumer for p in self.polls if p.mode is Mode.ASSIGN}):
            yield from self._steps(consumer)

    def _writes(self) -> Iterator[tuple[str, str]]:
        seen = set().union(*self.polled.values())
        for value, send in self.sends.items():
            if send.outcome is not Outcome.ACKED:
                continue
            where = f"value {value} acknowledged at offset {send.offset}"
            if value not in seen and 0 <= send.offset <= self.highest_polled:
                yield "lost-write", f"{where}; polled up to offset {self.highest_polled}"
            elif value not in seen:
                yield "unseen", where
            else:
                for mode, values in self.polled.items():
                    if value not in values:
                        yield "unseen", f"{where}; not polled by {mode.value}"

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        for offset, values in self.values_at.items():
            if len(values) > 1:
                yield "inconsistent-offsets", f"offset {offset} has values {sorted(values)}"
        for value, offsets in self.offsets_of.items():
            if len(offsets) > 1:
                yield "duplicate", f"value {value} at offsets {sorted(offsets)}"

    def _reads(self) -> Iterator[tuple[str, str]]:
        for value in sorted(set().union(*self.polled.values())):
            send = self.sends.get(value)
            if send is None:
                yield "unsent-read", f"value {value}"
            elif send.outcome is Outcome.FAILED:
                yield "aborted-read", f"value {value}"

    def _disorder(self) -> Iterator[tuple[str, str]]:
        last: dict[int, int] = {}
        for offset in sorted(self.values_at):
            for value in sorted(self.values_at[offset]):
                producer = value // PRODUCER_STEP
                before = last.get(producer, -1)
                if value < before and len(self.offsets_of[value]) == 1:
                    yield "reordered", f"value {value} at offset {offset} after value {before}"
                last[producer] = max(before, value)

    def _steps(self, consumer: str) -> Iterator[tuple[str, str]]:
        known = sorted(self.values_at)
        before = -1
        for poll in self.polls:
            if poll.consumer != consumer:
                continue
            for offset in poll.offsets:
                step = f"{consumer} polled offset {offset} after {before}"
                if offset <= before:
                    yield "nonmonotonic-poll", step
                elif bisect_left(known, offset) - bisect_left(known, before + 1) > 0:
                    yield "poll-skip", step
                before = offset


def run_of(records: list[tuple[int, int]]) -> tuple[array[int], array[int]]:
    """(offset, value) pairs as the two columns of a Poll."""
    return array("q", (o for o, _ in records)), array("q", (v for _, v in records))
