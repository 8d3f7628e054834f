"""TLS below a connection: handshakes leave the event loop free, bytes arrive whole and in order,
and the client learns why it is refused.

The client is an OpenSSL object in memory: each test passes ciphertext in pieces of its own.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafkapy.server.network.tls_transport import (
    RECEIVED_BYTES,
    RECORDS_AT_ONCE,
    SILENT_RECORDS_MAX,
    UNREAD_ANSWERS_MAX,
    TlsResources,
    TlsTransport,
)
from tests.harness.processes.waiting import LIMIT_S
from tests.harness.scripted.scripted_node import in_loop
from tests.harness.scripted.transports import FakeTransport
from tests.harness.security.certificates import can_make
from tests.harness.security.key_updates import CIPHER, client_secret, key_updates
from tests.harness.security.tls_contexts import TlsContexts

RECORD_BYTES = 1 << 14
_APPLICATION_DATA = 23
CONTENT = random.Random(5).randbytes(300_000)


class Socket(FakeTransport):
    """A socket's transport that tells when it is read again, or closed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    def pause_reading(self) -> None:
        self.reading = False  # also if it was, as with asyncio

    def resume_reading(self) -> None:
        self.reading = True  # also if it was, as with asyncio
        self.changed.set()

    def close(self) -> None:
        super().close()
        self.changed.set()


class Reader(asyncio.BufferedProtocol):
    """A connection with a small buffer."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.buffer = bytearray(1000)
        self.received = b""
        self.sizes: list[int] = []
        self.calls: list[str] = []
        self.pauses_itself = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        self.sizes.append(nbytes)
        if self.pauses_itself:
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.calls.append("eof")

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")


class Pair:
    """A client in memory, and the server's transport on a socket that is none."""

    def __init__(self, resources: TlsResources, broker: ssl.SSLContext, client: ssl.SSLContext):
        self.reader = Reader()
        self.socket = Socket()
        self.server = TlsTransport(resources, lambda: broker, lambda: self.reader)
        self.server.connection_made(self.socket)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self._in, self._out, server_hostname="localhost")

    def feed(self, data: bytes) -> None:
        """Bytes that the server's socket receives."""
        for at in range(0, len(data), RECEIVED_BYTES):
            piece = data[at : at + RECEIVED_BYTES]
            self.server.get_buffer(-1)[: len(piece)] = piece
            self.server.buffer_updated(len(piece))

    def ciphertext(self, plaintext: bytes) -> bytes:
        """The ciphertext that a client sends for these bytes."""
        done = 0
        while done < len(plaintext):
            done += self.client.write(memoryview(plaintext)[done:])
        return self._out.read()

    def deliver(self) -> bytes:
        """Give the client what the server has sent; returns it."""
        sent, self.socket.sent = self.socket.sent, b""
        self._in.write(sent)
        return sent

    def decrypted(self) -> bytes:
        """The plaintext that the client has received."""
        got = b""
        while True:
            try:
                data = self.client.read(1 << 20)
            except ssl.SSLWantReadError:
                return got
            if not data:
                return got
            got += data

    async def step(self, data: bytes) -> None:
        """The server's step of the handshake for these bytes."""
        self.socket.changed.clear()
        self.feed(data)
        await asyncio.wait_for(self.socket.changed.wait(), LIMIT_S)

    async def shake_hands(self) -> None:
        """Until both sides are done."""
        while True:
            try:
                self.client.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self.step(self._out.read())
                self.deliver()
        await self.step(self._out.read())
        await self.server.handshake()
        self.deliver()


