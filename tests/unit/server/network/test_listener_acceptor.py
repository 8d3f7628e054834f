"""A listener over real sockets: limits and rates hold from the accept on, and a TLS listener serves
clients that speak TLS, and says of each other why not."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network import listener_acceptor
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.listener_acceptor import ListenerAcceptor
from kafkapy.server.network.tls_transport import TlsResources, TlsTransport
from kafkapy.server.quotas.client_quotas import ConnectionRates
from kafkapy.server.quotas.creation_rates import CreationRates
from kafkapy.server.quotas.quota_usage import Windows
from tests.harness.scripted.scripted_node import in_loop
from tests.harness.security.certificates import can_make
from tests.harness.security.tls_contexts import TlsContexts

Scenario = Callable[[TlsContexts, int], Coroutine[Any, Any, None]]


async def ended(reader: asyncio.StreamReader) -> None:
    """Wait until the listener has ended a connection, without a byte."""
    with suppress(ConnectionError):
        assert await reader.read() == b""


class Echo(asyncio.BufferedProtocol):
    """Sends back what it gets."""

    def __init__(self) -> None:
        self.received = bytearray(1024)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.received

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.received[:nbytes]))


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def serving(directory: Path, client_auth: str, scenario: Scenario) -> int:
    """Run a scenario against a listener of echoes; how many handshakes failed."""
    table = ConnectionTable(KafkaConfig({}))

    async def run() -> None:
        contexts = TlsContexts.make(directory, client_auth)
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        resources = TlsResources()
        new_tls = partial(TlsTransport, resources, lambda: contexts.broker)
        acceptor = ListenerAcceptor("X", bound, table, Echo, now_ms, new_tls)
        acceptor.start(5)
        try:
            await scenario(contexts, bound.getsockname()[1])
        finally:
            acceptor.close()
            resources.close()
            bound.close()

    in_loop(run)
    assert (table.limits.total, len(table.unauthenticated)) == (0, 0)
    return table.logins.failed["X", "SSL"]


async def echoed(port: int, context: Any, data: bytes = b"hello") -> bytes:
    """The echo of `data`; empty if the listener hangs up."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=context and "localhost"
    )
    writer.write(data)
    try:
        return await reader.read(len(data))
    finally:
        writer.transport.abort()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "kafka.network.SocketServer"]


def test_both_sides_show_certificates(tmp_path: Path) -> None:
    if not can_make("a TLS listener"):
        return

    async def scenario(contexts: TlsContexts, port: int) -> None:
        assert await echoed(port, contexts.client) == b"hello"

    assert serving(tmp_path, "required", scenario) == 0


def test_a_client_without_its_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if not can_make("a TLS listener that wants certificates"):
        return
    caplog.set_level(logging.INFO)

    async def scenario(contexts: TlsContexts, port: int) -> None:
        try:
            assert await echoed(port, contexts.stranger) == b""
        except OSError:
            pass
        assert await echoed(port, contexts.client) == b"hello"

    assert serving(tmp_path, "required", scenario) == 1
    [line] = lines(caplog)
    assert line.startswith("Failed authentication with 127.0.0.1:")
    assert line.endswith("(SSL handshake failed: PEER_DID_NOT_RETURN_A_CERTIFICATE)")


