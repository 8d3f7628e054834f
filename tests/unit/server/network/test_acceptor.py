"""The listening sockets: what an operator says of their buffers holds for every connection."""

from __future__ import annotations

import os
import socket
from typing import Any, cast

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.config.listeners import Listener
from kafkapy.server.network.acceptor import Acceptor, bind
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.sasl_connection import SaslConnection
from kafkapy.server.security.listener_security import ListenerSecurity, SaslSettings
from tests.harness.cores.ports import ManualClock
from tests.harness.plugins import unchecked
from tests.harness.scripted.scripted_node import in_loop

BUFFERS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


def accepted_buffers(properties: dict[str, str]) -> list[int]:
    """The sizes that a socket has which a listener with these properties accepted."""
    config = KafkaConfig({"listeners": "PLAINTEXT://127.0.0.1:0", **properties})
    acceptor = Acceptor(config, cast(ConnectionTable, None), ManualClock(), {})
    acceptor.bind()
    [bound] = acceptor._sockets.values()
    with bound:
        bound.listen()
        bound.setblocking(True)
        with socket.create_connection(bound.getsockname()), bound.accept()[0] as accepted:
            return [accepted.getsockopt(socket.SOL_SOCKET, option) for option in BUFFERS]


def test_accepted_sockets_have_the_buffers_that_are_configured() -> None:
    given = {"socket.send.buffer.bytes": "50000", "socket.receive.buffer.bytes": "30000"}
    assert accepted_buffers(given) == [100_000, 60_000]  # Linux doubles them for its own use


def test_otherwise_the_kernel_decides() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.create_connection(other.getsockname()),
        other.accept()[0] as accepted,
    ):
        expected = [accepted.getsockopt(socket.SOL_SOCKET, option) for option in BUFFERS]
    assert accepted_buffers({}) == expected


def test_a_size_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"-2 .*socket\.send\.buffer\.bytes.* at least -1"):
        KafkaConfig({"socket.send.buffer.bytes": "-2"})


def test_a_port_that_is_taken_is_told_with_the_process_that_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        listener = f"PLAINTEXT://127.0.0.1:{other.getsockname()[1]}"
        config = KafkaConfig({"listeners": listener})
        acceptor = Acceptor(config, cast(ConnectionTable, None), ManualClock(), {})
        said = rf"listeners={listener} cannot be bound: Address already in use by process"
        with pytest.raises(ConfigError, match=rf"{said} {os.getpid()} \("):
            acceptor.bind()


def test_a_listener_without_a_host_serves_clients_of_ipv6_and_of_ipv4() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        unchecked.note("a listener at all addresses of IPv6", str(error))
        return
    with bind(Listener("PLAINTEXT", "", 0, "PLAINTEXT")) as bound:
        bound.listen()
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, bound.getsockname()[1])).close()


def test_a_connection_is_as_secure_as_its_listener_was() -> None:
    """A handshake of TLS may end after the change that takes its listener away."""
    plain = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    both = KafkaConfig({"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"})
    security = ListenerSecurity(None, SaslSettings({}, 1, 0.0), cast(Any, None))
    table = ConnectionTable(KafkaConfig(plain))

    async def run() -> None:
        acceptor = Acceptor(both, table, ManualClock(), {"SASL_PLAINTEXT": security})
        acceptor.bind()
        acceptor.serve(cast(Any, None))
        late = acceptor._servers["SASL_PLAINTEXT"]._new_connection
        acceptor.change(KafkaConfig(plain), {})
        assert type(late()) is SaslConnection
        acceptor.stop_accepting()

    in_loop(run)
