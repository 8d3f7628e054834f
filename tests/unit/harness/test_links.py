"""The links of a test leave nothing behind, whatever was on its way when they ended."""

from __future__ import annotations

import contextlib
import socket

from tests.harness.faults.links import ANYONE, Network, Trouble
from tests.harness.plugins import leaks
from tests.harness.processes.broker_process import free_port


def test_connections_that_are_accepted_as_the_links_end_are_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as target:
        before = leaks.open_resources()
        for _ in range(20):
            with contextlib.ExitStack() as clients, Network() as network:
                link = network.link(free_port(), target.getsockname()[1])
                for _ in range(5):
                    clients.enter_context(socket.create_connection(("127.0.0.1", link.port)))
        assert leaks.opened_since(before) == []


def test_a_connection_that_is_broken_twice_is_closed() -> None:
    """A cut link ends: the second cancellation interrupts the end that the first one began."""
    with socket.create_server(("127.0.0.1", 0)) as target:
        before = leaks.open_resources()
        with contextlib.ExitStack() as ends, Network() as network:
            link = network.link(free_port(), target.getsockname()[1])
            client = ends.enter_context(socket.create_connection(("127.0.0.1", link.port)))
            client.sendall(b"x")
            accepted = ends.enter_context(target.accept()[0])
            assert accepted.recv(1) == b"x"

            def break_twice() -> None:
                link.change(Trouble.CUT, ANYONE)
                link.change(Trouble.CUT, ANYONE)

            network.loop.call_soon_threadsafe(break_twice)
        assert leaks.opened_since(before) == []
