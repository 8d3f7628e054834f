"""The memory of requests that are not handled yet: `queued.max.request.bytes`, a pool that all
connections share (`org.apache.kafka.common.memory.SimpleMemoryPool`, not strict).

A request that does not arrive in one piece takes its whole size from the pool when its size is
known, so that what has begun can always end. While the pool is used up, connections whose next
request needs some are not read. Requests that wait for others of their connection are in the pool
too. One that arrives whole and is handled at once takes nothing.
"""

from __future__ import annotations

from collections.abc import Callable


class RequestMemory:
    """A pool of so many bytes."""

    def __init__(self, size_bytes: int) -> None:
        self.available_bytes = size_bytes
        self._starved: dict[Lease, None] = {}  # in the order in which they began to wait

    def take(self, size: int, lease: Lease) -> bool:
        """Whether there is any left; the last to take may take more than there is."""
        if self.available_bytes > 0:
            self.available_bytes -= size
            self._starved.pop(lease, None)
            return True
        self._starved.setdefault(lease)
        return False

    def give_back(self, size: int) -> None:
        """Bytes are free again; less than 0 are taken without asking."""
        self.available_bytes += size
        if size > 0:
            for lease in list(self._starved):
                if self.available_bytes <= 0:
                    return
                lease.try_again()

    def forget(self, lease: Lease) -> None:
        """It waits no more."""
        self._starved.pop(lease, None)


class Lease:
    """One connection's share of the pool. `try_again` leads to another `settle`."""

    __slots__ = ("_awaited_bytes", "_memory", "_queued_bytes", "try_again")

    def __init__(self, memory: RequestMemory, try_again: Callable[[], None]) -> None:
        self._memory = memory
        self._awaited_bytes = 0
        self._queued_bytes = 0
        self.try_again = try_again

    def settle(self, awaited_bytes: int, queued_bytes: int) -> bool:
        """Take as much as a request that has begun to arrive, and those that wait, need; whether
        the connection may be read."""
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
        """The connection is no more."""
        freed = self._awaited_bytes + self._queued_bytes
        self._awaited_bytes = self._queued_bytes = 0
        self._memory.forget(self)
        self._memory.give_back(freed)
