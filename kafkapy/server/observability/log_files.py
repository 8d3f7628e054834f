"""A log file that rolls every hour, as log4j's `DailyRollingFileAppender` with `.yyyy-MM-dd-HH`.

`server.log` is the hour that runs; `server.log.2024-10-21-12` is what was said from 12:00 to 13:00.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path


class HourlyFileHandler(logging.FileHandler):
    """Appends to `path`; what an earlier hour left there is put aside before the first line.

    Fixed: `path`. A file that cannot be written is complained of once, on stderr: a full disk must
    not take the broker with it.
    """

    def __init__(self, path: Path) -> None:
        """Open it, or go on with what is there.

        Raises:
            OSError: it cannot be opened.
        """
        self._hour = _hour(path.stat().st_mtime if path.exists() else time.time())
        self._complained = False
        super().__init__(path, encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, in the file of its hour."""
        hour = _hour(record.created)
        try:
            if hour > self._hour:
                self._roll(hour)
        except OSError:
            self.handleError(record)
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        if not self._complained:
            self._complained = True
            sys.stderr.write(f"Cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")

    def _roll(self, hour: str) -> None:
        """Name what is there after its hour; the next line opens a new file."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        os.replace(self.baseFilename, f"{self.baseFilename}.{self._hour}")
        self._hour = hour


def _hour(time_s: float) -> str:
    """The hour as the name of a file has it; text that grows with time."""
    return time.strftime("%Y-%m-%d-%H", time.localtime(time_s))
