"""TLS between a socket's transport and a connection.

uvloop computes handshakes on the event loop. Each takes up to some milliseconds of public-key
operations, so clients that connect together held up all other connections. Here another thread
computes each step of a handshake (docs/decisions/0058).

    HANDSHAKE   a step runs in the thread, or waits for bytes  -> OPEN, or CLOSED
    OPEN        encrypts and decrypts on the loop              -> CLOSED
    CLOSED      nothing is sent or delivered any more

While a step runs, the socket is not read: only one thread at a time uses OpenSSL's objects.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

logger = logging.getLogger("kafka.network.SocketServer")

RECEIVED_BYTES: Final = 1 << 18
"""The bytes that are received at once. OpenSSL's buffer of each connection grows to this size. With
a quarter of it, receiving costs 0.2 s/GB more."""
SENT_BYTES: Final = 1 << 16
"""Encrypted bytes are passed to the socket when they reach this size, or at the end of a write."""
UNREAD_ANSWERS_MAX: Final = 1 << 16
"""The limit of TLS's own answers, in bytes, that wait because the client does not read."""
RECORDS_AT_ONCE: Final = 100
"""The TLS records that OpenSSL gets in one turn of the event loop. It handles an update of keys,
27 bytes, in some 50 us, and all that it has in one call: 256 KiB of them took half a second."""
SILENT_RECORDS_MAX: Final = 1000
"""The limit of records in succession, such as updates of keys, that carry no bytes."""
_HEADER_BYTES: Final = 5
_CONTENT_TYPES: Final = range(20, 25)


class State(enum.Enum):
    """The states of the module's docstring."""

    HANDSHAKE = enum.auto()
    OPEN = enum.auto()
    CLOSED = enum.auto()


class TlsResources:
    """The thread for handshakes, and the memory for received bytes, of all TLS connections of an
    event loop.
    """

    def __init__(self) -> None:
        self.received = memoryview(bytearray(RECEIVED_BYTES))
        # One thread: handshakes must not take more than one core from the event loop.
        self.thread = ThreadPoolExecutor(1, "tls-handshakes")

    def close(self) -> None:
        """End the thread after the step that runs. Later steps fail."""
        self.thread.shutdown(wait=False, cancel_futures=True)