@pytest.mark.parametrize(
    "data", [b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff", b"GET / HTTP/1.0\r\n\r\n"]
)
def test_a_client_that_does_not_speak_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    if not can_make("a plain client of a TLS listener"):
        return
    caplog.set_level(logging.INFO)

    async def scenario(contexts: TlsContexts, port: int) -> None:
        try:
            await echoed(port, None, data)  # an alert, or nothing
        except ConnectionError:
            pass
        assert await echoed(port, contexts.client) == b"hello"

    assert serving(tmp_path, "none", scenario) == 1
    [line] = lines(caplog)
    assert "(SSL handshake failed: the client does not speak TLS, " in line


def test_a_client_that_says_nothing_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if not can_make("a silent client of a TLS listener"):
        return

    async def scenario(contexts: TlsContexts, port: int) -> None:
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        assert await echoed(port, contexts.client) == b"hello"
        silent.transport.abort()

    assert serving(tmp_path, "none", scenario) == 0
    assert lines(caplog) == []


def test_a_handshake_counts_and_has_its_time(tmp_path: Path) -> None:
    if not can_make("a silent client of a TLS listener with limits"):
        return
    properties = {
        "max.connections.per.ip": "1",
        "kafkapy.authentication.timeout.ms": "300",
    }
    contexts = TlsContexts.make(tmp_path, "none")
    table = ConnectionTable(KafkaConfig(properties))

    async def scenario(port: int) -> None:
        first, silent = await asyncio.open_connection("127.0.0.1", port)
        late, refused = await asyncio.open_connection("127.0.0.1", port)
        assert await late.read() == b""
        assert table.accepted == 1
        assert await first.read() == b""
        assert await echoed(port, contexts.client) == b"hello"
        silent.close()
        refused.close()

    accepting(table, scenario, lambda: contexts.broker)
    assert (table.limits.total, len(table.unauthenticated)) == (0, 0)


def test_a_handshake_that_is_closed_before_it_begins_does_not_count(tmp_path: Path) -> None:
    if not can_make("silent clients of a TLS listener"):
        return
    table = ConnectionTable(KafkaConfig({}))

    def crowded_out(login: Any) -> None:
        login.abort()

    table.unauthenticated.begin = crowded_out  # type: ignore[method-assign]

    async def scenario(port: int) -> None:
        for _ in range(3):
            reader, silent = await asyncio.open_connection("127.0.0.1", port)
            await ended(reader)
            silent.transport.abort()

    accepting(table, scenario, lambda: TlsContexts.make(tmp_path, "none").broker)
    assert (table.accepted, table.limits.total) == (3, 0)


Accepting = Callable[[int], Coroutine[Any, Any, None]]


def accepting(
    table: ConnectionTable,
    scenario: Accepting,
    context: Callable[[], Any] | None = None,
    new_connection: type[Echo] = Echo,
) -> None:
    """Run a scenario against a listener PLAINTEXT of echoes with the limits of a table."""

    async def run() -> None:
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        resources = TlsResources()
        new_tls = None if context is None else partial(TlsTransport, resources, context)
        acceptor = ListenerAcceptor("PLAINTEXT", bound, table, new_connection, now_ms, new_tls)
        acceptor.start(5)
        try:
            await scenario(bound.getsockname()[1])
        finally:
            acceptor.close()
            resources.close()
            bound.close()

    in_loop(run)


def test_the_system_asks_whether_a_silent_client_is_still_there() -> None:
    """A client that waits for a response is not idle, and may be gone without a word."""
    asks = []

    class Noting(Echo):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            accepted = transport.get_extra_info("socket")
            asks.append(accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

    async def scenario(port: int) -> None:
        assert await echoed(port, None) == b"hello"

    accepting(ConnectionTable(KafkaConfig({})), scenario, new_connection=Noting)
    assert asks == [1]


def test_a_connection_that_begins_while_its_listener_is_closed_ends() -> None:
    """Otherwise it would count until the broker ends."""
    events = []

    class Noting(Echo):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            events.append("made")

        def connection_lost(self, exc: Exception | None) -> None:
            events.append("lost")

    table = ConnectionTable(KafkaConfig({}))
    admit = table.admit

    async def scenario(port: int) -> None:
        def admitted(listener: str, host: str) -> str | None:
            accepts = asyncio.current_task()
            assert accepts is not None
            asyncio.get_running_loop().call_soon(accepts.cancel)  # as `close` does
            return admit(listener, host)

        table.admit = admitted  # type: ignore[method-assign]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ended(reader)
        writer.transport.abort()

    accepting(table, scenario, new_connection=Noting)
    assert (events, table.limits.total) == (["made", "lost"], 0)


@pytest.mark.parametrize(
    "properties",
    [
        {"max.connections.per.ip": "1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
    ],
)
def test_an_address_beyond_its_limit_is_refused(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    table = ConnectionTable(KafkaConfig(properties))
    table.limits.count("PLAINTEXT", "127.0.0.1")

    async def scenario(port: int) -> None:
        assert await hung_up(port)
        table.limits.leave("PLAINTEXT", "127.0.0.1")
        assert await echoed(port, None) == b"hello"

    accepting(table, scenario)
    assert table.accepted == 1
    [line] = lines(caplog)
    assert "already has max.connections.per.ip=1 connections" in line


async def hung_up(port: int) -> bool:
    """Whether the listener closes a connection without a word."""
    try:
        return await echoed(port, None) == b""
    except ConnectionError:
        return True


def test_beyond_max_connections_clients_wait_in_the_backlog() -> None:
    table = ConnectionTable(KafkaConfig({"max.connections": "1"}))
    table.limits.count("PLAINTEXT", "10.0.0.1")

    async def scenario(port: int) -> None:
        waiting = asyncio.create_task(echoed(port, None))
        await asyncio.wait([waiting], timeout=0.05)
        assert not waiting.done()
        table.limits.leave("PLAINTEXT", "10.0.0.1")
        assert await waiting == b"hello"

    accepting(table, scenario)
    assert table.accepted == 1


class IdleClient:
    """An open connection to another listener."""

    listener, client_host, last_active_ms = "OTHER", "10.0.0.1", 0
    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_at_max_connections_a_new_client_does_not_end_the_connection_of_another_listener() -> None:
    """The other listener takes the last connection while this one waits for a client."""
    table: Any = ConnectionTable(KafkaConfig({"max.connections": "1"}))
    idle = IdleClient()

    async def scenario(port: int) -> None:
        is_accepted = asyncio.Event()

        def pause_ms(listener: str, now_ms: int) -> int:
            table.opened(idle)
            is_accepted.set()
            return 0

        table.pause_ms = pause_ms
        waiting = asyncio.create_task(echoed(port, None))
        await is_accepted.wait()
        assert not idle.is_aborted
        table.remove(idle)
        assert await waiting == b"hello"

    accepting(table, scenario)
    assert (table.accepted, table.limits.total) == (1, 0)


def test_connections_that_come_too_fast_are_served_one_after_the_other() -> None:
    config = KafkaConfig({"max.connection.creation.rate": "1"})
    creations = CreationRates(config)
    table = ConnectionTable(config, creations=creations)

    async def scenario(port: int) -> None:
        for _ in range(12):
            assert await echoed(port, None) == b"hello"

    accepting(table, scenario)
    assert table.accepted == 12
    assert creations.listeners["PLAINTEXT"].pauses.average(now_ms()) > 0


def test_an_address_that_connects_too_often_is_closed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_acceptor, "DELAYED_MAX", 1)
    rates = ConnectionRates(Windows(KafkaConfig({})))
    rates.set("127.0.0.1", {"connection_creation_rate": "0"})
    table = ConnectionTable(KafkaConfig({"max.connections.per.ip": "1"}), rates=rates)

    async def scenario(port: int) -> None:
        delayed = asyncio.create_task(hung_up(port))
        await asyncio.wait([delayed], timeout=0.05)
        assert not delayed.done()
        assert await hung_up(port)  # no more of them are kept open
        assert not delayed.done()
        assert await delayed

    accepting(table, scenario)
    assert (table.accepted, table.limits.total) == (0, 0)
