"""A client thread of a chaos run that does not end makes the run fail, and does not hold it."""

from __future__ import annotations

import threading

import pytest

from tests.harness.faults import chaos_workload
from tests.harness.faults.chaos_workload import ClientThread


class Stuck(ClientThread):
    """In a call that returns when `answer` is set."""

    def __init__(self) -> None:
        super().__init__("stuck")
        self.answer = threading.Event()
        self.start()

    def run(self) -> None:
        self.answer.wait()


def test_a_party_in_a_call_that_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_workload, "STOP_LIMIT_S", 0.01)
    thread = Stuck()
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the end of thread stuck"):
        thread.stop()
    thread.answer.set()
    monkeypatch.undo()
    thread.stop()
    assert not thread.is_alive()
