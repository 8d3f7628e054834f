"""A socket to a broker, for bytes that no proper client would send."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.schema import Message

LIMIT_S = 30.0


class RawConnection:
    """One connection. `name` is this peer's name in the broker's log: "127.0.0.1:port"."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=LIMIT_S)
        self.name = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def send(self, data: bytes) -> None:
        """Send; a broker that has closed already is no error."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def finish_sending(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def read_frame(self) -> bytes | None:
        """A frame without its size, or None if the broker closed the connection."""
        size = self._read(4)
        return None if size is None else self._read(struct.unpack(">i", size)[0])

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = self._socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not part:
                return None
            data += part
        return data

    def is_closed_by_peer(self) -> bool:
        """Wait until the broker closes the connection (True) or answers (False)."""
        return self._read(1) is None

    def request(self, message: Message, version: int, response_class: type[Message]) -> Any:
        """One well-framed request and its answer, which must come."""
        self.send(encode_request(message, version, 77, "raw"))
        frame = self.read_frame()
        assert frame is not None, f"{self.name} was closed instead of answered"
        correlation_id, response = decode_response(response_class, version, memoryview(frame))
        assert correlation_id == 77
        return response

    def authenticate(self, token: bytes) -> Any:
        """The answer to a token of a login, or None if the connection was closed instead."""
        try:
            request = SaslAuthenticateRequest(auth_bytes=token)
            return self.request(request, 2, SaslAuthenticateResponse)
        except AssertionError:  # closed
            return None

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
