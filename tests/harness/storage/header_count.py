"""Counts the headers of batches that work reads from files in each turn of the event loop."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

import pytest

import kafkapy.storage.file_records
from kafkapy.record.batch_header import read_header
from kafkapy.server.requests.outcomes import ThreadCall
from kafkapy.server.requests.turns import Work

R = TypeVar("R")


class HeaderCount:
    """`turns` has the headers that the event loop reads from files in each turn of the last run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = [0]
        monkeypatch.setattr(kafkapy.storage.file_records, "read_header", self._read_header)

    def _read_header(self, *args: Any) -> Any:
        self.turns[-1] += 1
        return read_header(*args)

    def run(self, work: Work[R]) -> R:
        """The result of work. Each call of the other thread begins a turn, and reads no file."""
        self.turns = [0]
        try:
            call = next(work)
            while True:
                if isinstance(call, ThreadCall):
                    self.turns.append(0)
                    assert len(self.turns) < 100
                    before = self.turns[-1]
                    done: Future[Any] = Future()
                    done.set_result(call.function())
                    assert self.turns[-1] == before, "the thread must not read files"
                    call = work.send(done)
                else:
                    call = next(work)
        except StopIteration as end:
            result: R = end.value
            return result
