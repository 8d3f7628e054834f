"""Connections that have not authenticated yet: TLS handshakes and SASL logins under way.

Anybody can have one, so they are bounded: each by time as a whole, whether the client makes
progress or not, and all by number. Beyond the number the oldest is closed of the address that has
most, so that who opens many crowds out nobody else.
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
    """A handshake, or a connection that must log in."""

    @property
    def client_host(self) -> str: ...

    def abort(self) -> None:
        """Close it at once."""


class Unauthenticated:
    """Fixed: how many there may be, and for how long."""

    def __init__(self, config: KafkaConfig) -> None:
        self._max = config.get_int("kafkapy.max.unauthenticated.connections")
        self.limit_s = config.get_int("kafkapy.authentication.timeout.ms") / 1000
        self._by_host: dict[str, dict[Login, asyncio.TimerHandle]] = {}
        self._count = 0
        self._is_full = False

    def __len__(self) -> int:
        return self._count

    def begin(self, login: Login) -> None:
        """It has begun, and must `end` in time."""
        call_later = asyncio.get_running_loop().call_later
        timer = call_later(self.limit_s, partial(self._close, login, "it took too long"))
        self._by_host.setdefault(login.client_host, {})[login] = timer
        self._count += 1
        if self._count > self._max:
            self._close_one()
        elif self._count <= self._max // 2:
            self._is_full = False

    def end(self, login: Login) -> None:
        """It is over, one way or the other."""
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
        _, host = max((len(logins), host) for host, logins in self._by_host.items())
        login = next(iter(self._by_host[host]))
        self._close(login, "too many others began")

    def _close(self, login: Login, reason: str) -> None:
        self.end(login)
        logger.debug(
            "Closing a connection from %s: it has not authenticated, and %s",
            login.client_host,
            reason,
        )
        login.abort()
