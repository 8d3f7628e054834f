"""A connection over TLS without SASL. Its principal is the subject of the client's certificate."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.security.tls.distinguished_name import PrincipalMapper, subject_of
from kafkapy.server.network.authentication_counts import TLS
from kafkapy.server.network.connection import Connection

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.requests.request_handler import RequestHandler

logger = logging.getLogger("kafka.network.SocketServer")


class TlsConnection(Connection):
    """`Connection` that reads the peer's certificate once."""

    __slots__ = ("_principals",)

    def __init__(
        self,
        listener: str,
        dispatcher: RequestHandler,
        table: ConnectionTable,
        wire: ServerConnection,
        now_ms: Callable[[], int],
        principals: PrincipalMapper,
    ) -> None:
        super().__init__(listener, dispatcher, table, wire, now_ms)
        self._principals = principals

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        counts, login = self._table.logins, (self.listener, TLS)
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if certificate is None:
            counts.succeeded[login] += 1
            return
        subject = subject_of(certificate)
        name = self._principals.name_of(subject)
        if name is None:
            counts.failed[login] += 1
            logger.info(
                "Failed authentication with %s (no rule of ssl.principal.mapping.rules applies to"
                " %s)",
                self.peer,
                subject,
            )
            transport.abort()
            return
        counts.succeeded[login] += 1
        self.principal = f"User:{name}"
