"""A port that another process has is told with that process."""

from __future__ import annotations

import os
import socket

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import ports
from kafkapy.tools.local.ports import check_port
from tests.harness.processes.broker_process import free_port


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = f"Broker 1 cannot listen on 127.0.0.1:{port}: Address already in use by process"
        with pytest.raises(ConfigError, match=rf"{said} {os.getpid()} \(.*python"):
            check_port("127.0.0.1", port, "Broker 1")


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", ports.free_port("127.0.0.1"))):
        pass


def test_a_port_that_is_free() -> None:
    check_port("127.0.0.1", free_port(), "Broker 1")


def test_what_is_wrong_otherwise_is_left_to_the_server() -> None:
    check_port("192.0.2.1", free_port(), "Broker 1")
