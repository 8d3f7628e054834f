"""Flushes in two steps: for one log, so that its fsync can run in a worker thread; for many logs at
shutdown, so that they are forced to disk together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.local_log import FlushHandle
from kafkapy.storage.unified_log import UnifiedLog

_OPEN_FILES_MAX: Final = 256
"""The number of files from which on no further log is flushed together with others."""


class FlushTask:
    """One due flush: call `fsync()` in a worker thread, then `complete(now_ms)` in the loop.

    A failed `fsync` raises LogDirFailure: hand it to `LogManager.on_log_dir_failure`.
    """

    __slots__ = ("_handle", "log")

    def __init__(self, log: UnifiedLog, handle: FlushHandle) -> None:
        self.log = log
        self._handle = handle

    def fsync(self) -> None:
        self.log.run_flush(self._handle)

    def complete(self, now_ms: int) -> None:
        self.log.mark_flushed(self._handle, now_ms)


def close_logs(fs: FileSystem, logs: Sequence[UnifiedLog], now_ms: int) -> None:
    """Close the logs of one directory cleanly, together: one by one, thousands of logs would wait
    for the file system's journal thousands of times.

    Raises:
        LogDirFailure or OSError: the disk fails; some logs may be closed.
    """
    for log in logs:
        log.finish()
    waiting = [log for log in logs if log.is_unflushed]
    while waiting:
        handles = _open_handles(waiting)
        FlushHandle.fsync_all(fs, list(handles.values()))
        for log, handle in handles.items():
            log.mark_flushed(handle, now_ms)
        waiting += [log for log in handles if log.is_unflushed]
    for log in logs:
        log.local.close_handles()


def _open_handles(waiting: list[UnifiedLog]) -> dict[UnifiedLog, FlushHandle]:
    """Remove some logs from a list, and return their handles."""
    handles: dict[UnifiedLog, FlushHandle] = {}
    file_count = 0
    while waiting and file_count < _OPEN_FILES_MAX:
        log = waiting.pop()
        handles[log] = log.flush_handle()
        file_count += handles[log].file_count
    return handles
