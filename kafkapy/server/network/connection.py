"""One client connection on the event loop: bytes in, requests to the dispatcher, responses out in
order.

`protocol.server_connection` does the framing and keeps the order; the dispatcher handles requests.
This module adds back-pressure: it does not read from a client that does not read its responses
(`_may_handle`). Frames received by then wait as copies, at most one scratch buffer of them. They
also wait behind `FRAMES_A_TURN` others: the event loop serves other connections in between.

State per broker: `ConnectionTable`. State per connection: `_wire`, the waiting frames, the waiting
requests, and the fast path of a producer or follower.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.config.addresses import client_address
from kafkapy.server.network.file_region_sender import FileRegionSender, has_region, hold_regions
from kafkapy.server.network.request_memory import Lease
from kafkapy.server.requests.outcomes import ANONYMOUS, CLOSE_CONNECTION, NO_RESPONSE, Pending
from kafkapy.server.requests.request_handler import UNKNOWN_SOFTWARE

if TYPE_CHECKING:
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.requests.request_handler import FastPath, RequestHandler

logger = logging.getLogger("kafka.network.SocketServer")

FRAMES_A_TURN: Final = 16
"""The number of requests of one connection that are handled before those of others. A client can
send 13,000 in one read."""
PARKED_REQUESTS_MAX: Final = 64
FLUSH_BYTES: Final = 1 << 16
QUEUED_BYTES_MAX: Final = 1 << 20
WRITE_HIGH_WATER_BYTES: Final = 1 << 20


class Connection(asyncio.BufferedProtocol):
    """Serves one accepted socket."""

    __slots__ = (
        "_blocking",
        "_dispatcher",
        "_has_turn",
        "_lease",
        "_mute_timer",
        "_muted_until_ms",
        "_now_ms",
        "_on_closed",
        "_parked",
        "_peer_read_bytes",
        "_peer_read_ms",
        "_queued_bytes",
        "_reading",
        "_sender",
        "_table",
        "_transport",
        "_waiting",
        "_wire",
        "_writable",
        "_written_bytes",
        "client_host",
        "client_software",
        "fast_path",
        "is_token",
        "last_active_ms",
        "listener",
        "peer",
        "principal",
    )

    def __init__(
        self,
        listener: str,
        dispatcher: RequestHandler,
        table: ConnectionTable,
        wire: ServerConnection,
        now_ms: Callable[[], int],
    ) -> None:
        self.listener = listener
        self.peer = "?"
        self.client_host = "?"
        self.client_software = UNKNOWN_SOFTWARE
        self.principal = ANONYMOUS
        self.is_token = False
        self.last_active_ms = now_ms()
        self.fast_path: FastPath | None = None
        self._dispatcher = dispatcher
        self._table = table
        self._wire = wire
        self._now_ms = now_ms
        self._transport: Any = None
        self._sender: FileRegionSender | None = None  # of a connection that fetches
        self._parked: dict[Pending[Any], None] = {}  # in the order of their arrival
        self._blocking: Pending[Any] | None = None
        # A share of the broker's memory pool for requests, if it is bounded.
        self._lease = None if table.memory is None else Lease(table.memory, self._adjust_reading)
        self._mute_timer: asyncio.TimerHandle | None = None
        self._on_closed: Callable[[], None] | None = None
        self._muted_until_ms = 0
        self._waiting: deque[bytes] = deque()
        self._has_turn = False  # a later one, for the waiting frames
        self._queued_bytes = 0
        self._written_bytes = 0  # of responses, to the transport or its sender
        self._peer_read_bytes = 0  # of those, read by the peer at the last check
        self._peer_read_ms = self.last_active_ms  # when that changed
        self._writable = True
        self._reading = True

    # asyncio's side

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        address = transport.get_extra_info("peername") or ("?", 0)
        self.client_host = client_address(str(address[0]))
        self.peer = f"{self.client_host}:{address[1]}"
        self._table.opened(self)
        transport.set_write_buffer_limits(WRITE_HIGH_WATER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        for pending in self._parked:
            pending.abandon()
        self._parked.clear()
        self._waiting.clear()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        if self.fast_path is not None:
            self.fast_path.close()
            self.fast_path = None  # it refers to this connection
        if self._lease is not None:
            self._lease.close()
            self._lease = None
        self._sender = None
        self._transport = None
        if self._on_closed is not None:
            self._on_closed()
            self._on_closed = None

    def when_closed(self, step: Callable[[], None]) -> None:
        if self._transport is None:
            step()
        else:
            self._on_closed = step

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active_ms = self._now_ms()
        try:
            self._receive(self._wire.bytes_received(nbytes))
        except ProtocolViolation as violation:
            self._on_violation(violation)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writable = False
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._sender is not None:
            self._sender.send_more()
        self._drain()

    # ours

    def close(self) -> None:
        """Close after sending the due responses."""
        self._flush()
        if self._sender is not None:
            self._sender.close()
        elif self._transport is not None:
            self._transport.close()

    def close_idle_peer(self) -> None:
        """Close the connection of an idle peer at once, since its buffered output may never be
        read.
        """
        if self._unsent_bytes():
            self._transport.abort()
        else:
            self.close()

    def idle_ms(self, now_ms: int) -> int:
        """The time for which the peer has been idle. While responses wait, the peer is idle if it
        reads none of their bytes, whatever it sends. Otherwise it is idle if it sends nothing and
        no response is due, or if it has hung up. Call this regularly: bytes read since the last
        call count as activity now, as in Kafka.
        """
        unsent = self._unsent_bytes()
        peer_read_bytes = self._written_bytes - unsent
        if peer_read_bytes != self._peer_read_bytes:
            self._peer_read_bytes = peer_read_bytes
            self._peer_read_ms = self.last_active_ms = now_ms
        if unsent:
            return now_ms - self._peer_read_ms
        self._peer_read_ms = now_ms
        return now_ms - self.last_active_ms if self.is_idle or self._peer_has_closed() else 0

    def _peer_has_closed(self) -> bool:
        """Whether the peer has hung up while it is not read, which the event loop does not see."""
        transport = self._transport
        if self._reading or transport is None or transport.is_closing():
            return False
        socket = transport.get_extra_info("socket")
        if socket is None:  # in the simulator
            return False
        events = select.poll()
        events.register(socket.fileno(), select.POLLRDHUP)
        return bool(events.poll(0))

    def _unsent_bytes(self) -> int:
        if self._transport is None:
            return 0
        unsent: int = self._transport.get_write_buffer_size()
        return unsent if self._sender is None else unsent + self._sender.unsent_bytes

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no response is due on this connection."""
        return not self._parked and not self._waiting and self._mute_timer is None and self._reading

    def mute(self, pause_ms: int) -> None:
        """Stop handling requests for a time, because a quota is exceeded. Responses are still
        sent.
        """
        until_ms = self._now_ms() + pause_ms
        if self._mute_timer is not None:
            if until_ms <= self._muted_until_ms:
                return
            self._mute_timer.cancel()
        self._muted_until_ms = until_ms
        self._mute_timer = asyncio.get_running_loop().call_later(pause_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._mute_timer = None
        self._drain()

    def _receive(self, frames: list[memoryview]) -> None:
        waiting = self._waiting
        frames_left = FRAMES_A_TURN
        for frame in frames:
            if waiting or not frames_left or not self._may_handle():
                # The frame lies in a buffer that the next read overwrites. A view takes 184 bytes,
                # and a client can send 65,536 empty frames at once.
                waiting.append(bytes(frame))
            else:
                frames_left -= 1
                self._handle(frame)
        self._flush()
        self._end_turn()

    def _may_handle(self) -> bool:
        return (
            self._blocking is None
            and self._mute_timer is None
            and self._writable
            and self._queued_bytes < QUEUED_BYTES_MAX
            and len(self._parked) < PARKED_REQUESTS_MAX
        )

    def _handle(self, frame: memoryview) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        fast_path = self.fast_path
        if fast_path is not None:
            answer = self._dispatcher.dispatch_fast(self, fast_path, frame)
            if answer is not None:
                slot = self._wire.take_slot()
                if isinstance(answer, Pending):
                    self._park(slot, answer, _as_parts)
                elif answer is NO_RESPONSE:
                    self._wire.respond(slot, None)
                elif answer is CLOSE_CONNECTION:
                    self.close()
                else:
                    self._answer(slot, _as_parts(answer))
                return
        request = self._wire.request(frame)
        outcome = self._dispatcher.dispatch(self, request)
        if isinstance(outcome, list):
            self._answer(request.slot, outcome)
        elif outcome is NO_RESPONSE:
            self._wire.respond(request.slot, None)
        elif outcome is CLOSE_CONNECTION:
            self.close()
        else:
            self._park(request.slot, outcome, partial(self._dispatcher.encode, request.header))

    def _park(self, slot: int, pending: Pending[Any], encode: Callable[[Any], Any]) -> None:
        """Wait for a response. `encode` returns its parts, or another outcome that is handled
        here."""
        self._parked[pending] = None
        if pending.blocks:
            self._blocking = pending

        def completed(response: Any) -> None:
            self._parked.pop(pending, None)
            if self._blocking is pending:
                self._blocking = None
            if self._transport is None:
                return
            parts = encode(response)
            if isinstance(parts, list):
                self._answer(slot, parts)
            elif isinstance(parts, Pending):
                self._park(slot, parts, encode)
                return
            elif isinstance(parts, ProtocolViolation):
                self._on_violation(parts)
                return
            elif parts is NO_RESPONSE:
                self._wire.respond(slot, None)
            else:
                self.close()
                return
            self._drain()

        pending.when_complete(completed)

    def _answer(self, slot: int, parts: list[Any]) -> None:
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        self._queued_bytes += size
        self._wire.respond(slot, parts)
        if size > FLUSH_BYTES or self._queued_bytes >= QUEUED_BYTES_MAX:
            if self._sender is None and self._transport is not None and has_region(parts):
                self._sender = FileRegionSender(self._transport, WRITE_HIGH_WATER_BYTES)
            # Only written bytes show whether the client reads (`pause_writing`).
            self._flush()
            if self._sender is not None:
                self._hold(parts)

    def _hold(self, parts: list[Any]) -> None:
        """Keep the files of records that wait for the client, or for an earlier response."""
        try:
            hold_regions(parts)
        except OSError as error:
            logger.warning("Closing connection to %s: its records wait, and %s", self.peer, error)
            if self._transport is not None:
                self._transport.abort()

    def _flush(self) -> None:
        parts = self._wire.data_to_send()
        if parts:
            size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
            self._queued_bytes -= size
            self._written_bytes += size
            if self._sender is not None:
                self._sender.send(parts)
            elif self._transport is not None:
                self._transport.writelines(parts)

    def _drain(self) -> None:
        """Send the responses that are due, then handle waiting frames."""
        self._flush()
        waiting = self._waiting
        if waiting:
            frames_left = FRAMES_A_TURN
            try:
                while waiting and frames_left and self._may_handle():
                    frames_left -= 1
                    self._handle(memoryview(waiting.popleft()))
            except ProtocolViolation as violation:
                self._on_violation(violation)
            self._flush()
        self._end_turn()

    def _end_turn(self) -> None:
        """Leave the frames that still wait, although they may be handled, to a later turn."""
        if self._waiting and not self._has_turn and self._may_handle():
            self._has_turn = True
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._adjust_reading()

    def _take_turn(self) -> None:
        self._has_turn = False
        self._drain()

    def _adjust_reading(self) -> None:
        """Read while no frame waits. A pause during each waiting fetch would cost system calls, and
        would hide that its client has closed the connection.
        """
        should_read = not self._waiting
        if self._lease is not None:
            queued_bytes = sum(map(len, self._waiting))
            should_read &= self._lease.settle(self._wire.awaited_bytes, queued_bytes)
        if should_read != self._reading:
            transport = self._transport
            if transport is None or transport.is_closing():
                return
            self._reading = should_read
            if should_read:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _on_violation(self, violation: ProtocolViolation) -> None:
        logger.warning("Closing connection to %s: %s", self.peer, violation)
        self.abort()


def _as_parts(answer: bytes | list[Any]) -> list[Any]:
    """The parts of a response that is encoded already."""
    return [answer] if isinstance(answer, bytes) else answer
