"""Background tasks: their faults are logged, and none outlives the broker."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.server.requests.background_tasks import BackgroundTasks


def test_a_background_fault_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks = BackgroundTasks()

    async def fail() -> None:
        raise ZeroDivisionError("a fault")

    async def scenario() -> None:
        tasks.spawn(fail())
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    [record] = caplog.records
    assert record.getMessage() == "A background task failed"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_nothing_runs_on_after_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    tasks = BackgroundTasks()
    ended: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def scenario() -> None:
        tasks.spawn(wait_for_ever())
        await asyncio.sleep(0)
        await tasks.cancel()
        tasks.spawn(wait_for_ever())  # as a session does that expires now
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    assert ended == ["cancelled"]
    assert caplog.records == []
