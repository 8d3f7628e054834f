"""A service manager hears that a process is ready, where there is one."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from kafkapy.common.service_manager import READY, STOPPING, notify


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_manager_is_told(
    is_abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"@{tmp_path}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if is_abstract else address)
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify(READY)
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "/nowhere/notify", "vsock:2:1234"])
def test_without_a_manager_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify(READY)


def test_without_a_descriptor_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has none left was not stopped cleanly: its logs needed recovery."""

    def no_socket(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    monkeypatch.setattr(socket, "socket", no_socket)
    notify(STOPPING)
