"""A TLS listener over real sockets: it serves who speaks TLS, and says of each other why not."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafkapy.server.tls_acceptor import TlsAcceptor
from tests.support.certificates import can_make
from tests.support.scripted_node import in_loop
from tests.support.tls_contexts import TlsContexts

Scenario = Callable[[TlsContexts, int], Coroutine[Any, Any, None]]


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def serving(directory: Path, client_auth: str, scenario: Scenario) -> int:
    """Run a scenario against a listener of echoes; how many handshakes failed."""
    failures: list[int] = []

    async def run() -> None:
        contexts = TlsContexts.make(directory, client_auth)
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        acceptor = TlsAcceptor(
            "X", bound, lambda: contexts.broker, Echo, lambda: failures.append(1)
        )
        acceptor.start(5)
        try:
            await scenario(contexts, bound.getsockname()[1])
        finally:
            acceptor.close()
            bound.close()

    in_loop(run)
    return len(failures)


async def echoed(port: int, context: Any, data: bytes = b"hello") -> bytes:
    """What comes back of `data`; nothing if the listener hangs up."""
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
