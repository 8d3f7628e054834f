"""An event loop's timers by hand, for what asks the running loop for one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.harness.cores.server_parts import FakeTimers


def fake_timers(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    """The timers of "the running loop" until the test ends; nothing else of it is there."""
    timers = FakeTimers()
    loop = SimpleNamespace(call_later=lambda delay_s, due: timers.call_later(delay_s, due))
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return timers
