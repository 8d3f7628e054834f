"""A process starts its broker, waits for a signal, and stops it; a signal may come at any time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import cast

import pytest
import uvloop

from kafkapy.common.errors import ConfigError
from kafkapy.server.broker import Broker
from kafkapy.server.process import _stop_at_eof, run_until_stopped


class Life:
    """Stands in for a broker: `deeds` is what it was asked to do."""

    def __init__(self, start: Callable[[Life], None] = lambda life: life.may_start.set()) -> None:
        self.failed = asyncio.Event()
        self.may_start = asyncio.Event()
        self.is_serving = False
        self.deeds: list[str] = []
        self._on_start = start

    async def start(self) -> None:
        self._on_start(self)
        await self.may_start.wait()
        self.deeds.append("started")

    async def stop(self) -> None:
        self.deeds.append("stopping")
        # Whoever is impatient: the second signal finds the stop under way.
        _tell(signal.SIGINT)
        _tell(signal.SIGTERM)
        await asyncio.sleep(0)
        self.deeds.append("stopped")

    async def abandon(self) -> None:
        self.deeds.append("abandoned")


def _tell(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def lived(life: Callable[[], Life]) -> tuple[int, list[str]]:
    async def run() -> tuple[int, list[str]]:
        made = life()
        return await run_until_stopped(cast(Broker, made)), made.deeds

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_once(number: signal.Signals) -> None:
    def start(life: Life) -> None:
        life.may_start.set()
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, _tell, number)

    assert lived(lambda: Life(start)) == (0, ["started", "stopping", "stopped"])


def test_the_end_of_its_terminal_does_not_end_it_under_nohup() -> None:
    def start(life: Life) -> None:
        life.may_start.set()
        _tell(signal.SIGHUP)
        life.failed.set()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert lived(lambda: Life(start)) == (1, ["started"])
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_fatal_failure_ends_it_with_status_1() -> None:
    def start(life: Life) -> None:
        life.may_start.set()
        life.failed.set()

    assert lived(lambda: Life(start)) == (1, ["started"])


def test_a_fatal_failure_ends_a_start_that_is_waiting() -> None:
    """As when the last log directory fails while the broker waits to be told of all topics."""

    def start(life: Life) -> None:
        life.failed.set()
        soon = asyncio.get_running_loop().call_soon
        soon(soon, soon, soon, soon, soon, _tell, signal.SIGTERM)  # who waits on is told to stop

    assert lived(lambda: Life(start)) == (1, [])


def test_a_start_that_is_waiting_is_abandoned() -> None:
    assert lived(lambda: Life(lambda _: _tell(signal.SIGTERM))) == (1, ["abandoned"])


def test_who_serves_already_may_end_its_start_and_stops_cleanly() -> None:
    def start(life: Life) -> None:
        life.is_serving = True
        _tell(signal.SIGTERM)
        asyncio.get_running_loop().call_later(0.05, life.may_start.set)

    assert lived(lambda: Life(start)) == (0, ["started", "stopping", "stopped"])


def test_a_start_that_fails_says_why() -> None:
    def start(_: Life) -> None:
        raise ConfigError("no such port")

    with pytest.raises(ConfigError, match="no such port"):
        lived(lambda: Life(start))


def test_a_standard_input_that_is_closed_cannot_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `<&-`, or in a service that gives none."""
    monkeypatch.setattr(sys, "stdin", None)

    async def begin() -> None:
        _stop_at_eof()

    with pytest.raises(ConfigError, match="--until-eof needs a pipe or a terminal"):
        asyncio.run(begin())