class TlsTransport(asyncio.BufferedProtocol):
    """The protocol of a socket's transport, and the transport of a connection.

    Fixed: the TLS context of the handshake, and the factory of the connection, which is called
    after it.
    """

    def __init__(
        self,
        resources: TlsResources,
        context: Callable[[], ssl.SSLContext],
        new_connection: Callable[[], asyncio.BufferedProtocol],
    ) -> None:
        self._resources = resources
        self._context = context()
        self._new_connection = new_connection
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._state = State.HANDSHAKE
        self._loop = asyncio.get_running_loop()
        self._handshake: asyncio.Future[None] = self._loop.create_future()
        self._socket: Any = None
        self._connection: asyncio.BufferedProtocol | None = None
        self._is_reading = True
        self._is_ended = False  # by the client: no more bytes come
        self._is_full = False  # the socket's buffer
        self._unread_answers = 0  # bytes, while the buffer is full
        self._rest = b""  # received, and not passed to OpenSSL yet
        self._record_rest = 0  # the bytes to come of a record that OpenSSL has in part
        self._has_more = False  # records in `_rest`
        self._is_delivery_due = False  # in a later turn
        self._silent_records = 0

    async def handshake(self) -> None:
        """Wait until the connection is made. If this is cancelled, the socket is closed.

        Raises:
            ssl.SSLError: the handshake failed.
            OSError: the client went away.
        """
        try:
            await self._handshake
        except asyncio.CancelledError:
            self.abort()
            raise

    # the socket's side

    def connection_made(self, transport: Any) -> None:
        self._socket = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._state = State.CLOSED
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.connection_lost(exc)
        elif not self._handshake.done():
            self._handshake.set_exception(exc or ConnectionResetError("the client went away"))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._resources.received

    def buffer_updated(self, nbytes: int) -> None:
        received = self._resources.received[:nbytes]
        if self._rest:
            received = memoryview(b"".join((self._rest, received)))
        self._pass_records(received)
        if self._state is State.OPEN:
            self._read()
        elif self._state is State.HANDSHAKE:
            self._run_handshake_step()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_full = True
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        self._unread_answers = 0
        if self._connection is not None:
            self._connection.resume_writing()

    # the handshake, and received bytes

    def _pass_records(self, received: memoryview) -> None:
        """Pass at most `RECORDS_AT_ONCE` records to OpenSSL, and keep the rest."""
        end, size, count = self._record_rest, len(received), 0
        while end + _HEADER_BYTES <= size and count < RECORDS_AT_ONCE:
            if received[end] not in _CONTENT_TYPES:
                end = size  # OpenSSL refuses it
                break
            end += _HEADER_BYTES + int.from_bytes(received[end + 3 : end + 5], "big")
            count += 1
        passed = min(end, size)
        self._incoming.write(received[:passed])
        self._record_rest = end - passed
        self._rest = bytes(received[passed:])
        self._has_more = count == RECORDS_AT_ONCE and bool(self._rest)
        self._silent_records += count

    def _run_handshake_step(self) -> None:
        try:
            step = self._loop.run_in_executor(self._resources.thread, self._tls.do_handshake)
        except RuntimeError:  # the broker stops, and its thread has ended
            self.abort()
            return
        self._socket.pause_reading()
        step.add_done_callback(self._on_step_done)

    def _on_step_done(self, step: asyncio.Future[None]) -> None:
        error = asyncio.CancelledError() if step.cancelled() else step.exception()
        if self._state is not State.HANDSHAKE:
            return
        self._send()  # also the alert with the reason for the client
        if isinstance(error, ssl.SSLWantReadError):
            if self._has_more:
                self._pass_records(memoryview(self._rest))
                self._run_handshake_step()
            else:
                self._socket.resume_reading()
        elif error is None:
            self._open()
        else:
            if not self._handshake.done():
                self._handshake.set_exception(error)
            self.close()

    def _open(self) -> None:
        self._state = State.OPEN
        self._silent_records = 0
        self._connection = self._new_connection()
        # Reading goes on first: the connection may pause it.
        self._socket.resume_reading()
        self._connection.connection_made(self)  # type: ignore[arg-type]  # as uvloop's: none
        if not self._handshake.done():
            self._handshake.set_result(None)
        self._read()

    def _read(self) -> None:
        """Decrypt what was received, into the connection's buffers."""
        incoming, tls, connection = self._incoming, self._tls, self._connection
        while self._state is State.OPEN and self._is_reading:
            assert connection is not None
            if self._is_ended:
                connection.eof_received()
                self.close()
            elif incoming.pending or tls.pending():
                filled, self._is_ended = self._decrypt(connection.get_buffer(-1))
                if filled:
                    self._silent_records = 0
                    connection.buffer_updated(filled)
            else:
                break
        if self._outgoing.pending:  # for example, OpenSSL's answer to an update of keys
            self._answer()
        if self._silent_records > SILENT_RECORDS_MAX:
            logger.debug("Closing a connection: its TLS records carry no bytes")
            self.abort()
        elif self._has_more and self._is_reading and self._state is State.OPEN:
            self._socket.pause_reading()
            self._deliver_later()

    def _answer(self) -> None:
        """Send an answer that OpenSSL itself has made. A client may request one in every record,
        and read none of them. The connection does not bound them: it reads while no request waits.
        """
        if self._is_full:
            self._unread_answers += self._outgoing.pending
        if self._unread_answers > UNREAD_ANSWERS_MAX:
            logger.debug("Closing a connection: it does not read the answers of TLS")
            self.abort()
        else:
            self._send()

    def _decrypt(self, buffer: Any) -> tuple[int, bool]:
        """Fill a buffer. Returns the number of bytes, and whether the client has ended TLS. An
        exception costs more than a record, so it is not used to find the last one.
        """
        incoming, tls = self._incoming, self._tls
        size, filled = len(buffer), 0
        try:
            while filled < size and (incoming.pending or tls.pending()):
                rest: Any = buffer[filled:] if filled else buffer
                count: int = tls.read(size - filled, rest)  # type: ignore[assignment]
                if count == 0:
                    return filled, True
                filled += count
        except ssl.SSLWantReadError:
            pass  # the rest of a record is still to come
        except ssl.SSLError as error:
            logger.debug("Closing a connection: its TLS is broken: %s", error)
            self.abort()
        return filled, False

    def _send(self) -> None:
        """Pass encrypted bytes to the socket."""
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    # the connection's side

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send. A record takes 16 KiB."""
        if self._state is not State.OPEN:
            return
        outgoing, encrypt, size, done = self._outgoing, self._tls.write, len(data), 0
        try:
            while done < size:
                done += encrypt(memoryview(data)[done:] if done else data)
                if outgoing.pending >= SENT_BYTES:
                    self._send()
        except ssl.SSLError as error:
            logger.debug("Closing a connection: its TLS is broken: %s", error)
            self.abort()
            return
        self._send()

    def writelines(self, parts: list[Any]) -> None:
        """Send together: each `write` would make a record of its own."""
        self.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""
        self._is_reading = False
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again. Bytes received before the pause are delivered first, in a later turn.
        Until then the socket is not read: its end would close the connection before that.
        """
        self._is_reading = True
        if self._is_ended or self._has_more or self._incoming.pending or self._tls.pending():
            self._deliver_later()
        else:
            self._socket.resume_reading()

    def _deliver_later(self) -> None:
        if not self._is_delivery_due:
            self._is_delivery_due = True
            self._loop.call_soon(self._resume_delivery)

    def _resume_delivery(self) -> None:
        self._is_delivery_due = False
        if self._has_more and self._is_reading and not self._incoming.pending:
            self._pass_records(memoryview(self._rest))
        self._read()
        is_open = self._state is State.OPEN and not self._socket.is_closing()
        if is_open and self._is_reading and not self._has_more:
            self._socket.resume_reading()

    def close(self) -> None:
        """End TLS and close, after sending buffered bytes. Does not wait for the client's end of
        TLS.
        """
        if self._state is State.OPEN:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # it would wait for the client's
            self._send()
        self._state = State.CLOSED
        self._socket.close()

    def abort(self) -> None:
        """Close at once."""
        self._state = State.CLOSED
        self._socket.abort()

    def is_closing(self) -> bool:
        return self._state is State.CLOSED or bool(self._socket.is_closing())

    def set_write_buffer_limits(self, high: int) -> None:
        self._socket.set_write_buffer_limits(high)

    def get_write_buffer_size(self) -> int:
        size: int = self._socket.get_write_buffer_size()
        return size

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        if name == "sslcontext":
            return self._context
        return self._socket.get_extra_info(name, default)
