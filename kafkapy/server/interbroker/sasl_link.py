"""A connection to another broker that logs in before its first request, and again before its
session ends (KIP-368).

The login uses a `ClientConnection` of its own. During the login, requests wait, as they do before
the connection is open. ApiVersions is not sent: brokers of this protocol version support the
versions used here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.protocol.client_connection import ClientConnection
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.protocol.schema import Message
from kafkapy.security.sasl.client import Conversation
from kafkapy.server.interbroker.node_link import NodeConnection, OnAnswer
from kafkapy.server.security.node_security import NodeSecurity

_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 2
_RENEW_AT: Final = 0.85  # of a session's lifetime; Kafka's clients use 0.85 to 0.95


class SaslNodeConnection(NodeConnection):
    """`NodeConnection` with a `_transport` only while it is logged in. Otherwise
    `_pending_transport` has it."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        security: NodeSecurity,
        on_end: Callable[[NodeConnection], None],
        receive_buffer_bytes: int = -1,
    ) -> None:
        self._host = host
        self._client_id = client_id
        self._pending_transport: Any = None
        self._login_wire: ClientConnection | None = None
        self._conversation: Conversation | None = None
        self._first_token: asyncio.Future[bytes] | None = None
        self._renew_at_s: float | None = None
        super().__init__(host, port, client_id, security, on_end, receive_buffer_bytes)

    def _enqueue(self, frame: bytes, limit_s: float, on_answer: OnAnswer) -> None:
        renew_at_s = self._renew_at_s
        if renew_at_s is not None and self._loop.time() >= renew_at_s:
            # New requests wait: the login begins after the responses to all sent requests.
            self._renew_at_s = None
            self._pending_transport, self._transport = self._transport, None
        super()._enqueue(frame, limit_s, on_answer)
        self._log_in_if_due()

    def end(self, reason: str) -> None:
        transport, self._pending_transport = self._pending_transport, None
        super().end(reason)
        if self._first_token is not None:
            self._first_token.cancel()
        if transport is not None:
            transport.abort()

    def _log_in_if_due(self) -> None:
        if (
            self._pending_transport is not None
            and self._login_wire is None
            and len(self._sent) == len(self._unsent)
        ):
            self._log_in()

    def _log_in(self) -> None:
        begin = self._security.begin_login
        assert begin is not None
        self._conversation = begin(self._host)
        self._login_wire = ClientConnection(self._client_id)
        self._send_login_request(
            SaslHandshakeRequest(mechanism=self._security.mechanism), _HANDSHAKE_VERSION
        )

    def _send_login_request(self, message: Message, version: int) -> None:
        assert self._login_wire is not None
        _, frame = self._login_wire.send(message, version)
        self._pending_transport.write(frame)

    def _on_login_response(self, response: Any) -> None:
        """Continue the login. Raises ApiError if it has failed."""
        conversation = self._conversation
        assert conversation is not None
        if response.error_code != ErrorCode.NONE:
            raise ApiError(ErrorCode(response.error_code), _refusal(response, self._security))
        if not isinstance(response, SaslHandshakeResponse):
            try:
                self._send_token(conversation.send(bytes(response.auth_bytes)))
            except StopIteration:
                self._logged_in(response)
        elif self._security.thread is None:
            self._send_token(next(conversation))
        else:
            self._first_token = self._loop.run_in_executor(
                self._security.thread, next, conversation
            )
            self._first_token.add_done_callback(self._on_first_token)

    def _on_first_token(self, token: asyncio.Future[bytes]) -> None:
        """Send the token that the thread has made, unless the connection has ended meanwhile."""
        self._first_token = None
        if self._ended or token.cancelled():
            return
        try:
            self._send_token(token.result())
        except ApiError as error:
            self.end(error.message)

    def _send_token(self, token: bytes) -> None:
        self._send_login_request(SaslAuthenticateRequest(auth_bytes=token), _AUTHENTICATE_VERSION)

    def _logged_in(self, response: SaslAuthenticateResponse) -> None:
        self._login_wire = self._conversation = None
        if response.session_lifetime_ms > 0:
            lifetime_s = response.session_lifetime_ms / 1000
            self._renew_at_s = self._loop.time() + lifetime_s * _RENEW_AT
        transport, self._pending_transport = self._pending_transport, None
        super().connection_made(transport)

    # asyncio's side

    def connection_made(self, transport: Any) -> None:
        if self._ended:
            transport.abort()
            return
        self._pending_transport = transport
        self._log_in()

    def get_buffer(self, sizehint: int) -> memoryview:
        wire = self._login_wire
        return super().get_buffer(sizehint) if wire is None else wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        wire = self._login_wire
        if wire is None:
            super().buffer_updated(nbytes)
            self._log_in_if_due()
            return
        try:
            for response in wire.bytes_received(nbytes):
                self._on_login_response(response.message)
        except ProtocolViolation as violation:
            self.end(str(violation))
        except ApiError as error:
            self.end(error.message)


def _refusal(response: Any, security: NodeSecurity) -> str:
    if isinstance(response, SaslHandshakeResponse):
        offered = ", ".join(response.mechanisms)
        return f"it does not offer SASL mechanism {security.mechanism}; it offers: {offered}"
    return response.error_message or "authentication failed"
