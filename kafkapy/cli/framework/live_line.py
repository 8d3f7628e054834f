"""A progress line on a terminal, which is overwritten during long work."""

from __future__ import annotations

import time
from typing import Final

from kafkapy.cli.framework.environment import Environment

_INTERVAL_S: Final = 0.2
_CLEAR: Final = "\r\033[K"


class LiveLine:
    """Shows the newest text, at most five times a second, and only on a terminal."""

    def __init__(self, env: Environment, *, wanted: bool = True) -> None:
        self._env = env
        self._wanted = wanted
        self._active = wanted and env.on_terminal
        self._next_s = 0.0
        self._shown = False

    def show(self, text: str) -> None:
        """Overwrite the line with `text`. An empty text changes nothing."""
        now_s = time.monotonic()
        if not self._active or not text or now_s < self._next_s:
            return
        self._next_s = now_s + _INTERVAL_S
        self._env.write(_CLEAR + text)
        self._env.stdout.flush()
        self._shown = True

    def stay(self, line: str) -> None:
        """Print a permanent line at once, also to a pipe."""
        self.clear()
        if self._wanted:
            self._env.line(line)
            self._env.stdout.flush()

    def clear(self) -> None:
        """Erase the line, so that a permanent line can take its place."""
        if self._shown:
            self._env.write(_CLEAR)
            self._shown = False
