"""Whether one log may be cleaned: the states of Kafka's `LogCleanerManager`, kept with the log.

| state       | meaning                                                  | leaves by             |
|-------------|----------------------------------------------------------|-----------------------|
| idle        | a cleaning may begin, unless pauses are counted          | `begin`               |
| in progress | a worker thread reads the closed segments                | `abort`, `end`        |
| aborted     | the thread ends at its next batch; its result is dropped | `end`                 |
| paused(n)   | no cleaning may begin; n is counted beside other states  | n times `resume`      |

Kafka's `abortAndPauseCleaning` waits for the cleaner's thread, because that thread replaces the
segments. Here the event loop alone replaces them (`LogCleaner.commit`), and never after an abort.
So `abort` returns at once, and the log may be deleted, truncated, renamed or moved right after.
"""

from __future__ import annotations

from kafkapy.common.errors import KafkapyError


class LogCleaningAborted(KafkapyError):
    """The log was deleted, truncated, moved or is no longer compacted: the cleaning ends."""


class CleaningState:
    """The state of one log. Changed in the event loop; the cleaning's thread reads `is_aborted`.

    `truncated_to`: the lowest base offset of the active segment after truncations that are not
    in the cleaner's checkpoint yet; None if all are.
    """

    __slots__ = ("_pause_count", "in_progress", "is_aborted", "truncated_to")

    def __init__(self) -> None:
        self.in_progress = False
        self.is_aborted = False
        self.truncated_to: int | None = None
        self._pause_count = 0

    @property
    def may_begin(self) -> bool:
        return not self.in_progress and self._pause_count == 0

    def begin(self) -> None:
        assert self.may_begin
        self.in_progress = True

    def end(self) -> bool:
        """End the cleaning. Returns False if it was aborted."""
        aborted, self.in_progress, self.is_aborted = self.is_aborted, False, False
        return not aborted

    def abort(self) -> None:
        """Abort the cleaning in progress, if any (`abortCleaning`)."""
        self.is_aborted = self.in_progress

    def pause(self) -> None:
        """Abort a cleaning, and prevent others until `resume` (`abortAndPauseCleaning`)."""
        self._pause_count += 1
        self.abort()

    def resume(self) -> None:
        """Undo one `pause` (`resumeCleaning`)."""
        assert self._pause_count > 0
        self._pause_count -= 1

    def record_truncation(self, offset: int) -> None:
        """Record a truncation after which the active segment begins at `offset`. Everything from
        `offset` on is dirty.
        """
        self.abort()
        known = self.truncated_to
        self.truncated_to = offset if known is None else min(known, offset)
