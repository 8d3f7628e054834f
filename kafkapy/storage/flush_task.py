"""A flush of one log in two halves, so that its fsync can run in a worker thread."""

from __future__ import annotations

from kafkapy.storage.local_log import FlushHandle
from kafkapy.storage.unified_log import UnifiedLog


class FlushTask:
    """One due flush: `fsync()` in a worker thread, then `complete(now_ms)` in the loop.

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
