"""Accepts connections at one listening socket, also when descriptors run out.

asyncio's servers accept without a limit, and uvloop's closes its socket for good at the first error
of `accept`. This loop accepts nothing at a limit: clients wait in the backlog, as with Kafka's
acceptors.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Final

from kafkapy.common.lasting_work import keep_running

logger = logging.getLogger("kafka.network.SocketServer")

RETRY_S: Final = 0.1
SPARE: Final = 32
"""The number of descriptors that are never used for sockets."""
_NO_RESOURCES: Final = (EMFILE, ENFILE, ENOBUFS, ENOMEM)


def has_spare_descriptors() -> bool:
    """Whether this process may open a descriptor for a socket. The lowest free descriptor shows how
    many are open.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        free = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno not in _NO_RESOURCES
    os.close(free)
    return soft == resource.RLIM_INFINITY or free < soft - min(SPARE, soft // 4)


class AcceptLoop:
    """Accepts from `start` until `close`. Fixed: a name for the log, the bound socket, a function
    that takes over each accepted socket, and one that waits until a connection may be accepted.
    """

    def __init__(
        self,
        name: str,
        bound: socket.socket,
        serve: Callable[[socket.socket], Awaitable[None]],
        wait_for_capacity: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._name = name
        self._bound = bound
        self._serve = serve
        self._wait_for_capacity = wait_for_capacity
        self._task: asyncio.Task[None] | None = None
        self._is_paused = False

    def start(self, backlog: int) -> None:
        """Start to accept connections."""
        self._bound.listen(backlog)
        work = keep_running(f"Listener {self._name}", self._run, logger)
        self._task = asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        """Stop accepting connections."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._wait_for_capacity is not None:
                await self._wait_for_capacity()
            if not has_spare_descriptors():
                await self._wait("too few descriptors are left")
                continue
            try:
                accepted, _ = await loop.sock_accept(self._bound)
            except OSError as error:
                if error.errno in _NO_RESOURCES:
                    await self._wait(str(error))
                continue  # at other errors, the client has disconnected
            if self._is_paused:
                self._is_paused = False
                logger.info("Listener %s accepts connections again", self._name)
            await self._serve(accepted)

    async def _wait(self, reason: str) -> None:
        if not self._is_paused:
            self._is_paused = True
            logger.error("Listener %s accepts no connections: %s", self._name, reason)
        await asyncio.sleep(RETRY_S)
