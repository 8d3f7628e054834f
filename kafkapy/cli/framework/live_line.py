"""A progress line on a terminal, which is overwritten during long work."""

from __future__ import annotations

import time
from typing import Final

from kafkapy.cli.framework.environment import Environment

_INTERVAL_S: Final = 0.2
_CLEAR: Final = "\r\033[K"


class LiveLine:
    """Shows the newest text, at most five times a second, and only on a terminal."""

    def __init__(self, env: Environment, *, is_enabled: bool = True) -> None:
        self._env = env
        self._is_enabled = is_enabled
        self._active = is_enabled and env.on_terminal
        self._next_s = 0.0
        self._is_shown = False

    def show(self, text: str) -> None:
        """Overwrite the line with `text`. An empty text changes nothing."""
        now_s = time.monotonic()
        if not self._active or not text or now_s < self._next_s:
            return
        self._next_s = now_s + _INTERVAL_S
        self._env.write(_CLEAR + text)
        self._env.stdout.flush()
        self._is_shown = True

    def print_permanent(self, line: str) -> None:
        """Print a permanent line at once, also to a pipe."""
        self.clear()
        if self._is_enabled:
            self._env.line(line)
            self._env.stdout.flush()

    def clear(self) -> None:
        """Erase the line, so that a permanent line can take its place."""
        if self._is_shown:
            self._env.write(_CLEAR)
            self._is_shown = False
