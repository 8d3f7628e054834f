"""Deadlines by key. To move one later, as every heartbeat does, costs a dictionary write."""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import NamedTuple


class TimerKind(IntEnum):
    """Kinds of deadlines."""

    JOIN = 0
    """The end of the state PreparingRebalance."""
    SYNC = 1
    """For SyncGroup from all members of a new generation."""
    SESSION = 2
    """For the next heartbeat of a member, or another request that extends its session."""
    PENDING = 3
    """For JoinGroup from a member that was assigned an id."""
    CONSUMER_SESSION = 4
    """The same for a member of a consumer group."""
    CONSUMER_REVOCATION = 5
    """For the revocation of partitions by a member of a consumer group."""
    CONSUMER_JOIN = 6
    """For JoinGroup from a classic member of a consumer group that must rejoin."""
    CONSUMER_SYNC = 7
    """For SyncGroup from a classic member of a consumer group, after its JoinGroup."""


class TimerKey(NamedTuple):
    """The key of a deadline; `member_id` is empty for deadlines of the group."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class Timers:
    """A heap with lazy updates: an entry that is popped before its key's deadline is put back.

    Invariant: each key of `_deadlines` has its `_queued` entry in the heap, not after its deadline.
    """

    __slots__ = ("_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, int] = {}
        self._queued: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, TimerKey]] = []

    def set(self, key: TimerKey, deadline_ms: int) -> None:
        """Make `deadline_ms` the one deadline of `key`."""
        self._deadlines[key] = deadline_ms
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._push(key, deadline_ms)

    def cancel(self, key: TimerKey) -> None:
        """Remove the deadline of `key`, if it has one."""
        self._deadlines.pop(key, None)

    def deadline_ms(self, key: TimerKey) -> int | None:
        """The deadline of `key`."""
        return self._deadlines.get(key)

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline."""
        heap = self._heap
        while heap:
            queued_ms, key = heap[0]
            deadline_ms = self._deadlines.get(key)
            if self._queued.get(key) == queued_ms == deadline_ms:
                return deadline_ms
            heapq.heappop(heap)
            if self._queued.get(key) != queued_ms:
                continue
            if deadline_ms is None:
                del self._queued[key]
            else:
                self._push(key, deadline_ms)
        return None

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Remove the earliest deadline, if it is not after `now_ms`, and return its key."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        _, key = heapq.heappop(self._heap)
        del self._queued[key], self._deadlines[key]
        return key

    def _push(self, key: TimerKey, deadline_ms: int) -> None:
        self._queued[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, key))
