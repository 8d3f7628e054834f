"""Values that are fetched in the background: at the start, in time, in a hurry, after failures."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.oauth.http_request import FetchFailed
from kafkapy.server.security.refreshed_value import RefreshedValue, RefreshTimes
from tests.harness.scripted.scripted_node import in_loop

NEVER_MS = 1_000_000


class Source:
    """Counts; fails as often as it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[Exception] = []
        self.loop = asyncio.get_running_loop()
        self.fetched = asyncio.Event()
        self.threads: set[int] = set()

    def __call__(self) -> int:
        self.count += 1
        self.threads.add(threading.get_ident())
        self.loop.call_soon_threadsafe(self.fetched.set)
        if self.failures:
            raise self.failures.pop(0)
        return self.count

    async def next(self) -> None:
        await self.fetched.wait()
        self.fetched.clear()


def kept(source: Source, after_ms: int = NEVER_MS, again: int = 0) -> RefreshedValue[int]:
    return RefreshedValue(
        "It", source, RefreshTimes(lambda _: after_ms, 0, lambda: iter([0] * again), 0)
    )


def test_it_is_there_from_the_start_and_fetched_elsewhere() -> None:
    async def scenario() -> None:
        source = Source()
        one = kept(source)
        await one.start()
        assert one.value == 1
        assert threading.get_ident() not in source.threads

    in_loop(scenario)


def test_without_a_first_value_there_is_no_start() -> None:
    async def scenario() -> None:
        source = Source()
        source.failures = [FetchFailed("gone")] * 3
        with pytest.raises(ConfigError) as refused:
            await kept(source, again=2).start()
        assert str(refused.value) == "It cannot be had: gone"
        assert source.count == 3
        source.failures = [FetchFailed("refused", is_final=True)]
        with pytest.raises(ConfigError, match="refused"):
            await kept(source, again=2).start()
        assert source.count == 4

    in_loop(scenario)


def test_it_is_fetched_in_time_and_in_a_hurry() -> None:
    async def scenario() -> None:
        source = Source()
        one = kept(source)
        await one.start()
        await source.next()
        running = asyncio.ensure_future(one.run())
        one.refresh_soon()
        await source.next()
        while one.value != 2:
            await asyncio.sleep(0)
        running.cancel()
        timed = kept(source, after_ms=0)
        await timed.start()
        running = asyncio.ensure_future(timed.run())
        while timed.value < 5:
            await asyncio.sleep(0)
        running.cancel()

    in_loop(scenario)


def test_the_old_goes_on_when_no_new_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        source = Source()
        one = kept(source)
        await one.start()
        await source.next()
        source.failures = [FetchFailed("gone"), ConfigError("no token")]
        running = asyncio.ensure_future(one.run())
        one.refresh_soon()
        while one.value != 4:  # two failures, then at once again
            assert one.value == 1
            await asyncio.sleep(0)
        running.cancel()

    in_loop(scenario)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [
        "It cannot be refreshed, the old goes on: gone",
        "It cannot be refreshed, the old goes on: no token",
    ]


def test_a_hurry_waits_for_the_pause() -> None:
    async def scenario() -> None:
        source = Source()
        one = RefreshedValue(
            "It", source, RefreshTimes(lambda _: NEVER_MS, 0, lambda: iter(()), NEVER_MS)
        )
        await one.start()
        running = asyncio.ensure_future(one.run())
        one.refresh_soon()
        for _ in range(10):
            await asyncio.sleep(0)
        assert (source.count, running.done()) == (1, False)
        running.cancel()

    in_loop(scenario)
