"""Ports for servers that have to be told one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.harness.processes import broker_process
from tests.harness.processes.broker_process import FIRST_PORT, free_port


def test_a_port_is_given_once_and_never_taken_by_a_connection() -> None:
    first_of_connections = int(
        Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]
    )
    ports = [free_port() for _ in range(200)]
    assert len(set(ports)) == len(ports)
    assert all(FIRST_PORT <= port < first_of_connections for port in ports)


def test_a_port_where_somebody_listens_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = free_port()
        monkeypatch.setattr(broker_process, "_PORTS", iter([taken.getsockname()[1], port]))
        assert free_port() == port
        with pytest.raises(RuntimeError, match="no port is left"):
            free_port()
