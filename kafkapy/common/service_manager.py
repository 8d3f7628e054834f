"""Notifications to the service manager of this process (systemd's `sd_notify`, `Type=notify`)."""

from __future__ import annotations

import os
import socket
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
_ADDRESS: Final = "NOTIFY_SOCKET"


def notify(state: str) -> None:
    """Send the state to the manager, if there is one. Does nothing if the manager is gone, or if no
    descriptor is left: a process without one must still stop cleanly.
    """
    address = os.environ.get(_ADDRESS, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # a name in Linux' abstract namespace
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(address)
            sender.sendall(state.encode())
    except OSError:
        return
