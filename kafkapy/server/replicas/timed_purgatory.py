"""A purgatory on the event loop: a timer at the earliest deadline, none when nothing is parked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable

from kafkapy.common.ports import Clock
from kafkapy.replication.purgatory import DelayedOperation, Purgatory

CallLater = Callable[[float, Callable[[], None]], asyncio.TimerHandle]


class TimedPurgatory(Purgatory):
    """Expires its operations by itself. Deadlines are of `clock.monotonic_ms`."""

    def __init__(self, name: str, clock: Clock, call_later: CallLater) -> None:
        super().__init__(name)
        self._clock = clock
        self._call_later = call_later
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = 0

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        super().watch(operation, keys)
        self._set_timer(operation.deadline_ms)

    def begin_wait(self, operation: DelayedOperation, deadline_ms: int) -> None:
        super().begin_wait(operation, deadline_ms)
        self._set_timer(deadline_ms)

    def _set_timer(self, due_ms: int) -> None:
        """Set the timer to `due_ms` or earlier. A timer that fires too early is set again."""
        if self._timer is not None:
            if self._due_ms <= due_ms:
                return
            self._timer.cancel()
        self._due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.monotonic_ms())
        self._timer = self._call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.expire(self._clock.monotonic_ms())
        due_ms = self.next_deadline_ms()
        if due_ms is not None:
            self._set_timer(due_ms)

    def complete_all(self) -> None:
        super().complete_all()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
