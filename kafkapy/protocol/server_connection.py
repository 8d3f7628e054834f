"""The server's side of one connection, sans-I/O: bytes in, requests out; responses in, bytes out.

The caller receives into `get_buffer`, passes each frame that `bytes_received` returns to `request`
(or calls `take_slot`, if it reads the frame itself), passes responses to `respond` in any order,
and sends the result of `data_to_send`. Responses are sent in the order of their requests.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.protocol.framing import FrameReader, ReceiveBuffers
from kafkapy.protocol.headers import RequestHeader, decode_request_header
from kafkapy.protocol.primitives import Buffer


class Request(NamedTuple):
    """One request: its place in the order of responses, its header, and where its body starts."""

    slot: int
    header: RequestHeader
    frame: memoryview
    body: int


class ServerConnection:
    """Splits received bytes into requests, and puts responses in order."""

    __slots__ = ("_due", "_due_slot", "_early_responses", "_next_slot", "_reader")

    def __init__(self, max_request_bytes: int, buffers: ReceiveBuffers) -> None:
        """`buffers` are shared by all connections of an event loop (see `framing`)."""
        self._reader = FrameReader(max_request_bytes, buffers)
        self._next_slot = 0  # the number of requests taken
        self._due_slot = 0  # the slot whose response is due next
        self._early_responses: dict[
            int, list[Buffer] | None
        ] = {}  # responses that wait for that one
        self._due: list[Buffer] = []

    def allow(self, request_bytes_max: int) -> None:
        """Change the limit of requests: it is lower for clients that have not authenticated."""
        self._reader.allow(request_bytes_max)

    @property
    def awaited_bytes(self) -> int:
        """The size of the request that has begun to arrive, 0 if there is none."""
        return self._reader.awaited_bytes

    @property
    def pending(self) -> int:
        """The number of requests whose responses have not been put in order yet."""
        return self._next_slot - self._due_slot

    def get_buffer(self) -> memoryview:
        """The buffer for the next received bytes. Frames that were returned before become
        invalid."""
        return self._reader.get_buffer()

    def bytes_received(self, n: int) -> list[memoryview]:
        """Take `n` received bytes; returns the frames that are complete now, in order.

        Raises:
            ProtocolViolation: the peer does not use Kafka's protocol. Close the connection.
        """
        return self._reader.bytes_received(n)

    def request(self, frame: memoryview) -> Request:
        """Take a frame: read its header and give it the next place in the order of responses.

        Raises:
            ProtocolViolation: as `bytes_received`.
        """
        header, body = decode_request_header(frame)
        return Request(self.take_slot(), header, frame, body)

    def take_slot(self) -> int:
        """The next place in the order of responses."""
        slot = self._next_slot
        self._next_slot = slot + 1
        return slot

    def respond(self, slot: int, parts: list[Buffer] | None) -> None:
        """Set the response of a request, once. None sends nothing (Produce with acks=0)."""
        assert self._due_slot <= slot < self._next_slot, (slot, self._due_slot, self._next_slot)
        assert slot not in self._early_responses, slot
        if slot != self._due_slot:
            self._early_responses[slot] = parts
            return
        while True:
            if parts is not None:
                self._due += parts
            self._due_slot += 1
            if self._due_slot not in self._early_responses:
                return
            parts = self._early_responses.pop(self._due_slot)

    def data_to_send(self) -> list[Buffer]:
        """The bytes that are due now, in the order of the requests. They are returned once."""
        due, self._due = self._due, []
        return due
