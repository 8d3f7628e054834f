"""A connection whose client must authenticate first, with `protocol.sasl_authenticator`.

Before authentication, frames go to the authenticator; afterwards `Connection` handles them. A
session with an end must be renewed by SaslHandshake in time; a later request closes the connection
(KIP-368).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.sasl_authenticator import SaslAuthenticator, SaslLogin, SaslStep
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.network.connection import Connection
from kafkapy.server.network.request_memory import Lease

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.requests.request_handler import RequestHandler
    from kafkapy.server.security.listener_security import SaslSettings

logger = logging.getLogger("kafka.network.SocketServer")


REASON_CHARS_MAX: Final = 500


class SaslConnection(Connection):
    """Fixed: the listener's settings, and the largest request of an authenticated client."""

    __slots__ = (
        "_authenticator",
        "_began_ms",
        "_expires_ms",
        "_login",
        "_request_bytes_max",
        "_settings",
    )

    def __init__(
        self,
        listener: str,
        dispatcher: RequestHandler,
        table: ConnectionTable,
        wire: ServerConnection,
        now_ms: Callable[[], int],
        settings: SaslSettings,
        request_bytes_max: int,
    ) -> None:
        super().__init__(listener, dispatcher, table, wire, now_ms)
        wire.allow(settings.receive_bytes_max)
        self._lease = None  # the pool is for logged-in clients; logins have limits of their own
        self._settings = settings
        self._request_bytes_max = request_bytes_max
        self._authenticator: SaslAuthenticator | None = SaslAuthenticator(settings.mechanisms)
        self._login: SaslLogin | None = None
        self._expires_ms: int | None = None
        self._began_ms = 0  # of the current or last renewal

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._table.unauthenticated.begin(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.unauthenticated.end(self)
        super().connection_lost(exc)

    def _handle(self, frame: memoryview) -> None:
        if self._expires_ms is not None and self._authenticator is None:
            if int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE:
                self._authenticator = SaslAuthenticator(self._settings.mechanisms, self._login)
                self._began_ms = self._now_ms()
            elif self._transport is None or self._transport.is_closing():
                return  # requests that came with one that ended the session
            elif self._now_ms() > self._expires_ms:
                logger.info("Disconnecting %s: its session has expired", self.peer)
                self._table.logins.expired_killed[self.listener] += 1
                self.close()
                return
        authenticator = self._authenticator
        if authenticator is None:
            super()._handle(frame)
        elif self._transport is not None and not self._transport.is_closing():
            self._authenticate(authenticator, frame)

    def _authenticate(self, authenticator: SaslAuthenticator, frame: memoryview) -> None:
        if authenticator.has_failed:  # the reply and the close wait for the delay
            return
        step = authenticator.receive(frame)
        if step is None:
            super()._handle(frame)
        elif step.failure is not None:
            self._refuse(step, authenticator.mechanism)
        else:
            self._answer(self._wire.take_slot(), step.reply)
            if authenticator.login is not None:
                self.is_token = authenticator.is_token
                self._accept(authenticator.login)

    def _accept(self, login: SaslLogin) -> None:
        counts, key = self._table.logins, (self.listener, login.mechanism)
        if self._login is None:
            self._table.unauthenticated.end(self)
            if self._table.memory is not None:
                self._lease = Lease(self._table.memory, self._adjust_reading)
            counts.succeeded[key] += 1
        else:
            counts.renewed[key] += 1
            took_ms = self._now_ms() - self._began_ms
            counts.renewal_times[self.listener].add(took_ms / 1000)
        self._login = login
        self._authenticator = None
        self._expires_ms = None
        if login.session_lifetime_ms is not None:
            self._expires_ms = self._now_ms() + login.session_lifetime_ms
        self.principal = f"User:{login.username}"
        self._wire.allow(self._request_bytes_max)

    def _refuse(self, step: SaslStep, mechanism: str) -> None:
        """Answer and close after a delay, which slows down the guessing of passwords."""
        counts = self._table.logins
        failed = counts.failed if self._login is None else counts.failed_to_renew
        failed[self.listener, mechanism] += 1
        # It may contain text of the client: log one line of limited length.
        reason = " ".join((step.failure or "").split())[:REASON_CHARS_MAX]
        logger.info("Failed authentication with %s (%s)", self.peer, reason)
        slot = self._wire.take_slot()
        delay_s = self._settings.failure_delay_s
        asyncio.get_running_loop().call_later(delay_s, self._end, slot, step.reply)

    def _end(self, slot: int, reply: list[Any]) -> None:
        if self._transport is not None:
            self._answer(slot, reply)
            self._flush()
            self.close()
