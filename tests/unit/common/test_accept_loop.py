"""Accepting goes on when descriptors are free again."""

from __future__ import annotations

import asyncio
import resource
import socket

import pytest

from kafkapy.common import accept_loop, lasting_work
from kafkapy.common.accept_loop import AcceptLoop, has_spare_descriptors
from tests.harness.scripted.scripted_node import in_loop


def test_the_last_descriptors_are_spared() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [socket.socket() for _ in range(40)]
    assert has_spare_descriptors()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1].fileno() + 5, hard))
        assert not has_spare_descriptors()
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0].fileno(), hard))
        assert not has_spare_descriptors()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            each.close()
    assert has_spare_descriptors()


def test_clients_wait_while_there_are_too_few_and_are_served_after(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    has_some = [False]
    monkeypatch.setattr(accept_loop, "has_spare_descriptors", lambda: has_some[0])
    monkeypatch.setattr(accept_loop, "RETRY_S", 0.001)

    async def scenario() -> None:
        served = asyncio.Event()

        async def serve(accepted: socket.socket) -> None:
            accepted.close()
            served.set()

        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            bound.setblocking(False)
            accepts = AcceptLoop("X", bound, serve)
            accepts.start(5)
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            await asyncio.wait([asyncio.create_task(served.wait())], timeout=0.05)
            assert not served.is_set()
            has_some[0] = True
            await served.wait()
            assert await reader.read() == b""
            writer.close()
            accepts.close()

    in_loop(scenario)
    assert [r.getMessage() for r in caplog.records if "Listener X" in r.getMessage()] == [
        "Listener X accepts no connections: too few descriptors are left",
        "Listener X accepts connections again",
    ]


def test_a_connection_that_cannot_be_served_for_an_unknown_reason_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)

    async def scenario() -> None:
        served = asyncio.Event()
        faults = [ZeroDivisionError()]

        async def serve(accepted: socket.socket) -> None:
            accepted.close()
            if faults:
                raise faults.pop()
            served.set()

        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            bound.setblocking(False)
            accepts = AcceptLoop("X", bound, serve)
            accepts.start(5)
            for _ in range(2):
                reader, writer = await asyncio.open_connection(*bound.getsockname())
                assert await reader.read() == b""
                writer.close()
            await served.wait()
            accepts.close()

    in_loop(scenario)
