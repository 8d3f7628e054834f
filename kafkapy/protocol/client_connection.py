"""The client's side of one connection, sans-I/O: requests to bytes, received bytes to responses.

A broker answers in the order of the requests, so each response must carry the correlation id of
the oldest request that still waits for one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.framing import FrameReader, ReceiveBuffers
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.schema import Message

RESPONSE_BYTES_MAX: Final = 2**31 - 1
_SCRATCH_BYTES: Final = 64 * 1024
_CORRELATION_ID_MAX: Final = 2**31 - 1


MakeFrame = Callable[[int], bytes]
"""Encodes a request with the given correlation id. The frame begins with the size prefix."""
ReadFrame = Callable[[memoryview], Any]
"""Decodes a response's frame, to any type. Raises ProtocolViolation."""


class Response(NamedTuple):
    """A response, decoded as set with its request, and the correlation id of both."""

    correlation_id: int
    message: Any


class ClientConnection:
    """Correlation ids, framing and decoding of one connection to a broker."""

    __slots__ = ("_client_id", "_next_id", "_pending", "_reader", "_scratch")

    def __init__(self, client_id: str | None, max_response_bytes: int = RESPONSE_BYTES_MAX) -> None:
        self._client_id = client_id
        self._next_id = 0
        buffers = ReceiveBuffers(_SCRATCH_BYTES)
        self._scratch = buffers.scratch
        self._reader = FrameReader(max_response_bytes, buffers)
        self._pending: deque[tuple[int, ReadFrame]] = deque()

    @property
    def pending(self) -> int:
        """The number of requests whose responses have not arrived."""
        return len(self._pending)

    def send(
        self, message: Message, version: int, *, expect_response: bool = True
    ) -> tuple[int, bytes]:
        """The correlation id and the frame of a request, to be sent in the order of the calls.

        `expect_response` is False for Produce with acks=0. Raises as `compile.encode`.
        """
        correlation_id = self._next_id
        frame = encode_request(message, version, correlation_id, self._client_id)
        self._next_id = 0 if correlation_id == _CORRELATION_ID_MAX else correlation_id + 1
        if expect_response:
            read = partial(_decode, response_class(message.API_KEY), version)
            self._pending.append((correlation_id, read))
        return correlation_id, frame

    def send_frame(self, make: MakeFrame, read: ReadFrame) -> bytes:
        """The frame of a request that `make` encodes. `read` decodes its response."""
        correlation_id = self._next_id
        frame = make(correlation_id)
        self._next_id = 0 if correlation_id == _CORRELATION_ID_MAX else correlation_id + 1
        self._pending.append((correlation_id, read))
        return frame

    def get_buffer(self) -> memoryview:
        """The buffer for the next received bytes."""
        return self._reader.get_buffer()

    def bytes_received(self, n: int) -> list[Response]:
        """Take `n` received bytes; returns the responses that are complete now.

        Their `records` stay valid: memory with views is not used again.

        Raises:
            ProtocolViolation: not a response, or not the next one. Close the connection.
        """
        return [self._response(frame) for frame in self._reader.bytes_received(n)]

    def _response(self, frame: memoryview) -> Response:
        if not self._pending:
            raise ProtocolViolation(f"a response of {len(frame)} bytes to no request")
        expected_id, read = self._pending.popleft()
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if correlation_id != expected_id:
            raise ProtocolViolation(f"correlation id {correlation_id} instead of {expected_id}")
        kept_frame = bytes(frame) if frame.obj is self._scratch else frame
        return Response(correlation_id, read(memoryview(kept_frame)))


def _decode(cls: type[Message], version: int, frame: memoryview) -> Message:
    return decode_response(cls, version, frame)[1]
