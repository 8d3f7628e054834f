"""The memory pool of requests that are not handled yet: `queued.max.request.bytes`, one for all
connections (`org.apache.kafka.common.memory.SimpleMemoryPool`, not strict).

A request that does not arrive in one piece takes its whole size from the pool as soon as its size
is known, so that a request that was begun can always be read to its end. While the pool is empty,
connections whose next request needs memory are not read. Requests that wait for earlier ones of
their connection are in the pool too. A request that arrives whole and is handled at once takes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable


class RequestMemory:
    """A pool with a number of bytes."""

    def __init__(self, size_bytes: int) -> None:
        self.available_bytes = size_bytes
        self._waiting: dict[Lease, None] = {}  # in the order in which they began to wait

    def take(self, size: int, lease: Lease) -> bool:
        """Take bytes if any are left; the last request may take more than that. Returns whether it
        did.
        """
        if self.available_bytes > 0:
            self.available_bytes -= size
            self._waiting.pop(lease, None)
            return True
        self._waiting.setdefault(lease)
        return False

    def give_back(self, size: int) -> None:
        """Return bytes to the pool. A negative number takes bytes without a check."""
        self.available_bytes += size
        if size > 0:
            for lease in list(self._waiting):
                if self.available_bytes <= 0:
                    return
                lease.try_again()

    def remove(self, lease: Lease) -> None:
        """Remove a lease from the waiting ones."""
        self._waiting.pop(lease, None)


class Lease:
    """One connection's share of the pool. `try_again` makes the connection call `settle` again."""

    __slots__ = ("_awaited_bytes", "_memory", "_queued_bytes", "try_again")

    def __init__(self, memory: RequestMemory, try_again: Callable[[], None]) -> None:
        self._memory = memory
        self._awaited_bytes = 0
        self._queued_bytes = 0
        self.try_again = try_again

    def settle(self, awaited_bytes: int, queued_bytes: int) -> bool:
        """Take the memory that the arriving request and the waiting ones need. Returns whether the
        connection may be read.
        """
        if queued_bytes != self._queued_bytes:
            freed, self._queued_bytes = self._queued_bytes - queued_bytes, queued_bytes
            self._memory.give_back(freed)
        if awaited_bytes != self._awaited_bytes:
            freed, self._awaited_bytes = self._awaited_bytes, 0
            if freed:
                self._memory.give_back(freed)
            if awaited_bytes:
                if not self._memory.take(awaited_bytes, self):
                    return False
                self._awaited_bytes = awaited_bytes
        return True

    def close(self) -> None:
        """Return the share of a closed connection."""
        freed = self._awaited_bytes + self._queued_bytes
        self._awaited_bytes = self._queued_bytes = 0
        self._memory.remove(self)
        self._memory.give_back(freed)