Scenario = Callable[[Pair, TlsContexts], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> TlsContexts | None:
    directory: Path = tmp_path_factory.mktemp("tls")
    return TlsContexts.make(directory) if can_make("TLS of a connection") else None


def with_pair(contexts: TlsContexts | None, scenario: Scenario, is_open: bool = True) -> None:
    if contexts is None:
        return
    found: TlsContexts = contexts

    async def run() -> None:
        resources = TlsResources()
        pair = Pair(resources, found.broker, found.client)
        try:
            if is_open:
                await pair.shake_hands()
            await scenario(pair, found)
        finally:
            resources.close()

    in_loop(run)


def record_sizes(ciphertext: bytes) -> list[int]:
    """The sizes of TLS records of application data."""
    sizes, at = [], 0
    while at < len(ciphertext):
        size = int.from_bytes(ciphertext[at + 3 : at + 5], "big")
        assert ciphertext[at] == _APPLICATION_DATA
        sizes.append(size)
        at += 5 + size
    return sizes


def test_a_handshake_holds_up_no_connection(contexts: TlsContexts | None) -> None:
    """The thread is stopped in the middle of a step; the loop serves another connection."""
    began, go_on = threading.Event(), threading.Event()
    threads: list[int] = []
    loops = threading.get_ident()

    class Slow(ssl.SSLObject):
        def do_handshake(self) -> None:
            threads.append(threading.get_ident())
            began.set()
            assert loops in threads or go_on.wait(LIMIT_S)
            super().do_handshake()

    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        contexts.broker.sslobject_class = Slow
        try:
            late = Pair(pair.server._resources, contexts.broker, contexts.client)
            shaking = asyncio.create_task(late.shake_hands())
            await asyncio.get_running_loop().run_in_executor(None, began.wait, LIMIT_S)
            assert not late.socket.reading  # OpenSSL's objects are the other thread's
            pair.feed(pair.ciphertext(b"ping"))
            pair.server.write(b"pong")
            pair.deliver()
            assert (pair.reader.received, pair.decrypted()) == (b"ping", b"pong")
            assert not shaking.done()
            go_on.set()
            await shaking
        finally:
            go_on.set()
            contexts.broker.sslobject_class = ssl.SSLObject
        assert loops not in threads

    with_pair(contexts, scenario)


@pytest.mark.parametrize("piece", [1, 700, RECEIVED_BYTES])
def test_bytes_arrive_in_order_in_any_pieces(contexts: TlsContexts | None, piece: int) -> None:
    content = CONTENT[: 2000 if piece == 1 else None]

    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        ciphertext = pair.ciphertext(content)
        for at in range(0, len(ciphertext), piece):
            pair.feed(ciphertext[at : at + piece])
        assert pair.reader.received == content

    with_pair(contexts, scenario)


def test_parts_of_a_response_share_records(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        parts: list[Any] = [b"head", memoryview(CONTENT)[:20_000], b"tail"]
        pair.server.writelines(parts)
        assert len(record_sizes(pair.deliver())) == 2
        assert pair.decrypted() == b"".join(parts)
        pair.server.write(CONTENT)
        pair.server.write(b"")
        sizes = record_sizes(pair.deliver())
        assert len(sizes) == -(-len(CONTENT) // RECORD_BYTES)
        assert pair.decrypted() == CONTENT

    with_pair(contexts, scenario)


def test_a_connection_that_pauses_gets_the_rest_later(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.reader.pauses_itself = True
        pair.feed(pair.ciphertext(CONTENT[:2500]))
        assert pair.reader.received == CONTENT[:1000]
        assert not pair.socket.reading
        pair.server.resume_reading()
        assert pair.reader.received == CONTENT[:1000]  # not within the call
        await asyncio.sleep(0)
        assert pair.reader.received == CONTENT[:2000]
        pair.reader.pauses_itself = False
        pair.server.resume_reading()
        await asyncio.sleep(0)
        assert pair.reader.received == CONTENT[:2500]

    with_pair(contexts, scenario)


def test_bytes_behind_the_handshake_are_the_connections(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.do_handshake()
        await pair.step(pair._out.read())
        pair.deliver()
        pair.client.do_handshake()
        await pair.step(pair.ciphertext(b"at once"))
        assert pair.reader.received == b"at once"

    with_pair(contexts, scenario, is_open=False)


def test_a_close_sends_what_was_written_and_the_end_of_tls(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.server.write(b"last words")
        pair.server.close()
        assert pair.socket.closing
        assert not pair.socket.aborted
        pair.deliver()
        assert pair.client.read(100) == b"last words"
        assert pair.client.read(100) == b""  # an end that nobody cut off
        pair.server.write(b"never sent")
        pair.feed(pair.ciphertext(b"never read"))
        assert (pair.socket.sent, pair.reader.received) == (b"", b"")

    with_pair(contexts, scenario)


def test_the_clients_end_closes(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        ciphertext = pair.ciphertext(b"goodbye")
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.unwrap()
        pair.feed(ciphertext + pair._out.read())
        assert (pair.reader.received, pair.reader.calls) == (b"goodbye", ["eof"])
        assert pair.server.is_closing()
        assert pair.socket.closing
        pair.server.connection_lost(None)
        assert pair.reader.calls == ["eof", "lost"]

    with_pair(contexts, scenario)


def test_the_clients_end_waits_for_what_the_connection_has_not_handled_yet(
    contexts: TlsContexts | None,
) -> None:
    """A connection pauses while requests wait in it: those of a client that ended without answers
    would be lost with it.
    """

    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.reader.pauses_itself = True
        ciphertext = pair.ciphertext(CONTENT[:1500])
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.unwrap()
        pair.feed(ciphertext + pair._out.read() + b"behind it")
        for received in (1000, 1500):
            assert pair.reader.received == CONTENT[:received]
            assert (pair.reader.calls, pair.socket.closing) == ([], False)
            pair.server.resume_reading()
            await asyncio.sleep(0)
        assert (pair.reader.calls, pair.socket.closing) == (["eof"], True)

    with_pair(contexts, scenario)


def test_the_end_of_the_socket_does_not_overtake_what_was_received(
    contexts: TlsContexts | None,
) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.reader.pauses_itself = True
        pair.feed(pair.ciphertext(CONTENT[:1500]))
        pair.server.resume_reading()
        assert not pair.socket.reading  # it could tell of its end now
        pair.reader.pauses_itself = False
        await asyncio.sleep(0)
        assert (pair.reader.received, pair.socket.reading) == (CONTENT[:1500], True)

    with_pair(contexts, scenario)


def test_a_damaged_record_ends_the_connection(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        ciphertext = bytearray(pair.ciphertext(b"x" * 100))
        ciphertext[50] ^= 1
        pair.feed(bytes(ciphertext))
        assert pair.socket.aborted
        assert pair.reader.received == b""

    with_pair(contexts, scenario)


def test_the_client_learns_why_it_is_refused(tmp_path: Path) -> None:
    if not can_make("an alert to a client without a certificate"):
        return

    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        stranger = Pair(pair.server._resources, contexts.broker, contexts.stranger)
        with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            await stranger.shake_hands()
        assert stranger.socket.closing
        assert not stranger.socket.aborted
        assert stranger.reader.transport is None
        stranger.deliver()
        with pytest.raises(ssl.SSLError, match="ALERT_CERTIFICATE_REQUIRED"):
            stranger.client.read(1)

    with_pair(TlsContexts.make(tmp_path, "required"), scenario)


def test_a_client_that_goes_away_in_a_handshake(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        waiting = asyncio.create_task(pair.server.handshake())
        pair.server.connection_lost(None)
        with pytest.raises(ConnectionResetError):
            await waiting
        cancelled = Pair(pair.server._resources, contexts.broker, contexts.client)
        waiting = asyncio.create_task(cancelled.server.handshake())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert cancelled.socket.aborted

    with_pair(contexts, scenario, is_open=False)


def test_a_handshake_after_the_end_of_the_thread(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.server._resources.close()
        pair.feed(b"hello")
        assert pair.socket.aborted

    with_pair(contexts, scenario, is_open=False)


def test_a_full_socket_pauses_the_connection(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        pair.server.pause_writing()
        pair.server.resume_writing()
        assert pair.reader.calls == ["pause", "resume"]
        pair.socket.unsent = 7
        assert pair.server.get_write_buffer_size() == 7
        pair.server.set_write_buffer_limits(5)
        assert pair.socket.high == 5

    with_pair(contexts, scenario)


def test_a_client_that_reads_no_answers_of_tls_is_closed(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        def update_keys(size: int) -> None:
            """OpenSSL answers while it reads."""
            pair.server._outgoing.write(b"x" * size)
            pair.feed(pair.ciphertext(b"y"))

        update_keys(UNREAD_ANSWERS_MAX + 1)  # the client reads
        for _ in range(2):
            pair.server.pause_writing()
            update_keys(UNREAD_ANSWERS_MAX)
            pair.server.resume_writing()
        assert not pair.socket.aborted
        pair.server.pause_writing()
        update_keys(UNREAD_ANSWERS_MAX)
        pair.socket.sent = b""
        update_keys(1)
        assert (pair.socket.aborted, pair.socket.sent) == (True, b"")

    with_pair(contexts, scenario)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_turn_decrypts_a_limited_number_of_records(
    contexts: TlsContexts | None, is_open: bool
) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        content = CONTENT[: 2 * RECORDS_AT_ONCE + 50]
        if not is_open:
            with pytest.raises(ssl.SSLWantReadError):
                pair.client.do_handshake()
            await pair.step(pair._out.read())
            pair.deliver()
            pair.client.do_handshake()
        ciphertext = b"".join(pair.ciphertext(bytes([each])) for each in content)
        if is_open:
            pair.feed(ciphertext)
        else:
            await pair.step(ciphertext)
        while len(pair.reader.received) < len(content):
            assert not pair.socket.reading
            await asyncio.sleep(0)
        assert max(pair.reader.sizes) <= RECORDS_AT_ONCE
        assert (pair.reader.received, pair.socket.reading) == (content, True)

    with_pair(contexts, scenario, is_open)


def test_a_connection_that_pauses_between_two_turns(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        content = CONTENT[: RECORDS_AT_ONCE + 50]
        pair.feed(b"".join(pair.ciphertext(bytes([each])) for each in content))
        pair.server.pause_reading()
        await asyncio.sleep(0)
        assert pair.reader.received == content[:RECORDS_AT_ONCE]
        assert not pair.socket.reading
        pair.server.resume_reading()
        await asyncio.sleep(0)
        assert (pair.reader.received, pair.socket.reading) == (content, True)

    with_pair(contexts, scenario)


def test_a_client_that_only_updates_its_keys_is_closed(
    contexts: TlsContexts | None, tmp_path: Path
) -> None:
    """A client without a login could hold the event loop for half a second with 256 KiB."""

    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        key_log = tmp_path / "keys"
        contexts.client.keylog_filename = str(key_log)
        client = Pair(pair.server._resources, contexts.broker, contexts.client)
        await client.shake_hands()
        cipher = client.client.cipher()
        assert cipher is not None
        assert cipher[0] == CIPHER
        client.feed(key_updates(client_secret(key_log.read_text()), SILENT_RECORDS_MAX + 1))
        turns = 1
        while not client.socket.aborted:
            assert not client.socket.reading
            turns += 1
            await asyncio.sleep(0)
        assert turns == SILENT_RECORDS_MAX // RECORDS_AT_ONCE + 1

    with_pair(contexts, scenario, is_open=False)


def test_records_without_bytes_do_not_add_up(contexts: TlsContexts | None) -> None:
    async def scenario(pair: Pair, contexts: TlsContexts) -> None:
        for _ in range(SILENT_RECORDS_MAX + 1):
            pair.feed(pair.ciphertext(b"y"))
        assert not pair.socket.aborted

    with_pair(contexts, scenario)
