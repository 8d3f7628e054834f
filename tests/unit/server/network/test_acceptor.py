"""The listening sockets: what an operator says of their buffers holds for every connection."""

from __future__ import annotations

import os
import socket
from typing import cast

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.acceptor import Acceptor
from kafkapy.server.network.connection_table import ConnectionTable
from tests.harness.cores.ports import ManualClock

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
