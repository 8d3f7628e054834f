"""A fault that nobody expected ends no work that a broker needs."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kafkapy.common import lasting_work
from kafkapy.common.lasting_work import keep_running
from tests.harness.scripted.scripted_node import in_loop

LOG = logging.getLogger("t")


def test_after_a_fault_work_begins_anew_until_it_returns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 0)
    seen: list[str] = []

    async def work() -> None:
        seen.append("begun")
        if len(seen) < 4:
            raise ZeroDivisionError

    in_loop(lambda: keep_running("It", work, LOG, lambda: seen.append("prepared")))
    assert seen == ["begun", "prepared", "begun", "prepared", "begun"]
    assert [r.getMessage() for r in caplog.records] == ["It failed, and begins anew in 0 s"] * 2
    assert caplog.records[0].exc_info is not None, "with the traceback"


def test_it_ends_when_it_is_cancelled_also_between_fault_and_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        failed = asyncio.Event()

        async def work() -> None:
            raise ZeroDivisionError

        task = asyncio.get_running_loop().create_task(keep_running("It", work, LOG, failed.set))
        await failed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(lasting_work, "FAULT_BACKOFF_S", 3600)
    in_loop(scenario)
