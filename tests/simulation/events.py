"""The events of a simulation: one queue, ordered by time, then by the order of scheduling.

Time is whole microseconds since the simulation began, and advances only from event to event.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any, Final

SECOND_US: Final = 1_000_000
MS_US: Final = 1_000
WALL_EPOCH_MS: Final = 1_700_000_000_000
"""The wall-clock time at which a simulation begins."""

Callback = Callable[[], None]


class Event:
    """An event, which takes place unless it is cancelled."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class Events:
    """The queue. `soon` adds a callback to the present instant, in the order of the calls.
    `on_instant` is called after each instant with the hosts on which something ran."""

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Event]] = []
        self._sequence = 0
        self._ready: deque[Any] = deque()  # asyncio handles: their loop's `run` runs them
        self.soon = self._ready.append
        self.active_hosts: dict[str, None] = {}
        self.on_instant: Callable[[dict[str, None]], None] = lambda hosts: None

    def at(self, due_us: int, callback: Callback) -> Event:
        """Schedule `callback` at `due_us`, or now if that is past."""
        event = Event(callback)
        self._sequence += 1
        heapq.heappush(self._heap, (max(due_us, self.now_us), self._sequence, event))
        return event

    def after(self, delay_us: int, callback: Callback) -> Event:
        return self.at(self.now_us + delay_us, callback)

    def run_until(self, end_us: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run all events up to `end_us`, or until `is_over()` is true after one of them."""
        heap, ready = self._heap, self._ready
        while True:
            while ready:
                handle = ready.popleft()
                handle._loop.run(handle)
            if self.active_hosts:
                self.on_instant(self.active_hosts)
                self.active_hosts.clear()
            if not heap or heap[0][0] > end_us:
                self.now_us = max(self.now_us, end_us)
                return
            due_us, _, event = heapq.heappop(heap)
            self.now_us = due_us
            if event.callback is not None:
                event.callback()
            if is_over():
                return
