"""Connections that wait for their turn, because connections are made faster than
`max.connection.creation.rate` allows.

In Kafka the listener's acceptor sleeps, and who comes next waits in the backlog of its socket. Here
asyncio accepts, so a connection waits unserved in a queue of its listener; clients see the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from kafkapy.server.creation_rates import CreationRates


class Waiting(Protocol):
    """Who waits at a listener."""

    listener: str

    def begin(self) -> None:
        """The turn has come."""


class AcceptQueues:
    """Those of a broker. Fixed: the rates, and the clock in ms."""

    def __init__(self, rates: CreationRates, now_ms: Callable[[], int]) -> None:
        self.rates = rates
        self._now_ms = now_ms
        self._queues: dict[str, deque[Waiting]] = {}

    def may_begin(self, connection: Waiting) -> bool:
        """Whether a new connection may begin now; if not, it is told when it may, in its turn."""
        queue = self._queues.get(connection.listener)
        if queue is not None:
            queue.append(connection)
            return False
        pause_ms = self.rates.connected(connection.listener, self._now_ms())
        if not pause_ms:
            return True
        self._queues[connection.listener] = deque([connection])
        self._sleep(connection.listener, pause_ms)
        return False

    def _sleep(self, listener: str, pause_ms: int) -> None:
        asyncio.get_running_loop().call_later(pause_ms / 1000, partial(self._go_on, listener))

    def _go_on(self, listener: str) -> None:
        """The pause of the first is over, and those after it are counted."""
        queue = self._queues[listener]
        queue.popleft().begin()
        while queue:
            pause_ms = self.rates.connected(listener, self._now_ms())
            if pause_ms:
                self._sleep(listener, pause_ms)
                return
            queue.popleft().begin()
        del self._queues[listener]
