"""A log file that rolls every hour, as log4j's `DailyRollingFileAppender` with `.yyyy-MM-dd-HH`.

`server.log` has the current hour; `server.log.2024-10-21-12` has the lines from 12:00 to 13:00.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path


class HourlyFileHandler(logging.FileHandler):
    """Appends to `path`. A file of an earlier hour is renamed before the first line.

    Fixed: `path`. A write error is reported once, on stderr: a full disk must not stop the broker.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, to append to it if it exists.

        Raises:
            OSError: the file cannot be opened.
        """
        self._hour = _hour(path.stat().st_mtime if path.exists() else time.time())
        self._has_reported_error = False
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
        if not self._has_reported_error:
            self._has_reported_error = True
            sys.stderr.write(f"Cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")

    def _roll(self, hour: str) -> None:
        """Rename the file after its hour. The next line opens a new file."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        os.replace(self.baseFilename, f"{self.baseFilename}.{self._hour}")
        self._hour = hour


def _hour(time_s: float) -> str:
    """The hour as in the name of a file. A later hour is a greater string."""
    return time.strftime("%Y-%m-%d-%H", time.localtime(time_s))
