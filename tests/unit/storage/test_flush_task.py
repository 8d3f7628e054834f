"""A flush in two halves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.storage import local_log
from kafkapy.storage.flush_task import FlushTask, close_logs
from tests.harness.storage.log_builder import LogBuilder


def test_the_recovery_point_moves_when_the_log_is_told(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append(count=3).log
    task = FlushTask(log, log.flush_handle())
    task.fsync()
    assert log.recovery_point == 0
    task.complete(5)
    assert log.recovery_point == 3


def test_a_close_flushes_the_segments_behind_the_last_unfinished_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start does not check these records: a power cut would lose some silently."""
    monkeypatch.setattr(local_log, "SEGMENTS_PER_FLUSH", 2)
    builder = LogBuilder(tmp_path)
    for _ in range(5):
        builder.append().roll()
    log = builder.log
    del log.local.unflushed_segments[1:]
    log.producers.unflushed.clear()
    log.segments.active.become_inactive()
    close_logs(builder.fs, [log], 0)
    assert (log.recovery_point, log.is_unflushed) == (5, False)
