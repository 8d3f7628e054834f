"""Periodic work comes round, whatever a round of it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from kafkapy.common.errors import LogDirFailure
from kafkapy.server import scheduler as module
from kafkapy.server.scheduler import Scheduler
from kafkapy.storage.disk_errors import StorageShortage


class Sleeps:
    """Sleeping that takes no time, until as many sleeps as the test allows have been slept."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.slept_s: list[float] = []
        self.done = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if len(self.slept_s) == self.allowed:
            self.done.set()
            await asyncio.Event().wait()
        self.slept_s.append(seconds)


Step = Callable[[], Awaitable[None] | None]


def run(
    monkeypatch: pytest.MonkeyPatch,
    step: Step,
    sleeps: int,
    period_ms: int = 2000,
    delay_ms: int | None = None,
) -> tuple[list[float], list[LogDirFailure]]:
    """Run a step for this number of sleeps; return the sleeps and the failures reported."""
    failures: list[LogDirFailure] = []

    async def scenario() -> list[float]:
        slept = Sleeps(sleeps)
        monkeypatch.setattr(module.asyncio, "sleep", slept.sleep)
        scheduler = Scheduler(failures.append)
        scheduler.every("work", period_ms, step, delay_ms)
        await slept.done.wait()
        await scheduler.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return slept.slept_s

    return asyncio.run(scenario()), failures


@pytest.mark.parametrize(
    ("delay_ms", "slept_s"), [(None, [2.0, 2.0, 2.0]), (500, [0.5, 2.0, 2.0]), (0, [0.0, 2.0, 2.0])]
)
def test_the_first_round_may_come_earlier_or_later(
    monkeypatch: pytest.MonkeyPatch, delay_ms: int | None, slept_s: list[float]
) -> None:
    rounds: list[int] = []
    slept, _ = run(monkeypatch, lambda: rounds.append(1), 3, delay_ms=delay_ms)
    assert slept == slept_s
    assert len(rounds) == 3


def test_a_round_ends_before_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    trace: list[str] = []

    async def step() -> None:
        trace.append("begin")
        for _ in range(3):
            await asyncio.get_running_loop().create_task(_nothing())
        trace.append("end")

    run(monkeypatch, step, 2)
    assert trace == ["begin", "end"] * 2


async def _nothing() -> None:
    return


def test_a_fault_is_logged_with_its_place_and_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[int] = []

    def step() -> None:
        rounds.append(1)
        raise ZeroDivisionError("a fault")

    run(monkeypatch, step, 3)
    assert len(rounds) == 3
    assert [r.getMessage() for r in caplog.records] == [
        "Uncaught exception in scheduled task 'work'"
    ] * 3
    assert all(r.levelno == logging.ERROR and r.exc_info for r in caplog.records)


def test_a_failed_log_directory_is_told_and_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = LogDirFailure("/d", "gone")

    async def step() -> None:
        raise failure

    _, failures = run(monkeypatch, step, 2)
    assert failures == [failure, failure]


def test_a_period_of_nothing_means_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or `log.flush.offset.checkpoint.interval.ms=0` would write checkpoints without a pause."""
    rounds: list[int] = []

    async def scenario() -> None:
        slept = Sleeps(3)
        monkeypatch.setattr(module.asyncio, "sleep", slept.sleep)
        scheduler = Scheduler(lambda failure: None)
        scheduler.every("work", 0, lambda: rounds.append(1), 10)
        await asyncio.gather(*scheduler._tasks)
        assert slept.slept_s == [0.01]

    asyncio.run(scenario())
    assert rounds == [1]


def test_a_step_that_lacks_descriptors_is_put_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def step() -> None:
        raise StorageShortage("too many open files")

    slept, failures = run(monkeypatch, step, 2)
    assert (len(slept), failures) == (2, [])
    assert "work is put off: too many open files" in caplog.text
    assert "Traceback" not in caplog.text
