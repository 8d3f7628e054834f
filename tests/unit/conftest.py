"""Fixtures of all unit tests."""

from __future__ import annotations

import pytest

from tests.harness.scripted.stepped_time import SteppedTime


@pytest.fixture(autouse=True)
def stepped_time(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    """Back-offs of clients take no time, and their time-outs count nothing else: a slow machine
    fails no test."""
    time = SteppedTime()
    for module in ("batch_producer", "cluster", "first_connection"):
        monkeypatch.setattr(f"kafkapy.client.{module}.time", time)
    return time
