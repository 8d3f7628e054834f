"""Requests that wait for a condition or a deadline (`kafka.server.DelayedOperationPurgatory`).

An operation is watched under keys; whoever changes what stands behind a key calls `check(key)`.
The shell asks for `next_deadline_ms` and calls `expire`. An operation completes exactly once.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import Final

_HEAP_SLACK: Final = 1000


class DelayedOperation:
    """One parked request; subclasses say when it is ready and what completing it does."""

    __slots__ = ("completed", "deadline_ms", "keys")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.completed = False
        self.keys: tuple[Hashable, ...] = ()

    def ready(self) -> bool:
        """Whether the condition that this operation waits for holds now."""
        raise AssertionError(f"{type(self).__name__} does not say when it is ready")

    def ready_at(self, position: int) -> bool:
        """The same, when something changed behind the key at `position` of those watched."""
        return self.ready()

    def on_complete(self, expired: bool) -> None:
        """Answer the request; called once."""
        raise AssertionError(f"{type(self).__name__} does not say what it answers")


class Purgatory:
    """The parked operations of one kind; `size` is how many there are now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.expired_count = 0
        # Under each key the operations, with the position of the key among an operation's keys.
        self._watchers: dict[Hashable, dict[DelayedOperation, int]] = {}
        self._deadlines: list[tuple[int, int, DelayedOperation]] = []
        self._sequence = 0
        self.size = 0

    def __len__(self) -> int:
        """Operations parked now."""
        return self.size

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable]
    ) -> bool:
        """Complete `operation` if it is ready, else park it under `keys`. True if it completed."""
        if operation.ready():
            operation.completed = True
            operation.on_complete(expired=False)
            return True
        self.watch(operation, keys)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Park an operation that is known not to be ready."""
        operation.keys = tuple(keys)
        for position, key in enumerate(operation.keys):
            self._watchers.setdefault(key, {})[operation] = position
        self._sequence += 1
        heapq.heappush(self._deadlines, (operation.deadline_ms, self._sequence, operation))
        self.size += 1

    def check(self, key: Hashable) -> None:
        """Complete what is ready among the operations watched under `key`."""
        watched = self._watchers.get(key)
        if not watched:
            return
        for operation, position in list(watched.items()):
            if not operation.completed and operation.ready_at(position):
                self._complete(operation, expired=False)

    def expire(self, now_ms: int) -> None:
        """Complete what is past its deadline."""
        deadlines = self._deadlines
        while deadlines and (deadlines[0][2].completed or deadlines[0][0] <= now_ms):
            operation = heapq.heappop(deadlines)[2]
            if not operation.completed:
                self.expired_count += 1
                self._complete(operation, expired=True)

    def next_deadline_ms(self) -> int | None:
        """When `expire` is due next, None when nothing is parked."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].completed:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def cancel(self, operation: DelayedOperation) -> None:
        """Forget an operation whose client went away."""
        if not operation.completed:
            operation.completed = True
            self._forget(operation)

    def complete_all(self) -> None:
        """Complete everything as expired: the broker stops."""
        for _, _, operation in sorted(self._deadlines, key=lambda entry: entry[:2]):
            if not operation.completed:
                self._complete(operation, expired=True)

    def _complete(self, operation: DelayedOperation, expired: bool) -> None:
        operation.completed = True
        self._forget(operation)
        operation.on_complete(expired)

    def _forget(self, operation: DelayedOperation) -> None:
        self.size -= 1
        for key in operation.keys:
            watched = self._watchers.get(key)
            if watched is not None:
                watched.pop(operation, None)
                if not watched:
                    del self._watchers[key]
        # Completed entries stay in the heap until popped; rebuild when they are most of it.
        if len(self._deadlines) > 2 * self.size + _HEAP_SLACK:
            self._deadlines = [e for e in self._deadlines if not e[2].completed]
            heapq.heapify(self._deadlines)
