"""Requests that wait for a condition or a deadline (`kafka.server.DelayedOperationPurgatory`).

An operation is watched under keys. A change of the object of a key must be followed by
`check(key)`. The caller calls `expire` at `next_deadline_ms`. An operation completes exactly once,
except a reusable one, which stays watched for the next request of its kind.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import ClassVar, Final

_HEAP_SLACK: Final = 1000


class DelayedOperation:
    """A waiting request. Subclasses define when it is ready, and its completion."""

    __slots__ = ("completed", "deadline_ms", "keys", "number", "queued_ms")

    is_reusable: ClassVar[bool] = False
    """Whether the operation is used for several requests (`Purgatory.begin_wait`), until it is
    cancelled.
    """

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.completed = False
        self.keys: tuple[Hashable, ...] = ()
        self.number = 0  # of its entry in the queue of deadlines; 0 without one
        self.queued_ms = 0  # the deadline of that entry

    def ready(self) -> bool:
        """Whether this operation can complete now."""
        raise AssertionError(f"{type(self).__name__} does not say when it is ready")

    def ready_at(self, position: int) -> bool:
        """Whether this operation can complete after a change of its key at `position`."""
        return self.ready()

    def on_complete(self) -> None:
        """Answer the request. Called once."""
        raise AssertionError(f"{type(self).__name__} does not say what it answers")


class Purgatory:
    """The waiting operations of one kind; `size` is their number."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Under each key the operations, with the position of the key among an operation's keys.
        self._watchers: dict[Hashable, dict[DelayedOperation, int]] = {}
        # (deadline, number), so that an entry does not keep a completed operation in memory.
        self._deadlines: list[tuple[int, int]] = []
        self._queued: dict[int, DelayedOperation] = {}
        self._last_number = 0
        self.size = 0

    def __len__(self) -> int:
        """The number of waiting operations."""
        return self.size

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable]
    ) -> bool:
        """Complete `operation` if it is ready, else watch it under `keys`. Returns whether it
        completed.
        """
        if operation.ready():
            operation.completed = True
            operation.on_complete()
            return True
        self.watch(operation, keys)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Watch an operation that is known not to be ready."""
        self.register(operation, keys)
        self._queue(operation)
        self.size += 1

    def register(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Watch a reusable operation under its keys, before its first request."""
        operation.keys = tuple(keys)
        for position, key in enumerate(operation.keys):
            self._watchers.setdefault(key, {})[operation] = position

    def begin_wait(self, operation: DelayedOperation, deadline_ms: int) -> None:
        """Begin the wait of a reusable operation that is known not to be ready."""
        operation.completed = False
        operation.deadline_ms = deadline_ms
        if not operation.number or deadline_ms < operation.queued_ms:
            self._leave_queue(operation)
            self._queue(operation)
        self.size += 1

    def _queue(self, operation: DelayedOperation) -> None:
        self._last_number = operation.number = self._last_number + 1
        operation.queued_ms = operation.deadline_ms
        self._queued[operation.number] = operation
        heapq.heappush(self._deadlines, (operation.deadline_ms, operation.number))

    def check(self, key: Hashable) -> None:
        """Complete the operations under `key` that are ready."""
        watched = self._watchers.get(key)
        if not watched:
            return
        for operation, position in list(watched.items()):
            if operation.completed or not operation.ready_at(position):
                continue
            # `ready_at` may find a failure, which completes all operations under the key.
            if not operation.completed:
                self._complete(operation)

    def expire(self, now_ms: int) -> None:
        """Complete the operations past their deadline."""
        while (operation := self._first()) is not None and operation.deadline_ms <= now_ms:
            self._complete(operation)

    def next_deadline_ms(self) -> int | None:
        """The time at which `expire` is due; None if nothing waits."""
        operation = self._first()
        return None if operation is None else operation.deadline_ms

    def _first(self) -> DelayedOperation | None:
        """The waiting operation with the earliest deadline."""
        deadlines = self._deadlines
        while deadlines:
            due_ms, number = deadlines[0]
            operation = self._queued.get(number)
            if operation is None or operation.completed:
                heapq.heappop(deadlines)
                if operation is not None:
                    self._leave_queue(operation)
            elif operation.deadline_ms > due_ms:  # waits again, with a later deadline
                operation.queued_ms = operation.deadline_ms
                heapq.heapreplace(deadlines, (operation.deadline_ms, number))
            else:
                return operation
        return None

    def _leave_queue(self, operation: DelayedOperation) -> None:
        if operation.number:
            del self._queued[operation.number]
            operation.number = 0

    def cancel(self, operation: DelayedOperation) -> None:
        """Remove an operation whose client has closed its connection. A reusable one is removed
        even if it does not wait.
        """
        if not operation.completed:
            operation.completed = True
            self.size -= 1
        elif not operation.is_reusable:
            return
        self._remove(operation)

    def waiting(self) -> list[DelayedOperation]:
        """The waiting operations, in no particular order."""
        return [operation for operation in self._queued.values() if not operation.completed]

    def complete_all(self) -> None:
        """Complete everything, because the broker stops."""
        for operation in sorted(self.waiting(), key=lambda each: (each.deadline_ms, each.number)):
            if not operation.completed:
                self._complete(operation)

    def _complete(self, operation: DelayedOperation) -> None:
        operation.completed = True
        self.size -= 1
        if not operation.is_reusable:
            self._remove(operation)
        operation.on_complete()

    def _remove(self, operation: DelayedOperation) -> None:
        for key in operation.keys:
            watched = self._watchers.get(key)
            if watched is not None:
                watched.pop(operation, None)
                if not watched:
                    del self._watchers[key]
        self._leave_queue(operation)
        # Entries of removed operations stay until they are due. Rebuild when most are of that kind.
        if len(self._deadlines) > 2 * len(self._queued) + _HEAP_SLACK:
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._queued]
            heapq.heapify(self._deadlines)
