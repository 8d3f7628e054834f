"""Connections that have not authenticated yet: TLS handshakes and SASL logins in progress.

Any client can open one, so they are bounded: each by its total time, whether the client makes
progress or not, and all by number. Beyond that number, the oldest connection of the address with
most connections is closed, so that one client cannot crowd out others.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkapy.server.config.kafka_config import KafkaConfig

logger = logging.getLogger("kafka.network.SocketServer")


class Login(Protocol):
    """A TLS handshake, or a connection that must authenticate."""

    @property
    def client_host(self) -> str: ...

    def abort(self) -> None:
        """Close the connection at once."""


class Unauthenticated:
    """Fixed: the largest number of connections, and the time that each may take."""

    def __init__(self, config: KafkaConfig) -> None:
        self._max = config.get_int("kafkapy.max.unauthenticated.connections")
        self.limit_s = config.get_int("kafkapy.authentication.timeout.ms") / 1000
        self._by_host: dict[str, dict[Login, asyncio.TimerHandle]] = {}
        self._count = 0
        self._is_full = False

    def __len__(self) -> int:
        return self._count

    def begin(self, login: Login) -> None:
        """Add a login, which must `end` in time."""
        call_later = asyncio.get_running_loop().call_later
        timer = call_later(self.limit_s, partial(self._close, login, "it took too long"))
        self._by_host.setdefault(login.client_host, {})[login] = timer
        self._count += 1
        if self._count > self._max:
            self._close_one()
        elif self._count <= self._max // 2:
            self._is_full = False

    def end(self, login: Login) -> None:
        """Remove a login that succeeded or failed."""
        logins = self._by_host.get(login.client_host)
        timer = None if logins is None else logins.pop(login, None)
        if timer is None:
            return
        timer.cancel()
        self._count -= 1
        if not logins:
            del self._by_host[login.client_host]

    def _close_one(self) -> None:
        if not self._is_full:
            self._is_full = True
            logger.warning(
                "More than kafkapy.max.unauthenticated.connections=%d connections have not"
                " authenticated yet; the oldest of the address with most of them are closed",
                self._max,
            )
        # Of addresses with equally many logins, the oldest: never a client that just connected.
        largest = max(self._by_host.values(), key=len)
        login = next(iter(largest))
        self._close(login, "too many others began")

    def _close(self, login: Login, reason: str) -> None:
        self.end(login)
        logger.debug(
            "Closing a connection from %s: it has not authenticated, and %s",
            login.client_host,
            reason,
        )
        login.abort()
