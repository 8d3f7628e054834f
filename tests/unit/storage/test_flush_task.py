"""A flush in two halves."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.flush_task import FlushTask
from tests.harness.storage.log_builder import LogBuilder


def test_the_recovery_point_moves_when_the_log_is_told(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).append(count=3).log
    task = FlushTask(log, log.flush_handle())
    task.fsync()
    assert log.recovery_point == 0
    task.complete(5)
    assert log.recovery_point == 3
