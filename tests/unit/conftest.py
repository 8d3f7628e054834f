"""Fixtures of all unit tests."""

from __future__ import annotations

import pytest

from tests.harness.scripted.stepped_time import SteppedTime


@pytest.fixture(autouse=True)
def stepped_time(monkeypatch: pytest.MonkeyPatch) -> SteppedTime:
    """Attempts of a client on a scripted cluster are a back-off apart without waiting for it, and
    its time-outs pass only by that: no test fails because the machine is slow."""
    time = SteppedTime()
    for module in ("batch_producer", "cluster"):
        monkeypatch.setattr(f"kafkapy.client.{module}.time", time)
    return time
