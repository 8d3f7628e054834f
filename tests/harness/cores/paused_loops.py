"""Timers that a test fires, for code that uses the timers of the running event loop."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.harness.cores.server_parts import FakeTimers


def fake_timers(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    """Replace the running event loop with an object that has only timers, until the test ends. What
    is to run soon is a timer of 0 s."""
    timers = FakeTimers()
    loop = SimpleNamespace(
        call_later=timers.call_later, call_soon=lambda due: timers.call_later(0, due)
    )
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return timers
